/* `golden check`: what can be said of a golden without a backend. */
#include "golden/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "golden/check_values.h"
#include "golden/recipe.h"
#include "model/geometry.h"
#include "model/storage.h"

static void check_weight(DflashChecker *k, const char *name, const DflashTensor *tensor) {
  DflashError found = {0};
  if (dflash_tensor_check(tensor, name, &found) != DFLASH_OK) dflash_check_report(k, "%s", found.message);
}

static void check_weights(DflashChecker *k, DflashGolden *golden) {
  DflashWeightSet view = {.weights = *dflash_golden_weights(golden)};
  view.layers = (DflashLayerWeights *)(uintptr_t)view.weights.layers;
  for (int64_t i = 0; i < dflash_weight_count(k->geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(k->geometry, i, &entry);
    check_weight(k, entry.name, dflash_weight_at(k->geometry, &view, i));
  }
  if (view.weights.head.data) check_weight(k, "/target/head", &view.weights.head);
}

/* inv_freq is the geometry's own, and a part of the arithmetic. */
static DflashStatus check_frequencies(DflashChecker *k, DflashGolden *golden, DflashError *error) {
  int64_t count = k->geometry->head_dim / 2;
  const float *stored = dflash_golden_weights(golden)->inv_freq;
  float *computed = calloc((size_t)count, sizeof *computed);
  if (!computed) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for inv_freq");
  dflash_geometry_inv_freq(k->geometry, computed);
  for (int64_t i = 0; i < count; i++)
    if (stored[i] != computed[i])
      dflash_check_report(k, "inv_freq[%" PRId64 "] is %.9g, computed %.9g", i, (double)stored[i], (double)computed[i]);
  free(computed);
  return DFLASH_OK;
}

static DflashStatus check_router(DflashChecker *k, DflashGolden *golden, DflashError *error) {
  const DflashRouter *router = dflash_golden_router(golden);
  float *rows = NULL;
  double *margins = NULL;
  int64_t count = 0;
  if (!router) return DFLASH_OK;
  DflashStatus status = dflash_golden_router_rows(golden, &count, &rows, &margins, error);
  for (int64_t i = 0; status == DFLASH_OK && i < count; i++) {
    double margin = dflash_router_margin(router, rows + i * router->hidden);
    if (!(fabs(margin - margins[i]) <= 1e-9))
      dflash_check_report(k, "router: margin %" PRId64 " is %.17g, computed %.17g", i, margins[i], margin);
  }
  free(rows);
  free(margins);
  return status;
}

static DflashStatus compute_verdicts(DflashGolden *golden, int verdicts[3], DflashError *error) {
  DflashStatus status = dflash_golden_check_hashes(golden, &verdicts[0], &verdicts[1], error);
  return status == DFLASH_OK ? dflash_golden_check_scales_hash(golden, &verdicts[2], error) : status;
}

static const char *hash_word(int verdict) {
  if (verdict < 0) return "not checked (the file has none)";
  return verdict ? "matches" : "does not match";
}

static DflashStatus check_hashes(DflashChecker *k, DflashGolden *golden, DflashError *error) {
  static const char *const names[3] = {"inputs_hash", "values_hash", "scales_hash"};
  int verdicts[3] = {-1, -1, -1};
  DflashError found = {0};
  DflashStatus status = compute_verdicts(golden, verdicts, &found);
  if (status == DFLASH_INVALID_DATA) {
    fprintf(k->out, "%s: hashes not checked: a case cannot be read\n", k->path);
    return DFLASH_OK;
  }
  if (status != DFLASH_OK && error) *error = found;
  if (status != DFLASH_OK) return status;
  for (int i = 0; i < 3; i++)
    if (verdicts[i] == 0) dflash_check_report(k, "%s does not match the file's contents", names[i]);
  fprintf(k->out, "%s: inputs_hash %s, values_hash %s, scales_hash %s\n", k->path, hash_word(verdicts[0]),
          hash_word(verdicts[1]), hash_word(verdicts[2]));
  return DFLASH_OK;
}

/* Scales are the same on every machine; a generator of another version may have had other rules. */
static double scale_limit(const DflashGolden *golden) {
  char own[64];
  dflash_generator_text(own);
  return strcmp(dflash_golden_attribute(golden, "generator"), own) == 0 ? 0.0 : 1e-3;
}

/* Damage in one case does not keep the others from being checked. */
static DflashStatus check_case(DflashChecker *k, DflashGolden *golden, int64_t index, DflashPool *pool,
                               DflashError *error) {
  DflashCase c = {0};
  DflashError found = {0};
  k->case_name = dflash_golden_case_name(golden, index);
  DflashStatus status = dflash_golden_case(golden, index, &c, &found);
  bool read = status == DFLASH_OK;
  if (read) {
    k->c = &c;
    dflash_check_finite(k);
    if (k->recompute) status = dflash_check_again(k, dflash_golden_weights(golden), pool, &found);
    if (k->recompute && c.stages_i8 && status == DFLASH_OK)
      status = dflash_check_i8(k, dflash_golden_weights(golden), pool, &found);
    k->c = NULL;
    dflash_case_close(&c);
  }
  if (status == DFLASH_OUT_OF_MEMORY || status == DFLASH_INTERNAL) {
    if (error) *error = found;
    return status;
  }
  if (status != DFLASH_OK && read) dflash_check_report(k, "%s", found.message);
  if (status != DFLASH_OK && !read) dflash_check_report_error(k, &found);
  k->case_name = NULL;
  return DFLASH_OK;
}

static DflashStatus check_all(DflashChecker *k, DflashGolden *golden, DflashPool *pool, DflashError *error) {
  check_weights(k, golden);
  DflashStatus status = check_frequencies(k, golden, error);
  if (status == DFLASH_OK) status = check_router(k, golden, error);
  if (status == DFLASH_OK) status = check_hashes(k, golden, error);
  int64_t count = dflash_golden_case_count(golden);
  if (count == 0) dflash_check_report(k, "the golden has no case");
  for (int64_t i = 0; status == DFLASH_OK && i < count; i++) status = check_case(k, golden, i, pool, error);
  if (status != DFLASH_OK) return status;
  fprintf(k->out, "%s: %" PRId64 " case%s, %" PRId64 " values %s, %" PRId64 " wrong\n", k->path, count,
          count == 1 ? "" : "s", k->values, k->recompute ? "computed again" : "read, not computed again", k->wrong);
  return DFLASH_OK;
}

DflashStatus dflash_golden_check(DflashGolden *golden, const char *path, int recompute, int threads, FILE *out,
                                 int64_t *wrong, DflashError *error) {
  DflashChecker k = {.out = out,
                     .path = path,
                     .geometry = dflash_golden_geometry(golden),
                     .recompute = recompute,
                     .scale_limit = scale_limit(golden)};
  *wrong = 0;
  DflashPool *pool = recompute ? dflash_pool_open(threads) : NULL;
  if (recompute && !pool) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start %d threads", threads);
  DflashStatus status = check_all(&k, golden, pool, error);
  *wrong = k.wrong;
  dflash_pool_close(pool);
  return status;
}
