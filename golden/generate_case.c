/* One case: inputs from the plan, values from the oracle, and whether they prove anything. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "golden/cases.h"
#include "golden/generate_i8.h"
#include "golden/generate_material.h"
#include "golden/oracle.h"

/* ---- inputs ---- */

static DflashStatus open_arrays(const DflashGeometry *g, const DflashCasePlan *plan, DflashCase *c,
                                DflashError *error) {
  size_t tap_values = (size_t)(plan->tap_rows * dflash_geometry_tap_width(g));
  c->ops = dflash_alloc(plan->op_count ? (size_t)plan->op_count : 1, sizeof *c->ops);
  c->taps = dflash_alloc(tap_values ? tap_values : 1, sizeof *c->taps);
  c->h = dflash_alloc((size_t)(plan->rows * g->hidden), sizeof *c->h);
  c->taps_owned = c->h_owned = true;
  if (!c->ops || !c->taps || !c->h)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "case %s: no memory for its inputs", c->name);
  memcpy(c->ops, plan->ops, (size_t)plan->op_count * sizeof *c->ops);
  c->op_count = plan->op_count;
  c->tap_rows = plan->tap_rows;
  return DFLASH_OK;
}

DflashStatus dflash_material_sizes(const DflashCasePlan *plan, DflashRunSizes *sizes, int64_t *context_first,
                                   DflashError *error) {
  int64_t last_push;
  *sizes = (DflashRunSizes){.rows = plan->rows, .n_draft = plan->n_draft, .head_width = plan->head_width};
  DflashStatus status =
      dflash_context_replay(plan->ops, plan->op_count, context_first, &sizes->context_len, NULL, &last_push, error);
  if (status == DFLASH_OK && last_push >= 0) sizes->push_rows = plan->ops[last_push].n_rows;
  return status;
}

static DflashStatus set_sizes(const DflashMaterial *m, const DflashCasePlan *plan, DflashCase *c, DflashError *error) {
  DflashStatus status = dflash_material_sizes(plan, &c->sizes, &c->context_first, error);
  if (status != DFLASH_OK) return status;
  DflashRandom tokens = dflash_case_stream(m->recipe.seed, c->name, "anchor");
  c->anchor_pos = plan->anchor_pos;
  c->anchor_token = dflash_random_below(tokens, 0, (uint32_t)m->geometry.vocab);
  return DFLASH_OK;
}

DflashStatus dflash_material_inputs(const DflashMaterial *material, const DflashCasePlan *plan, DflashPool *pool,
                                    DflashCase *c, DflashError *error) {
  if ((plan->flags & (DFLASH_CASE_EXACT | DFLASH_CASE_TIES)) & ~material->flags)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "case %s is not possible here: the weights were not drawn for it", plan->name);
  DflashStatus status = dflash_case_open(c, &material->geometry, plan->name, error);
  if (status != DFLASH_OK) return status;
  c->exact = (plan->flags & DFLASH_CASE_EXACT) != 0;
  status = open_arrays(&material->geometry, plan, c, error);
  if (status == DFLASH_OK) status = set_sizes(material, plan, c, error);
  if (status == DFLASH_OK)
    status = dflash_case_fill(&material->geometry, &material->weights, plan->flags, material->recipe.stress,
                              material->recipe.seed, pool, c, error);
  if (status != DFLASH_OK) dflash_case_close(c);
  return status;
}

/* ---- trust ---- */

typedef struct Shares {
  int64_t count, zeros, largest; /* elements in all, zeros, and those that hold the largest magnitude */
} Shares;

static Shares count_shares(const DflashValue *value) {
  Shares shares = {.count = value->rows * value->width};
  float top = 0.0f;
  for (int64_t i = 0; i < shares.count; i++) {
    float magnitude = value->data[i] < 0.0f ? -value->data[i] : value->data[i];
    shares.zeros += magnitude == 0.0f;
    if (magnitude > top) shares.largest = 0;
    if (magnitude > top) top = magnitude;
    shares.largest += magnitude == top;
  }
  return shares;
}

