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
/* The same for a file in memory, at an 8-byte aligned address; tensors point into it. */
DflashStatus dflash_sidecar_parse(const void *data, uint64_t size, DflashSidecar *sidecar, DflashError *error);
void dflash_sidecar_close(DflashSidecar *sidecar);

/* Writes a sidecar with all hashes; the head is left out. header_json: NULL, or a whole header to be written as it
 * is (an opened sidecar's, so that its provenance stays); its geometry must be `geometry`, and its router counts,
 * not `router`. Without it a header is made from geometry and router (NULL or not present: none). Weights are
 * checked as on opening. They are written from where they lie, and the write is atomic. */
DflashStatus dflash_sidecar_write(const char *path, const DflashGeometry *geometry, const DflashWeights *weights,
                                  const DflashRouter *router, const char *header_json, DflashError *error);

/* hash64 of formats: damage detection, blind to the order of words. */
uint64_t dflash_hash64(const void *data, uint64_t bytes);

/* The head of a target: `lm_head.weight`, or the embedding when tied, from a CMF file, a safetensors file, an
 * index of shards ("*.index.json") or a folder of either. The embedding is refused where the target's header or
 * config.json says that it is not tied. Shape [vocab, hidden], hash and finiteness are checked. The mapping keeps
 * the data alive. */
typedef struct DflashHead {
  DflashMapping mapping;
  DflashTensor tensor;
  char name[96]; /* of the tensor that was taken */
  void *owned;   /* a copy of a tensor that lies misaligned in its file, or NULL */
} DflashHead;
DflashStatus dflash_head_open(const char *path, const DflashGeometry *geometry, DflashHead *head, DflashError *error);
void dflash_head_close(DflashHead *head);

#endif
