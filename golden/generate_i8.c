#include "golden/generate_i8.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "dflash/backend.h"
#include "golden/draw.h"
#include "golden/oracle.h"

/* ---- the recipe's list ---- */

bool dflash_profiles_i8(const char *profiles) { return profiles && *profiles; }

DflashStatus dflash_profiles_check(const char *profiles, DflashError *error) {
  if (!dflash_profiles_i8(profiles)) return DFLASH_OK;
  for (const char *at = profiles;; at++) {
    size_t length = strcspn(at, ",");
    if (length != 2 || strncmp(at, "i8", length) != 0)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                              "profile '%.*s' has no values to add to a golden; i8 has (exact ones are always there)",
                              (int)length, at);
    at += length;
    if (!*at) return DFLASH_OK;
  }
}

/* ---- matrices ---- */

static bool any_found(const DflashMaterial *m) {
  DflashWeightSet view = {.weights = m->weights};
  view.layers = (DflashLayerWeights *)(uintptr_t)m->weights.layers;
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&m->geometry, i, &entry);
    if (entry.kind == DFLASH_KIND_MATRIX && dflash_weight_at(&m->geometry, &view, i)->storage == DFLASH_STORAGE_Q4TP)
      return true;
  }
  return false;
}

static bool any_drawn(const DflashMaterial *m) {
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&m->geometry, i, &entry);
    if (entry.kind == DFLASH_KIND_MATRIX && dflash_draw_storage(&entry, m->recipe.storage) == DFLASH_STORAGE_Q4TP)
      return true;
  }
  return false;
}

DflashStatus dflash_i8_possible(const DflashMaterial *m, DflashError *error) {
  if (!dflash_profiles_i8(m->recipe.profiles)) return DFLASH_OK;
  if (m->has_head && m->head.tensor.storage == DFLASH_STORAGE_Q4TP) return DFLASH_OK;
  if (m->recipe.weights_path ? any_found(m) : any_drawn(m)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "profile i8 rounds activations of q4tp matrices, and no matrix here is q4tp");
}

/* ---- values ---- */

/* Inputs and the operations are the case's own; only what is computed belongs to the twin. */
static DflashStatus open_twin(const DflashGeometry *geometry, const DflashCase *c, DflashCase *twin,
                              DflashError *error) {
  DflashStatus status = dflash_case_open(twin, geometry, c->name, error);
  if (status != DFLASH_OK) return status;
  twin->anchor_pos = c->anchor_pos, twin->anchor_token = c->anchor_token;
  twin->sizes = c->sizes, twin->context_first = c->context_first;
  twin->ops = c->ops, twin->op_count = c->op_count;
  twin->taps = c->taps, twin->tap_rows = c->tap_rows, twin->h = c->h;
  twin->exact = c->exact;
  twin->profile = DFLASH_PROFILE_I8;
  return DFLASH_OK;
}

static void close_twin(DflashCase *twin) {
  twin->ops = NULL;
  dflash_case_close(twin);
}

static void keep_different(const DflashGeometry *geometry, DflashCase *c, DflashCase *twin) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++) {
    const DflashValue *exact = dflash_case_value(c, stage, layer);
    DflashValue *other = dflash_case_value(twin, stage, layer);
    size_t bytes = (size_t)(exact->rows * exact->width) * sizeof(float);
    if (!other->data || memcmp(exact->data, other->data, bytes) == 0) continue;
    c->stages_i8[stage * c->layers + layer] = *other;
    *other = (DflashValue){0};
  }
}

DflashStatus dflash_i8_values(const DflashGeometry *geometry, const DflashWeights *weights, DflashPool *pool,
                              DflashCase *c, DflashError *error) {
  const DflashEvaluate options = {
      .geometry = geometry, .weights = weights, .pool = pool, .profile = DFLASH_PROFILE_I8, .values = true};
  DflashCase twin;
  c->stages_i8 = dflash_alloc((size_t)c->layers * DFLASH_STAGE_COUNT, sizeof *c->stages_i8);
  if (!c->stages_i8) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "case %s: no memory for profile i8", c->name);
  DflashStatus status = open_twin(geometry, c, &twin, error);
  if (status != DFLASH_OK) return status;
  status = dflash_evaluate_case(&options, &twin, error);
  if (status == DFLASH_OK) keep_different(geometry, c, &twin);
  close_twin(&twin);
  return status;
}
