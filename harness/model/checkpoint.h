/* Checkpoints: a folder with config.json and model.safetensors (or shards and their index). */
#ifndef DFLASH_MODEL_CHECKPOINT_H
#define DFLASH_MODEL_CHECKPOINT_H

#include "base/file.h"
#include "model/weights.h"

typedef struct DflashCheckpoint {
  DflashGeometry geometry;
  DflashWeightSet set;     /* matrices and codebooks point into the mappings; vectors are widened copies */
  DflashMapping *mappings; /* one per file */
  int64_t mapping_count;
  void **owned; /* widened vectors, and copies of tensors that lie misaligned in their file */
  int64_t owned_count;
} DflashCheckpoint;

DflashStatus dflash_checkpoint_open(const char *folder, DflashCheckpoint *checkpoint, DflashError *error);
void dflash_checkpoint_close(DflashCheckpoint *checkpoint);

/* The geometry that a config.json names; refusals say why (DFlash 1, rope types, attention_bias ...). */
DflashStatus dflash_checkpoint_config(const char *json, uint64_t size, DflashGeometry *geometry, DflashError *error);

/* One safetensors file in memory. Parsing checks the header's length, every entry's dtype and shape against its
 * bytes, and that the data is covered without gap or overlap. Tensors point into `file`, at any alignment: the
 * format promises none. Used by the head too. */
typedef struct DflashSafetensors DflashSafetensors;
DflashStatus dflash_safetensors_parse(const void *file, uint64_t size, DflashSafetensors **out, DflashError *error);
DflashStatus dflash_safetensors_find(const DflashSafetensors *file, const char *name, DflashTensor *tensor,
                                     DflashError *error); /* DFLASH_UNAVAILABLE when it has no such tensor */
void dflash_safetensors_close(DflashSafetensors *file);

#endif
