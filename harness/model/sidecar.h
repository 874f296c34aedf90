/* CMF version 2: sidecars (`<stem>.dflash.cmf`) and the head of a target file. Files are mapped. */
#ifndef DFLASH_MODEL_SIDECAR_H
#define DFLASH_MODEL_SIDECAR_H

#include "base/file.h"
#include "model/router.h"
#include "model/weights.h"

typedef struct DflashSidecar {
  DflashMapping mapping;
  DflashGeometry geometry;
  DflashWeightSet set;   /* tensors point into the mapping; head.data is NULL */
  DflashRouter router;   /* router.present 0 when there is none or it is unreadable (a warning says so) */
  char trunk_hash64[65]; /* provenance.base_binding.trunk_hash64 as written, "" when absent */
  char *header;          /* header JSON as stored, NUL-terminated */
} DflashSidecar;

/* Checks everything: magic, version, features, sections against the file's size, hashes before what they cover,
 * names, dtypes, shapes, alignments, overlaps, hashes of needed tensors, finiteness of values. */
DflashStatus dflash_sidecar_open(const char *path, DflashSidecar *sidecar, DflashError *error);
DflashStatus dflash_sidecar_parse(const void *data, uint64_t size, DflashSidecar *sidecar, DflashError *error);
void dflash_sidecar_close(DflashSidecar *sidecar);

/* Writes a sidecar with all hashes. header_extra (may be NULL): a JSON object whose keys join the header.
 * The write is atomic. */
DflashStatus dflash_sidecar_write(const char *path, const DflashGeometry *geometry, const DflashWeights *weights,
                                  const DflashRouter *router, const char *header_json, DflashError *error);

/* hash64 of formats: damage detection, blind to the order of words. */
uint64_t dflash_hash64(const void *data, uint64_t bytes);

/* The head of a target: `lm_head.weight`, or the embedding when tied, from a CMF file, a safetensors file, a
 * sharded index or a checkpoint folder. [vocab, hidden] checked. The mapping keeps the data alive. */
typedef struct DflashHead {
  DflashMapping mapping;
  DflashTensor tensor;
  char name[96];
} DflashHead;
DflashStatus dflash_head_open(const char *path, const DflashGeometry *geometry, DflashHead *head, DflashError *error);
void dflash_head_close(DflashHead *head);

#endif
