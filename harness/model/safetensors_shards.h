/* Tensors in a safetensors file, or spread over shards that an index names. Files are mapped when first needed. */
#ifndef DFLASH_MODEL_SAFETENSORS_SHARDS_H
#define DFLASH_MODEL_SAFETENSORS_SHARDS_H

#include "base/file.h"
#include "model/checkpoint.h"

struct cJSON;

typedef struct DflashShard {
  char *file; /* its name in the folder */
  DflashMapping mapping;
  DflashSafetensors *tensors;
} DflashShard;

typedef struct DflashShards {
  char *folder;
  char *single;        /* the one file, or NULL with an index */
  struct cJSON *index; /* the index, or NULL */
  DflashShard *shards; /* those mapped so far */
  int64_t count;
} DflashShards;

/* path: a folder (its model.safetensors, else its model.safetensors.index.json), an index ("*.index.json"), or a
 * safetensors file. */
DflashStatus dflash_shards_open(const char *path, DflashShards *shards,
                                DflashError *error); /* messages name the file */
void dflash_shards_close(DflashShards *shards);

/* As dflash_safetensors_find, and messages name the file; the tensor points into the mapping of shards->shards[*shard].
 */
DflashStatus dflash_shards_find(DflashShards *shards, const char *name, DflashTensor *tensor, int64_t *shard,
                                DflashError *error);

/* "folder/file"; free() releases. NULL: memory is out. */
char *dflash_shards_path(const DflashShards *shards, const char *file);

/* Where the data lies at an address that is no multiple of 4, *owned becomes a copy and the tensor points at it;
 * else *owned is NULL. */
DflashStatus dflash_tensor_align(DflashTensor *tensor, const char *name, void **owned, DflashError *error);

#endif
