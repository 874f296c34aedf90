/* Where weights come from: files, or counters. */
#include "golden/generate_material.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "golden/cases.h"
#include "golden/draw.h"
#include "golden/exact.h"
#include "golden/generate_files.h"
#include "golden/generate_i8.h"
#include "golden/recipe.h"

/* ---- drawing ---- */

static int exact_kind(int flags) {
  if (flags & DFLASH_CASE_INTEGER) return DFLASH_EXACT_INTEGER;
  return flags & DFLASH_CASE_24BIT ? DFLASH_EXACT_24BIT : DFLASH_EXACT_NONE;
}

static DflashStatus draw_one(DflashMaterial *m, const DflashWeightEntry *entry, DflashPool *pool, DflashTensor *tensor,
                             DflashError *error) {
  int32_t storage = dflash_draw_storage(entry, m->recipe.storage);
  int kind = exact_kind(m->flags);
  DflashStatus status =
      kind == DFLASH_EXACT_NONE
          ? dflash_draw_weight(&m->geometry, entry, storage, m->recipe.seed, m->recipe.stress, pool, tensor, error)
          : dflash_exact_weight(kind, &m->geometry, entry, storage, m->recipe.seed, pool, tensor, error);
  if (status == DFLASH_OK) m->owned[m->owned_count++] = (void *)(uintptr_t)tensor->data;
  return status;
}

static DflashStatus draw_head(DflashMaterial *m, DflashPool *pool, DflashError *error) {
  DflashWeightEntry entry;
  dflash_weight_head_entry(&m->geometry, &entry);
  return draw_one(m, &entry, pool, &m->weights.head, error);
}

static void repeat_rows(DflashMaterial *m) {
  int64_t period, rows;
  if (!(m->flags & DFLASH_CASE_TIES) || dflash_case_ties(&m->geometry, &period, &rows)) return;
  dflash_draw_repeat_rows(&m->weights.head, period, rows);
  if (!m->recipe.weights_path) dflash_draw_repeat_rows(&m->weights.successor, period, 2 * period);
}

static DflashStatus draw_weights(DflashMaterial *m, DflashPool *pool, DflashError *error) {
  DflashStatus status = dflash_exact_check(exact_kind(m->flags), &m->geometry, error);
  if (status == DFLASH_OK) status = dflash_weight_set_open(&m->geometry, &m->set, error);
  if (status != DFLASH_OK) return status;
  m->has_set = 1;
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&m->geometry, i, &entry);
    status = draw_one(m, &entry, pool, dflash_weight_at(&m->geometry, &m->set, i), error);
    if (status != DFLASH_OK) return status;
  }
  m->weights = m->set.weights;
  if (m->flags & DFLASH_CASE_INTEGER) dflash_exact_base(&m->geometry, &m->weights);
  return DFLASH_OK;
}

/* The plans of the recipe's own, or of the kinds that it names. */
static DflashStatus list_plans(DflashMaterial *m, DflashError *error) {
  size_t kind, room = dflash_case_kind_count();
  if (room < DFLASH_PLANS_MAX) room = DFLASH_PLANS_MAX;
  m->plans = calloc(room, sizeof *m->plans);
  if (!m->plans) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the list of cases");
  for (int64_t i = 0; i < m->recipe.plan_count; i++) m->plans[m->plan_count++] = m->recipe.plans[i];
  for (const char *at = m->cases; (at = dflash_case_next(at, &kind)) != NULL; m->plan_count++)
    (void)dflash_case_plan(kind, &m->recipe, &m->plans[m->plan_count]); /* possible: selection asked */
  for (int64_t i = 0; i < m->plan_count; i++) m->flags |= m->plans[i].flags;
  if (m->recipe.stress && m->flags & DFLASH_CASE_EXACT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "case %s has data of its own, which no stress changes",
                            m->plans[0].name);
  return DFLASH_OK;
}

static DflashStatus find(DflashMaterial *m, const DflashRecipe *recipe, DflashError *error) {
  DflashStatus status = dflash_material_open_weights(m, recipe, error);
  if (status != DFLASH_OK) return status;
  DflashRecipe found = *recipe;
  found.geometry = m->geometry;
  status = dflash_recipe_resolve(&found, &m->recipe, &m->cases, error);
  if (status != DFLASH_OK) return status;
  status = list_plans(m, error);
  if (status != DFLASH_OK) return status;
  m->owned = calloc((size_t)dflash_weight_count(&m->geometry) + 1, sizeof *m->owned);
  if (!m->owned) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the list of weights");
  status = dflash_material_open_head(m, recipe, error);
  return status == DFLASH_OK ? dflash_i8_possible(m, error) : status;
}

DflashStatus dflash_material_find(const DflashRecipe *recipe, DflashMaterial **material, DflashError *error) {
  *material = calloc(1, sizeof **material);
  if (!*material) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the weights");
  DflashStatus status = find(*material, recipe, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  dflash_material_close(*material);
  *material = NULL;
  return status;
}

DflashStatus dflash_material_fill(DflashMaterial *m, DflashPool *pool, DflashError *error) {
  DflashStatus status = m->recipe.weights_path ? DFLASH_OK : draw_weights(m, pool, error);
  if (status == DFLASH_OK && m->has_head)
    m->weights.head = m->head.tensor;
  else if (status == DFLASH_OK)
    status = draw_head(m, pool, error);
  if (status == DFLASH_OK) repeat_rows(m);
  return status;
}

DflashStatus dflash_material_open(const DflashRecipe *recipe, DflashPool *pool, DflashMaterial **material,
                                  DflashError *error) {
  DflashStatus status = dflash_material_find(recipe, material, error);
  if (!*material) return status;
  status = dflash_material_fill(*material, pool, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  dflash_material_close(*material);
  *material = NULL;
  return status;
}

const DflashGeometry *dflash_material_geometry(const DflashMaterial *material) { return &material->geometry; }
const DflashWeights *dflash_material_weights(const DflashMaterial *material) { return &material->weights; }

void dflash_material_close(DflashMaterial *m) {
  if (!m) return;
  for (int64_t i = 0; i < m->owned_count; i++) free(m->owned[i]);
  free(m->owned);
  free(m->cases);
  free(m->plans);
  if (m->has_set) dflash_weight_set_close(&m->set);
  if (m->has_sidecar) dflash_sidecar_close(&m->sidecar);
  if (m->has_checkpoint) dflash_checkpoint_close(&m->checkpoint);
  if (m->has_head) dflash_head_close(&m->head);
  free(m);
}
