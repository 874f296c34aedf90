#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "model/cmf.h"
#include "model/json.h"
#include "model/safetensors_shards.h"
#include "model/sidecar.h"
#include "model/storage.h"

/* A target: a CMF file, or safetensors. */
typedef struct Target {
  const char *path;
  bool is_cmf;
  DflashMapping mapping; /* of a CMF file */
  DflashCmf cmf;
  DflashShards shards;
  DflashMapping *taken; /* of the file that the head was found in */
} Target;

static const char *const head_names[] = {"lm_head.weight"};
static const char *const embedding_names[] = {"model.embed_tokens.weight", "embed_tokens.weight",
                                              "model.language_model.embed_tokens.weight"};

/* A file is CMF when it says so; everything else is taken for safetensors, whose checks then speak. */
static DflashStatus open_target(const char *path, Target *target, DflashError *error) {
  target->path = path;
  struct stat info;
  if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
    DflashStatus status = dflash_map_file(path, &target->mapping, error);
    if (status != DFLASH_OK) return status;
    target->is_cmf = dflash_cmf_is(target->mapping.data, target->mapping.size);
  }
  if (!target->is_cmf) {
    dflash_unmap_file(&target->mapping);
    return dflash_shards_open(path, &target->shards, error);
  }
  DflashStatus status = dflash_cmf_parse(target->mapping.data, target->mapping.size, &target->cmf, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", path);
  return status;
}

static void close_target(Target *target) {
  dflash_cmf_close(&target->cmf);
  dflash_shards_close(&target->shards);
  dflash_unmap_file(&target->mapping);
}

/* DFLASH_UNAVAILABLE: the target has no such tensor. */
static DflashStatus find_tensor(Target *target, const char *name, DflashTensor *tensor, DflashError *error) {
  if (!target->is_cmf) {
    int64_t shard;
    DflashStatus status = dflash_shards_find(&target->shards, name, tensor, &shard, error);
    if (status == DFLASH_OK) target->taken = &target->shards.shards[shard].mapping;
    return status;
  }
  const DflashCmfRecord *record = dflash_cmf_find(&target->cmf, name);
  if (record == NULL) return dflash_error_set(error, DFLASH_UNAVAILABLE, "tensor %s is missing", name);
  DflashStatus status = dflash_cmf_tensor(&target->cmf, record, tensor, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", target->path);
  return status;
}

/* Takes the first of the names that the target has. */
static DflashStatus find_named(Target *target, const char *const *names, size_t count, DflashHead *head,
                               DflashError *error) {
  DflashStatus status = DFLASH_UNAVAILABLE;
  for (size_t i = 0; i < count && status == DFLASH_UNAVAILABLE; i++) {
    status = find_tensor(target, names[i], &head->tensor, error);
    if (status == DFLASH_OK) snprintf(head->name, sizeof head->name, "%s", names[i]);
  }
  return status;
}

static bool says_untied(const cJSON *object) { return cJSON_IsFalse(dflash_json_get(object, "tie_word_embeddings")); }

/* Reads a configuration beside the weights when there is one. */
static DflashStatus read_config(const DflashShards *shards, cJSON **config, DflashError *error) {
  char *path = dflash_shards_path(shards, "config.json"), *text = NULL;
  uint64_t size = 0;
  struct stat info;
  DflashStatus status = DFLASH_OK;
  *config = NULL;
  if (path == NULL)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "head: out of memory");
  else if (stat(path, &info) == 0)
    status = dflash_read_file(path, DFLASH_JSON_LIMIT, &text, &size, error);
  if (status == DFLASH_OK && text != NULL) status = dflash_json_parse(text, size, "config.json", config, error);
  free(text);
  free(path);
  return status;
}

/* Without lm_head the embedding serves, unless the target says that it does not: then a part is missing. */
static DflashStatus check_tied(const Target *target, DflashError *error) {
  cJSON *root;
  DflashStatus status;
  if (target->is_cmf)
    status = dflash_json_parse(target->cmf.header, target->cmf.header_bytes, "header", &root, error);
  else
    status = read_config(&target->shards, &root, error);
  if (status == DFLASH_OK && (says_untied(root) || says_untied(dflash_json_get(root, "arch")) ||
                              says_untied(dflash_json_get(root, "text_config"))))
    status = dflash_error_set(error, DFLASH_INVALID_DATA,
                              "lm_head.weight is missing, and tie_word_embeddings is false: the embedding is no head");
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", target->path);
  cJSON_Delete(root);
  return status;
}

static DflashStatus find_head(Target *target, DflashHead *head, DflashError *error) {
  DflashStatus status = find_named(target, head_names, sizeof head_names / sizeof head_names[0], head, error);
  if (status != DFLASH_UNAVAILABLE) return status;
  status = find_named(target, embedding_names, sizeof embedding_names / sizeof embedding_names[0], head, error);
  if (status == DFLASH_UNAVAILABLE)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "%s: no head: neither lm_head.weight nor an embedding (model.embed_tokens.weight, "
                            "embed_tokens.weight, model.language_model.embed_tokens.weight) is there",
                            target->path);
  return status == DFLASH_OK ? check_tied(target, error) : status;
}

static DflashStatus check_head(const Target *target, const DflashGeometry *geometry, DflashHead *head,
                               DflashError *error) {
  DflashWeightEntry entry;
  dflash_weight_head_entry(geometry, &entry);
  memcpy(entry.name, head->name, sizeof entry.name);
  DflashStatus status = dflash_weight_check(&entry, &head->tensor, error);
  if (status == DFLASH_OK && target->is_cmf)
    status = dflash_cmf_verify(dflash_cmf_find(&target->cmf, head->name), &head->tensor, error);
  if (status == DFLASH_OK) status = dflash_tensor_align(&head->tensor, head->name, &head->owned, error);
  if (status == DFLASH_OK) status = dflash_tensor_check(&head->tensor, head->name, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", target->path);
  return status;
}

DflashStatus dflash_head_open(const char *path, const DflashGeometry *geometry, DflashHead *head, DflashError *error) {
  Target target = {.taken = &target.mapping};
  *head = (DflashHead){0};
  DflashStatus status = open_target(path, &target, error);
  if (status == DFLASH_OK) status = find_head(&target, head, error);
  if (status == DFLASH_OK) status = check_head(&target, geometry, head, error);
  if (status == DFLASH_OK) {
    head->mapping = *target.taken;
    *target.taken = (DflashMapping){0};
  } else {
    dflash_head_close(head);
  }
  close_target(&target);
  return status;
}

void dflash_head_close(DflashHead *head) {
  free(head->owned);
  dflash_unmap_file(&head->mapping);
  *head = (DflashHead){0};
}
