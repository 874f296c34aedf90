#include "model/checkpoint_rope.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "model/json.h"

static DflashStatus check_type(const cJSON *rope, const char *where, const char *key, DflashError *error) {
  const cJSON *item = dflash_json_get(rope, key);
  const char *name = cJSON_GetStringValue(item);
  if (item == NULL || (name != NULL && strcmp(name, "default") == 0)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s.%s is %.64s, expected default: rotation has no scaling",
                          where, key, name == NULL ? "no string" : name);
}

static DflashStatus check_partial(const cJSON *object, const char *where, DflashError *error) {
  const cJSON *item = dflash_json_get(object, "partial_rotary_factor");
  if (item == NULL || (cJSON_IsNumber(item) && item->valuedouble == 1)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "%s: partial_rotary_factor is %g, expected 1: every pair of a head is rotated", where,
                          cJSON_IsNumber(item) ? item->valuedouble : 0.0);
}

static DflashStatus check_object(const cJSON *owner, const char *key, DflashError *error) {
  const cJSON *rope = dflash_json_get(owner, key);
  if (rope == NULL) return DFLASH_OK;
  if (!cJSON_IsObject(rope)) return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is no object", key);
  DflashStatus status = check_type(rope, key, "rope_type", error);
  if (status == DFLASH_OK) status = check_type(rope, key, "type", error);
  return status == DFLASH_OK ? check_partial(rope, key, error) : status;
}

static DflashStatus check_level(const cJSON *level, const char *where, DflashError *error) {
  DflashStatus status = check_object(level, "rope_parameters", error);
  if (status == DFLASH_OK) status = check_object(level, "rope_scaling", error);
  return status == DFLASH_OK ? check_partial(level, where, error) : status;
}

static const cJSON *find_theta(const cJSON *level) {
  const cJSON *nested = dflash_json_get(dflash_json_get(level, "rope_parameters"), "rope_theta");
  return nested != NULL ? nested : dflash_json_get(level, "rope_theta");
}

DflashStatus dflash_checkpoint_rope(const cJSON *root, double *theta, DflashError *error) {
  const cJSON *inner = dflash_json_get(root, "dflash_config");
  DflashStatus status = check_level(root, "top level", error);
  if (status == DFLASH_OK) status = check_level(inner, "dflash_config", error);
  if (status != DFLASH_OK) return status;
  const cJSON *item = find_theta(inner);
  if (item == NULL) item = find_theta(root);
  if (!cJSON_IsNumber(item))
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "rope_parameters.rope_theta or rope_theta is %s, expected a number",
                            item == NULL ? "missing" : "no number");
  *theta = item->valuedouble;
  return DFLASH_OK;
}
