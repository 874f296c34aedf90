/* The goldens of a self test: made in memory, each once. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "golden/shapes.h"
#include "run/selftest_parts.h"

static bool grow(void **array, int64_t count, int64_t *capacity, size_t size) {
  if (count < *capacity) return true;
  int64_t wanted = *capacity > 0 ? 2 * *capacity : 16;
  void *grown = realloc(*array, (size_t)wanted * size);
  if (grown == NULL) return false;
  *array = grown;
  *capacity = wanted;
  return true;
}

static DflashStatus open_material(const char *shape, DflashMaterial **material, DflashError *error) {
  const char *text = dflash_shape_recipe(shape);
  if (text == NULL) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "shape '%s' is unknown", shape);
  DflashRecipe recipe;
  cJSON *owner = NULL;
  DflashStatus status = dflash_recipe_from_json(text, &recipe, &owner, error);
  if (status == DFLASH_OK) status = dflash_material_open(&recipe, NULL, material, error);
  cJSON_Delete(owner);
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "shape %s", shape);
}

static DflashStatus find_shape(DflashSelfGoldens *goldens, const char *name, int64_t *index, DflashError *error) {
  for (int64_t i = 0; i < goldens->shape_count; i++)
    if (strcmp(goldens->shapes[i].name, name) == 0) {
      *index = i;
      return DFLASH_OK;
    }
  void *array = goldens->shapes;
  if (!grow(&array, goldens->shape_count, &goldens->shape_capacity, sizeof *goldens->shapes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a shape");
  goldens->shapes = array;
  DflashMaterial *material = NULL;
  DflashStatus status = open_material(name, &material, error);
  if (status != DFLASH_OK) return status;
  *index = goldens->shape_count++;
  goldens->shapes[*index].material = material;
  snprintf(goldens->shapes[*index].name, sizeof goldens->shapes[*index].name, "%s", name);
  return DFLASH_OK;
}

static DflashStatus make(DflashSelfGoldens *goldens, DflashSelfGolden *golden, DflashError *error) {
  char shape[64];
  const char *slash = strchr(golden->name, '/');
  if (slash == NULL || slash - golden->name >= (ptrdiff_t)sizeof shape)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "golden '%s' is not SHAPE/CASE", golden->name);
  snprintf(shape, sizeof shape, "%.*s", (int)(slash - golden->name), golden->name);
  DflashStatus status = find_shape(goldens, shape, &golden->shape, error);
  if (status != DFLASH_OK) return status;
  const DflashMaterial *material = goldens->shapes[golden->shape].material;
  status = dflash_material_case(material, slash + 1, NULL, &golden->c, error);
  golden->ready = status == DFLASH_OK;
  if (status == DFLASH_OK)
    status = dflash_trial_profile(dflash_material_geometry(material), dflash_material_weights(material),
                                  golden->profile, &golden->c, error);
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "golden %s", golden->name);
}

static DflashSelfGolden *add(DflashSelfGoldens *goldens) {
  void *array = goldens->at;
  if (!grow(&array, goldens->count, &goldens->capacity, sizeof(void *))) return NULL;
  goldens->at = array;
  DflashSelfGolden *golden = calloc(1, sizeof *golden);
  if (golden != NULL) goldens->at[goldens->count++] = golden;
  return golden;
}

DflashStatus dflash_self_golden(DflashSelfGoldens *goldens, const char *name, int32_t profile,
                                const DflashSelfGolden **golden, DflashError *error) {
  for (int64_t i = 0; i < goldens->count; i++)
    if (goldens->at[i]->profile == profile && strcmp(goldens->at[i]->name, name) == 0) {
      *golden = goldens->at[i];
      return DFLASH_OK;
    }
  DflashSelfGolden *fresh = add(goldens);
  if (fresh == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a golden");
  snprintf(fresh->name, sizeof fresh->name, "%s", name);
  fresh->profile = profile;
  *golden = fresh;
  return make(goldens, fresh, error);
}

const DflashMaterial *dflash_self_material(const DflashSelfGoldens *goldens, const DflashSelfGolden *golden) {
  return goldens->shapes[golden->shape].material;
}

void dflash_self_goldens_close(DflashSelfGoldens *goldens) {
  for (int64_t i = 0; i < goldens->count; i++) {
    if (goldens->at[i]->ready) dflash_case_close(&goldens->at[i]->c);
    free(goldens->at[i]);
  }
  for (int64_t i = 0; i < goldens->shape_count; i++) dflash_material_close(goldens->shapes[i].material);
  free(goldens->at);
  free(goldens->shapes);
  *goldens = (DflashSelfGoldens){0};
}
