#include "model/safetensors_shards.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/json.h"

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

static DflashStatus out_of_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "safetensors: out of memory");
}

char *dflash_shards_path(const DflashShards *shards, const char *file) {
  char *path = NULL;
  return asprintf(&path, "%s/%s", shards->folder, file) < 0 ? NULL : path;
}

static int is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int is_index(const char *path) {
  const char ending[] = ".index.json";
  size_t length = strlen(path), tail = sizeof ending - 1;
  return length >= tail && strcmp(path + length - tail, ending) == 0;
}

static int file_exists(const DflashShards *shards, const char *file) {
  char *path = dflash_shards_path(shards, file);
  int exists = path != NULL && access(path, F_OK) == 0;
  free(path);
  return exists;
}

/* The folder and the name of the file to begin with. */
static DflashStatus split_path(const char *path, DflashShards *shards, char **first, DflashError *error) {
  const char *slash = strrchr(path, '/');
  if (is_folder(path)) {
    shards->folder = strdup(path);
    if (shards->folder != NULL) *first = strdup(file_exists(shards, single_name) ? single_name : index_name);
  } else if (slash == NULL) {
    shards->folder = strdup(".");
    *first = strdup(path);
  } else {
    shards->folder = strndup(path, (size_t)(slash - path));
    *first = strdup(slash + 1);
  }
  return shards->folder != NULL && *first != NULL ? DFLASH_OK : out_of_memory(error);
}

static DflashStatus read_index(DflashShards *shards, const char *file, DflashError *error) {
  char *path = dflash_shards_path(shards, file), *text = NULL;
  uint64_t size = 0;
  if (path == NULL) return out_of_memory(error);
  if (strcmp(file, index_name) == 0 && access(path, F_OK) != 0) {
    free(path);
    return dflash_error_set(error, DFLASH_IO, "%s: holds neither %s nor %s", shards->folder, single_name, index_name);
  }
  DflashStatus status = dflash_read_file(path, DFLASH_JSON_LIMIT, &text, &size, error);
  if (status == DFLASH_OK) status = dflash_json_parse(text, size, path, &shards->index, error);
  if (status == DFLASH_OK && !cJSON_IsObject(dflash_json_get(shards->index, "weight_map")))
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: weight_map is no object", path);
  free(text);
  free(path);
  return status;
}

DflashStatus dflash_shards_open(const char *path, DflashShards *shards, DflashError *error) {
  char *first = NULL;
  *shards = (DflashShards){0};
  DflashStatus status = split_path(path, shards, &first, error);
  if (status == DFLASH_OK && first != NULL && is_index(first)) {
    status = read_index(shards, first, error);
  } else if (status == DFLASH_OK) {
    shards->single = first;
    first = NULL;
  }
  free(first);
  if (status != DFLASH_OK) dflash_shards_close(shards);
  return status;
}

static void close_shard(DflashShard *shard) {
  dflash_safetensors_close(shard->tensors);
  dflash_unmap_file(&shard->mapping);
  free(shard->file);
}

void dflash_shards_close(DflashShards *shards) {
  for (int64_t i = 0; i < shards->count; i++) close_shard(&shards->shards[i]);
  free(shards->shards);
  cJSON_Delete(shards->index);
  free(shards->single);
  free(shards->folder);
  *shards = (DflashShards){0};
}

/* An index comes from outside: it may only name files of its own folder. */
static bool is_plain_name(const char *file) {
  return file != NULL && *file != '\0' && strpbrk(file, "/\\") == NULL && strstr(file, "..") == NULL;
}

/* The file that holds a tensor. */
static DflashStatus shard_file(const DflashShards *shards, const char *name, const char **file, DflashError *error) {
  *file = shards->single;
  if (shards->index == NULL) return DFLASH_OK;
  const cJSON *item = dflash_json_get(dflash_json_get(shards->index, "weight_map"), name);
  if (item == NULL)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: tensor %s is missing from the index", shards->folder, name);
  *file = cJSON_GetStringValue(item);
  if (is_plain_name(*file)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "%s: the index has %s in %.200s, expected a file name without / and ..", shards->folder, name,
                          *file == NULL ? "no file" : *file);
}

static DflashStatus map_shard(const DflashShards *shards, const char *file, DflashShard *shard, DflashError *error) {
  *shard = (DflashShard){.file = strdup(file)};
  char *path = dflash_shards_path(shards, file);
  DflashStatus status = shard->file != NULL && path != NULL ? DFLASH_OK : out_of_memory(error);
  if (status == DFLASH_OK) status = dflash_map_file(path, &shard->mapping, error);
  if (status == DFLASH_OK) {
    status = dflash_safetensors_parse(shard->mapping.data, shard->mapping.size, &shard->tensors, error);
    if (status != DFLASH_OK) dflash_error_prefix(error, "%s", path);
  }
  free(path);
  if (status != DFLASH_OK) close_shard(shard);
  return status;
}

/* The place of a file among the mapped ones; maps it when it is not there yet. */
static DflashStatus find_shard(DflashShards *shards, const char *file, int64_t *place, DflashError *error) {
  for (*place = 0; *place < shards->count; (*place)++)
    if (strcmp(shards->shards[*place].file, file) == 0) return DFLASH_OK;
  DflashShard *grown = realloc(shards->shards, (size_t)(shards->count + 1) * sizeof *grown);
  if (grown == NULL) return out_of_memory(error);
  shards->shards = grown;
  DflashStatus status = map_shard(shards, file, &grown[shards->count], error);
  if (status == DFLASH_OK) shards->count++;
  return status;
}

DflashStatus dflash_shards_find(DflashShards *shards, const char *name, DflashTensor *tensor, int64_t *shard,
                                DflashError *error) {
  const char *file;
  DflashStatus status = shard_file(shards, name, &file, error);
  if (status == DFLASH_OK) status = find_shard(shards, file, shard, error);
  if (status != DFLASH_OK) return status;
  status = dflash_safetensors_find(shards->shards[*shard].tensors, name, tensor, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s/%s", shards->folder, file);
  return status;
}

DflashStatus dflash_tensor_align(DflashTensor *tensor, const char *name, void **owned, DflashError *error) {
  *owned = NULL;
  if ((uintptr_t)tensor->data % 4 == 0) return DFLASH_OK;
  *owned = dflash_alloc(tensor->bytes, 1);
  if (*owned == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "tensor %s: no memory for an aligned copy", name);
  memcpy(*owned, tensor->data, tensor->bytes);
  tensor->data = *owned;
  return DFLASH_OK;
}