/* The same limits by which a comparison later calls a value not trusted. */
const char *dflash_case_untrusted(const DflashCase *c, const DflashGeometry *geometry, char label[64], double *share) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++) {
    const DflashValue *value = dflash_case_value(c, stage, layer);
    if (!value->data || value->rows * value->width < 2) continue;
    Shares shares = count_shares(value);
    int64_t most = shares.zeros > shares.largest ? shares.zeros : shares.largest;
    *share = (double)most / (double)shares.count;
    dflash_stage_label(stage, layer, label);
    if (10 * shares.zeros > 3 * shares.count) return "zeros";
    if (10 * shares.largest > 3 * shares.count) return "its largest magnitude";
  }
  return NULL;
}

static DflashStatus check_trusted(const DflashMaterial *m, const DflashCase *c, DflashError *error) {
  char label[64];
  double share;
  const char *what = dflash_case_untrusted(c, &m->geometry, label, &share);
  if (!what) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "case %s: %.0f%% of %s is %s, so it would prove little (30%% is allowed)", c->name,
                          100.0 * share, label, what);
}

/* ---- values ---- */

DflashStatus dflash_material_values(const DflashMaterial *material, const DflashCasePlan *plan, DflashPool *pool,
                                    DflashCase *c, DflashError *error) {
  DflashEvaluate options = {.geometry = &material->geometry,
                            .weights = &material->weights,
                            .pool = pool,
                            .scales_alone = true,
                            .scales_chain = true,
                            .values = true};
  DflashStatus status = dflash_evaluate_case(&options, c, error);
  if (status == DFLASH_OK && dflash_profiles_i8(material->recipe.profiles))
    status = dflash_i8_values(&material->geometry, &material->weights, pool, c, error);
  if (status != DFLASH_OK) return status;
  if (material->recipe.allow_untrusted || material->recipe.stress & DFLASH_STRESS_ZEROS) return DFLASH_OK;
  if (plan->flags & DFLASH_CASE_ZERO_ROW) return DFLASH_OK;
  return check_trusted(material, c, error);
}

const char *dflash_material_case_name(const DflashMaterial *material, int64_t index) {
  return index >= 0 && index < material->plan_count ? material->plans[index].name : NULL;
}

/* The material's own case of that name, or any kind. */
static DflashStatus find_plan(const DflashMaterial *m, const char *name, DflashCasePlan *plan, DflashError *error) {
  for (int64_t i = 0; i < m->plan_count; i++) {
    if (strcmp(m->plans[i].name, name) != 0) continue;
    *plan = m->plans[i];
    return DFLASH_OK;
  }
  int64_t index = dflash_case_kind_find(name);
  if (index < 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "unknown case kind '%s'", name);
  const char *why = dflash_case_plan((size_t)index, &m->recipe, plan);
  if (!why) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "case %s is not possible here: %s", name, why);
}

DflashStatus dflash_material_case(const DflashMaterial *material, const char *name, DflashPool *pool, DflashCase *c,
                                  DflashError *error) {
  DflashCasePlan plan = {0};
  DflashStatus status = find_plan(material, name, &plan, error);
  if (status == DFLASH_OK) status = dflash_material_inputs(material, &plan, pool, c, error);
  if (status != DFLASH_OK) return status;
  status = dflash_material_values(material, &plan, pool, c, error);
  if (status != DFLASH_OK) dflash_case_close(c);
  return status;
}

DflashStatus dflash_case_draw(const DflashRecipe *recipe, const char *kind, DflashCase *c, DflashError *error) {
  DflashRecipe one = *recipe;
  DflashMaterial *material = NULL;
  if (!one.plan_count) one.cases = kind;
  DflashStatus status = dflash_material_open(&one, NULL, &material, error);
  if (status == DFLASH_OK) status = dflash_material_case(material, kind, NULL, c, error);
  dflash_material_close(material);
  return status;
}
