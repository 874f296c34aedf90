/* Recipes as JSON. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "golden/draw.h"
#include "golden/plan.h"
#include "golden/recipe.h"
#include "model/json.h"

static const uint64_t EXACT_LIMIT = UINT64_C(1) << 53; /* larger integers stand as text */

/* Members that are plain integers. */
typedef struct Integer {
  const char *name;
  size_t offset;
} Integer;
static const Integer INTEGERS[] = {
    {"rows", offsetof(DflashRecipe, rows)},
    {"n_draft", offsetof(DflashRecipe, n_draft)},
    {"head_width", offsetof(DflashRecipe, head_width)},
    {"context", offsetof(DflashRecipe, context)},
};
enum { INTEGER_COUNT = sizeof INTEGERS / sizeof *INTEGERS };

/* ---- writing ---- */

static void add_seed(cJSON *object, uint64_t seed) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, seed);
  if (seed <= EXACT_LIMIT)
    cJSON_AddNumberToObject(object, "seed", (double)seed);
  else
    cJSON_AddStringToObject(object, "seed", text);
}

static void add_members(cJSON *object, const DflashRecipe *recipe) {
  cJSON_AddNumberToObject(object, "generator", DFLASH_GENERATOR_VERSION);
  if (*recipe->preset) cJSON_AddStringToObject(object, "preset", recipe->preset);
  if (recipe->geometry.hidden) cJSON_AddItemToObject(object, "geometry", dflash_geometry_to_json(&recipe->geometry));
  add_seed(object, recipe->seed);
  cJSON_AddStringToObject(object, "storage", recipe->storage);
  if (recipe->cases && *recipe->cases) cJSON_AddStringToObject(object, "cases", recipe->cases);
  for (size_t i = 0; i < INTEGER_COUNT; i++) {
    const int64_t *value = (const int64_t *)(const void *)((const char *)recipe + INTEGERS[i].offset);
    if (*value >= 0) cJSON_AddNumberToObject(object, INTEGERS[i].name, (double)*value);
  }
  if (recipe->stress) {
    char text[80];
    dflash_stress_text(recipe->stress, text);
    cJSON_AddStringToObject(object, "stress", text);
  }
  if (recipe->plan_count)
    cJSON_AddItemToObject(object, "plans", dflash_plans_to_json(recipe->plans, recipe->plan_count));
  if (recipe->profiles && *recipe->profiles) cJSON_AddStringToObject(object, "profiles", recipe->profiles);
  if (recipe->weights_path) cJSON_AddStringToObject(object, "weights", recipe->weights_path);
  if (recipe->head_path) cJSON_AddStringToObject(object, "head", recipe->head_path);
  if (recipe->target_hash) cJSON_AddStringToObject(object, "target_hash", recipe->target_hash);
  if (recipe->allow_untrusted) cJSON_AddTrueToObject(object, "allow_untrusted");
}

char *dflash_recipe_to_json(const DflashRecipe *recipe) {
  cJSON *object = cJSON_CreateObject();
  if (!object) return NULL;
  add_members(object, recipe);
  char *text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  return text;
}

/* ---- reading ---- */

static DflashStatus wrong_type(const char *name, const char *expected, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: '%s' must be %s", name, expected);
}

static DflashStatus check_generator(const cJSON *item, DflashError *error) {
  int64_t version;
  if (!dflash_json_integer(item, &version)) return wrong_type("generator", "an integer", error);
  if (version == DFLASH_GENERATOR_VERSION) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "recipe: made by generator %lld, this one is %d",
                          (long long)version, DFLASH_GENERATOR_VERSION);
}

static DflashStatus read_seed(const cJSON *item, uint64_t *seed, DflashError *error) {
  int64_t number;
  if (dflash_json_integer(item, &number) && number >= 0) return *seed = (uint64_t)number, DFLASH_OK;
  const char *text = cJSON_GetStringValue(item);
  char *end = NULL;
  errno = 0;
  if (text && *text >= '0' && *text <= '9') *seed = strtoull(text, &end, 10);
  return end && !*end && errno == 0 ? DFLASH_OK : wrong_type("seed", "an integer from 0 to 2^64 - 1", error);
}

static DflashStatus read_storage(const cJSON *item, DflashRecipe *recipe, DflashError *error) {
  const DflashWeightEntry any = {.kind = DFLASH_KIND_MATRIX};
  const char *text = cJSON_GetStringValue(item);
  if (!text || dflash_draw_storage(&any, text) < 0)
    return wrong_type("storage", "one of sidecar, f32, f16, bf16, q8_2f", error);
  snprintf(recipe->storage, sizeof recipe->storage, "%s", text);
  return DFLASH_OK;
}

