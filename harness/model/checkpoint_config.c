#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "model/checkpoint.h"
#include "model/checkpoint_rope.h"
#include "model/geometry.h"
#include "model/json.h"

#define ARCHITECTURE "DFlash2DraftModel"

/* A key of the configuration and its place in the geometry. */
typedef struct Key {
  const char *name;
  size_t offset;
  bool second_only; /* DFlash 1 lacks it */
} Key;

static const Key integer_keys[] = {
    {"hidden_size", offsetof(DflashGeometry, hidden), false},
    {"intermediate_size", offsetof(DflashGeometry, intermediate), false},
    {"num_hidden_layers", offsetof(DflashGeometry, layers), false},
    {"num_attention_heads", offsetof(DflashGeometry, heads), false},
    {"num_key_value_heads", offsetof(DflashGeometry, kv_heads), false},
    {"head_dim", offsetof(DflashGeometry, head_dim), false},
    {"vocab_size", offsetof(DflashGeometry, vocab), false},
    {"num_target_layers", offsetof(DflashGeometry, target_layers), false},
    {"block_size", offsetof(DflashGeometry, block), false},
    {"mask_token_id", offsetof(DflashGeometry, mask_token), false},
    {"conv_kernel_size", offsetof(DflashGeometry, conv_kernel), true},
    {"conv_group_size", offsetof(DflashGeometry, conv_group), true},
    {"selector_rank", offsetof(DflashGeometry, selector_rank), true},
    {"selector_top_k", offsetof(DflashGeometry, selector_top), true},
};

/* A key of dflash_config wins over one of the top level. */
static const cJSON *find_key(const cJSON *root, const char *key) {
  const cJSON *inner = dflash_json_get(dflash_json_get(root, "dflash_config"), key);
  return inner != NULL ? inner : dflash_json_get(root, key);
}

static DflashStatus check_architecture(const cJSON *root, DflashError *error) {
  const cJSON *list = dflash_json_get(root, "architectures");
  const char *first = cJSON_IsArray(list) ? cJSON_GetStringValue(cJSON_GetArrayItem(list, 0)) : NULL;
  if (first == NULL)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "architectures names none, expected " ARCHITECTURE);
  if (strcmp(first, ARCHITECTURE) == 0 && cJSON_GetArraySize(list) == 1) return DFLASH_OK;
  if (strcmp(first, "DFlashDraftModel") == 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "architectures is DFlashDraftModel: a DFlash 1 checkpoint has no convolution and no "
                            "selector, expected " ARCHITECTURE);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "architectures is %.64s%s, expected " ARCHITECTURE " alone",
                          first, cJSON_GetArraySize(list) == 1 ? "" : " and others");
}

static DflashStatus refuse_true(const cJSON *root, const char *key, const char *reason, DflashError *error) {
  const cJSON *item = find_key(root, key);
  if (item == NULL || cJSON_IsFalse(item)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is %s, expected false: %s", key,
                          cJSON_IsTrue(item) ? "true" : "no boolean", reason);
}

static DflashStatus check_block(const cJSON *root, DflashError *error) {
  DflashStatus status = refuse_true(root, "attention_bias", "projections have no bias", error);
  if (status == DFLASH_OK) status = refuse_true(root, "is_causal", "rows of a block see each other", error);
  const cJSON *act = find_key(root, "hidden_act");
  const char *name = cJSON_GetStringValue(act);
  if (status == DFLASH_OK && act != NULL && (name == NULL || strcmp(name, "silu") != 0))
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "hidden_act is %.64s, expected silu",
                              name == NULL ? "no string" : name);
  return status;
}

static DflashStatus read_integer(const cJSON *root, const Key *key, DflashGeometry *geometry, DflashError *error) {
  const cJSON *item = find_key(root, key->name);
  int64_t *value = (int64_t *)(void *)((char *)geometry + key->offset);
  if (item == NULL)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is missing%s", key->name,
                            key->second_only ? ": a DFlash 1 checkpoint has no convolution and no selector" : "");
  if (!dflash_json_integer(item, value))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is no integer", key->name);
  return DFLASH_OK;
}

