/* `golden check`: what can be said of a golden without a backend. */
#include "golden/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "golden/check_values.h"
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

static const char *hash_word(int result) {
  if (result < 0) return "not checked (the file has none)";
  return result ? "matches" : "does not match";
}

static DflashStatus check_hashes(DflashChecker *k, DflashGolden *golden, DflashError *error) {
  int inputs, values;
  DflashStatus status = dflash_golden_check_hashes(golden, &inputs, &values, error);
  if (status != DFLASH_OK) return status;
  if (inputs == 0) dflash_check_report(k, "inputs_hash does not match the file's contents");
  if (values == 0) dflash_check_report(k, "values_hash does not match the file's contents");
  fprintf(k->out, "%s: inputs_hash %s, values_hash %s\n", k->path, hash_word(inputs), hash_word(values));
  return DFLASH_OK;
}

/* Damage in one case does not keep the others from being checked. */
static DflashStatus check_case(DflashChecker *k, DflashGolden *golden, int64_t index, DflashPool *pool,
                               DflashError *error) {
  DflashCase c = {0};
  DflashError found = {0};
  k->case_name = dflash_golden_case_name(golden, index);
  DflashStatus status = dflash_golden_case(golden, index, &c, &found);
  if (status == DFLASH_OK) {
    k->c = &c;
    dflash_check_finite(k);
    if (k->recompute) status = dflash_check_again(k, dflash_golden_weights(golden), pool, &found);
    k->c = NULL;
    dflash_case_close(&c);
  }
  k->case_name = NULL;
  if (status == DFLASH_OUT_OF_MEMORY || status == DFLASH_INTERNAL) {
    if (error) *error = found;
    return status;
  }
  if (status != DFLASH_OK) dflash_check_report(k, "%s", found.message);
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
  fprintf(k->out, "%s: %" PRId64 " cases, %" PRId64 " values %s, %" PRId64 " wrong\n", k->path, count, k->values,
          k->recompute ? "computed again" : "read, not computed again", k->wrong);
  return DFLASH_OK;
}

DflashStatus dflash_golden_check(DflashGolden *golden, const char *path, int recompute, int threads, FILE *out,
                                 int64_t *wrong, DflashError *error) {
  DflashChecker k = {.out = out, .path = path, .geometry = dflash_golden_geometry(golden), .recompute = recompute};
  *wrong = 0;
  DflashPool *pool = recompute ? dflash_pool_open(threads) : NULL;
  if (recompute && !pool) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start %d threads", threads);
  DflashStatus status = check_all(&k, golden, pool, error);
  *wrong = k.wrong;
  dflash_pool_close(pool);
  return status;
}