static DflashStatus read_stress(const cJSON *item, DflashRecipe *recipe, DflashError *error) {
  const char *text = cJSON_GetStringValue(item);
  if (!text) return wrong_type("stress", "a text", error);
  DflashStatus status = dflash_stress_parse(text, &recipe->stress, error);
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "recipe");
}

static DflashStatus read_text(const cJSON *item, const char **text, DflashError *error) {
  *text = cJSON_GetStringValue(item);
  return *text ? DFLASH_OK : wrong_type(item->string, "a text", error);
}

/* "set": {"conv_kernel": "3"}: fields of the preset's geometry that differ. */
static DflashStatus read_changes(const cJSON *changes, DflashRecipe *recipe, DflashError *error) {
  const cJSON *item;
  if (!cJSON_IsObject(changes)) return wrong_type("set", "an object of texts", error);
  cJSON_ArrayForEach(item, changes) {
    const char *value = cJSON_GetStringValue(item);
    if (!value) return wrong_type("set", "an object of texts", error);
    DflashStatus status = dflash_geometry_set(&recipe->geometry, item->string, value, error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static DflashStatus read_integer(const cJSON *item, DflashRecipe *recipe, DflashError *error) {
  for (size_t i = 0; i < INTEGER_COUNT; i++) {
    if (strcmp(item->string, INTEGERS[i].name) != 0) continue;
    int64_t value;
    if (!dflash_json_integer(item, &value) || value < 0)
      return wrong_type(item->string, "an integer, 0 or more", error);
    memcpy((char *)recipe + INTEGERS[i].offset, &value, sizeof value);
    return DFLASH_OK;
  }
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "recipe: unknown member '%s'; known are generator, preset, set, geometry, seed, storage, "
                          "stress, cases, plans, rows, n_draft, head_width, context, profiles, weights, head, "
                          "target_hash, allow_untrusted, about",
                          item->string);
}

/* preset, geometry and set were read before: their order matters. */
static DflashStatus read_member(const cJSON *item, DflashRecipe *recipe, DflashError *error) {
  const char *name = item->string;
  if (strcmp(name, "preset") == 0 || strcmp(name, "geometry") == 0 || strcmp(name, "set") == 0 ||
      strcmp(name, "about") == 0)
    return DFLASH_OK;
  if (strcmp(name, "generator") == 0) return check_generator(item, error);
  if (strcmp(name, "seed") == 0) return read_seed(item, &recipe->seed, error);
  if (strcmp(name, "storage") == 0) return read_storage(item, recipe, error);
  if (strcmp(name, "stress") == 0) return read_stress(item, recipe, error);
  if (strcmp(name, "plans") == 0) return dflash_plans_from_json(item, recipe, error);
  if (strcmp(name, "cases") == 0) return read_text(item, &recipe->cases, error);
  if (strcmp(name, "profiles") == 0) return read_text(item, &recipe->profiles, error);
  if (strcmp(name, "weights") == 0) return read_text(item, &recipe->weights_path, error);
  if (strcmp(name, "head") == 0) return read_text(item, &recipe->head_path, error);
  if (strcmp(name, "target_hash") == 0) return read_text(item, &recipe->target_hash, error);
  if (strcmp(name, "allow_untrusted") != 0) return read_integer(item, recipe, error);
  recipe->allow_untrusted = cJSON_IsTrue(item);
  return cJSON_IsBool(item) ? DFLASH_OK : wrong_type(name, "true or false", error);
}

static DflashStatus read_geometry(const cJSON *object, DflashRecipe *recipe, DflashError *error) {
  const cJSON *geometry = dflash_json_get(object, "geometry"), *changes = dflash_json_get(object, "set");
  const cJSON *preset = dflash_json_get(object, "preset");
  if (preset && !cJSON_IsString(preset)) return wrong_type("preset", "a text", error);
  DflashStatus status = dflash_recipe_open(cJSON_GetStringValue(preset), recipe, error);
  if (status == DFLASH_OK && geometry) status = dflash_geometry_from_json(geometry, &recipe->geometry, error);
  if (status == DFLASH_OK && changes) status = read_changes(changes, recipe, error);
  return status;
}

static DflashStatus read_recipe(const cJSON *object, DflashRecipe *recipe, DflashError *error) {
  DflashStatus status = read_geometry(object, recipe, error);
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    if (status != DFLASH_OK) return status;
    status = read_member(item, recipe, error);
  }
  if (status == DFLASH_OK && !recipe->geometry.hidden && !recipe->weights_path)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "recipe: one of preset, geometry and weights is needed");
  return status;
}

DflashStatus dflash_recipe_from_json(const char *text, DflashRecipe *recipe, cJSON **owner, DflashError *error) {
  DflashStatus status = dflash_json_parse(text, strlen(text), "recipe", owner, error);
  if (status != DFLASH_OK) return status;
  status = read_recipe(*owner, recipe, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  cJSON_Delete(*owner);
  *owner = NULL;
  return status;
}