static DflashStatus read_numbers(const cJSON *root, DflashGeometry *geometry, DflashError *error) {
  for (size_t i = 0; i < sizeof integer_keys / sizeof integer_keys[0]; i++) {
    DflashStatus status = read_integer(root, &integer_keys[i], geometry, error);
    if (status != DFLASH_OK) return status;
  }
  const cJSON *eps = find_key(root, "rms_norm_eps");
  if (!cJSON_IsNumber(eps))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "rms_norm_eps is %s, expected a number",
                            eps == NULL ? "missing" : "no number");
  geometry->eps = eps->valuedouble;
  return dflash_checkpoint_rope(root, &geometry->rope_theta, error);
}

static DflashStatus read_taps(const cJSON *root, DflashList *taps, DflashError *error) {
  const cJSON *list = find_key(root, "target_layer_ids"), *item;
  int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  if (count < 1 || count > DFLASH_LIST_MAX)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "target_layer_ids is %s, expected a list of 1 to %d layers",
                            list == NULL ? "missing" : "no such list", DFLASH_LIST_MAX);
  cJSON_ArrayForEach(item, list) {
    if (!dflash_json_integer(item, &taps->at[taps->count]))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "target_layer_ids[%lld] is no integer",
                              (long long)taps->count);
    taps->count++;
  }
  return DFLASH_OK;
}

/* The window of one layer: sliding_window, which need not be there where no layer slides, or 0. */
static DflashStatus read_window(const cJSON *root, const cJSON *type, int64_t layer, int64_t *window,
                                DflashError *error) {
  const char *name = cJSON_GetStringValue(type);
  *window = 0;
  if (name != NULL && strcmp(name, "full_attention") == 0) return DFLASH_OK;
  if (name == NULL || strcmp(name, "sliding_attention") != 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "layer_types[%lld] is %.64s, expected sliding_attention or full_attention",
                            (long long)layer, name == NULL ? "no string" : name);
  if (!dflash_json_integer(find_key(root, "sliding_window"), window) || *window < 1)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "sliding_window is no positive integer, and layer_types[%lld] is sliding_attention",
                            (long long)layer);
  return DFLASH_OK;
}

static DflashStatus read_windows(const cJSON *root, DflashGeometry *geometry, DflashError *error) {
  const cJSON *types = find_key(root, "layer_types"), *type;
  DflashList windows = {0};
  if (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != geometry->layers || geometry->layers > DFLASH_LIST_MAX)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "layer_types is %s, expected a list of num_hidden_layers (%lld) types, at most %d",
                            types == NULL ? "missing" : "no such list", (long long)geometry->layers, DFLASH_LIST_MAX);
  cJSON_ArrayForEach(type, types) {
    DflashStatus status = read_window(root, type, windows.count, &windows.at[windows.count], error);
    if (status != DFLASH_OK) return status;
    windows.count++;
  }
  bool alike = true;
  for (int64_t i = 1; i < windows.count; i++) alike = alike && windows.at[i] == windows.at[0];
  if (alike)
    geometry->window = windows.at[0];
  else
    geometry->windows = windows;
  return DFLASH_OK;
}

static DflashStatus read_config(const cJSON *root, DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = check_architecture(root, error);
  if (status == DFLASH_OK) status = check_block(root, error);
  if (status == DFLASH_OK) status = read_numbers(root, geometry, error);
  if (status == DFLASH_OK) status = read_taps(root, &geometry->taps, error);
  if (status == DFLASH_OK) status = read_windows(root, geometry, error);
  return status == DFLASH_OK ? dflash_geometry_check(geometry, error) : status;
}

DflashStatus dflash_checkpoint_config(const char *json, uint64_t size, DflashGeometry *geometry, DflashError *error) {
  cJSON *root;
  *geometry = (DflashGeometry){0};
  DflashStatus status = dflash_json_parse(json, size, "config.json", &root, error);
  if (status != DFLASH_OK) return status;
  status = read_config(root, geometry, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "config.json");
  cJSON_Delete(root);
  return status;
}
