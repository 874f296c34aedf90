#include "golden/check_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "golden/oracle.h"

/* Scores may differ by this. */
static const double SCORE_LIMIT = 1e-9;

void dflash_check_report(DflashChecker *k, const char *format, ...) {
  char line[1200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(k->out, "%s: %s%s%s%s\n", k->path, k->case_name ? "case " : "", k->case_name ? k->case_name : "",
          k->case_name ? ": " : "", line);
  k->wrong++;
}

void dflash_check_report_error(DflashChecker *k, const DflashError *error) {
  fprintf(k->out, "%s\n", error->message);
  k->wrong++;
}

/* ---- finite ---- */

/* group: what stands before the stage's label, "" or a group of the file with its slash. */
static void check_finite_value(DflashChecker *k, const DflashValue *value, int32_t stage, int64_t layer,
                               const char *group) {
  char label[64], place[96];
  int64_t count = value->data ? value->rows * value->width : 0, bad = 0, first = -1;
  for (int64_t i = 0; i < count; i++) {
    if (isfinite(value->data[i])) continue;
    if (bad++ == 0) first = i;
  }
  k->values += k->recompute ? 0 : count;
  if (bad == 0) return;
  dflash_stage_label(stage, layer, label);
  dflash_check_place(k->geometry, stage, value->width, first, place);
  dflash_check_report(k, "%s%s: %s: stored %g is not finite; %" PRId64 " of %" PRId64 " values are not", group, label,
                      place, (double)value->data[first], bad, count);
}

void dflash_check_finite(DflashChecker *k) {
  int32_t stage;
  int64_t layer;
  for (layer = 0; layer < k->geometry->layers; layer++) {
    check_finite_value(k, &k->c->held_k[layer], DFLASH_STAGE_HELD_K, layer, "");
    check_finite_value(k, &k->c->held_v[layer], DFLASH_STAGE_HELD_V, layer, "");
  }
  for (int64_t i = 0; dflash_stage_walk(k->geometry, i, &stage, &layer); i++) {
    if (stage == DFLASH_STAGE_SELECT) continue;
    const DflashValue *value = dflash_case_value(k->c, stage, layer);
    check_finite_value(k, value, stage, layer, "");
    if (k->c->stages_i8) check_finite_value(k, k->c->stages_i8 + (value - k->c->stages), stage, layer, "stages.i8/");
  }
}

/* ---- values ---- */

static double spacing(float value) {
  float magnitude = fabsf(value);
  return (double)nextafterf(magnitude, INFINITY) - (double)magnitude;
}

static int64_t stage_width(const DflashChecker *k, int32_t stage) {
  return dflash_stage_width(k->geometry, &k->c->sizes, stage);
}

static void visit_value(void *context, int32_t stage, int64_t layer, const char *label, const float *stored,
                        const float *computed, int64_t count) {
  (void)layer;
  dflash_check_value(context, stage, label, stored, computed, count);
}

void dflash_check_value(DflashChecker *k, int32_t stage, const char *label, const float *stored, const float *computed,
                        int64_t count) {
  int64_t bad = 0, worst = 0;
  double largest = 0.0;
  char place[96];
  if (stage == DFLASH_STAGE_SELECT || count == 0) return;
  if (!stored || !computed) {
    dflash_check_report(k, "%s: not stored", label);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    double off = fabs((double)stored[i] - (double)computed[i]) / spacing(stored[i]);
    if (off <= 1.0) continue;
    bad++;
    if (off <= largest || isnan(largest)) continue; /* a NaN is the worst of all */
    largest = off;
    worst = i;
  }
  k->values += count;
  if (bad == 0) return;
  dflash_check_place(k->geometry, stage, stage_width(k, stage), worst, place);
  dflash_check_report(
      k, "%s: %s: stored %.9g, computed %.9g, %.3g spacings apart; %" PRId64 " of %" PRId64 " values are off", label,
      place, (double)stored[worst], (double)computed[worst], largest, bad, count);
}

/* ---- tokens ---- */

static void check_ids(DflashChecker *k, const char *name, const int32_t *stored, const int32_t *computed, int64_t rows,
                      int64_t width) {
  for (int64_t i = 0; i < rows * width; i++) {
    if (stored[i] == computed[i]) continue;
    dflash_check_report(k, "select: %s: row %" PRId64 ", place %" PRId64 ": stored %d, computed %d", name, i / width,
                        i % width, stored[i], computed[i]);
    return;
  }
}

static void visit_tokens(void *context, const DflashTokensValue *stored, const DflashTokensValue *computed) {
  DflashChecker *k = context;
  int64_t rows = k->c->sizes.n_draft, top = k->geometry->selector_top;
  if (!stored || !stored->chosen || !stored->plain || !stored->candidates || !stored->scores) {
    dflash_check_report(k, "select: not stored");
    return;
  }
  check_ids(k, "chosen", stored->chosen, computed->chosen, rows, 1);
  check_ids(k, "plain", stored->plain, computed->plain, rows, 1);
  check_ids(k, "candidates", stored->candidates, computed->candidates, rows, top);
  k->values += rows * (2 + 2 * top);
  for (int64_t i = 0; i < rows * top; i++) {
    if (fabs(stored->scores[i] - computed->scores[i]) <= SCORE_LIMIT) continue;
    dflash_check_report(k, "select: scores: row %" PRId64 ", place %" PRId64 ": stored %.17g, computed %.17g", i / top,
                        i % top, stored->scores[i], computed->scores[i]);
    return;
  }
}

/* ---- error scales ---- */

/* Stored scales of a case, taken out of it so that they are computed anew. */
typedef struct Scales {
  DflashValue *stages, *held_k, *held_v;
  float *alone, *chain;
} Scales;

static int64_t stage_values(const DflashCase *c) { return c->layers * DFLASH_STAGE_COUNT; }

static DflashValue *take_values(DflashValue *values, int64_t count) {
  DflashValue *taken = calloc((size_t)count, sizeof *taken);
  for (int64_t i = 0; taken && i < count; i++) {
    taken[i] = values[i];
    taken[i].data = NULL;
    taken[i].data_owned = false;
    values[i].alone = values[i].chain = NULL;
    values[i].alone_owned = values[i].chain_owned = false;
  }
  return taken;
}

static void free_values(DflashValue *values, int64_t count) {
  for (int64_t i = 0; values && i < count; i++) {
    if (values[i].alone_owned) free(values[i].alone);
    if (values[i].chain_owned) free(values[i].chain);
  }
  free(values);
}

static void free_scales(Scales *s, const DflashCase *c) {
  free_values(s->stages, stage_values(c));
  free_values(s->held_k, c->layers);
  free_values(s->held_v, c->layers);
  free(s->alone);
  free(s->chain);
}

static int take_scales(DflashCase *c, Scales *s) {
  *s = (Scales){.alone = c->tokens.alone, .chain = c->tokens.chain};
  c->tokens.alone = c->tokens.chain = NULL;
  s->stages = take_values(c->stages, stage_values(c));
  s->held_k = take_values(c->held_k, c->layers);
  s->held_v = take_values(c->held_v, c->layers);
  return s->stages && s->held_k && s->held_v;
}

static bool scale_is_off(const DflashChecker *k, float stored, float computed) {
  double most = fmax((double)stored, (double)computed);
  return !(fabs((double)stored - (double)computed) <= k->scale_limit * most);
}

static void check_scale(DflashChecker *k, const char *label, int32_t stage, const char *which, const float *stored,
                        const float *computed, int64_t count) {
  int64_t bad = 0, first = 0;
  char place[96];
  for (int64_t i = 0; stored && computed && i < count; i++)
    if (scale_is_off(k, stored[i], computed[i]) && bad++ == 0) first = i;
  if (bad == 0) return;
  dflash_check_place(k->geometry, stage, stage_width(k, stage), first, place);
  dflash_check_report(k, "%s: error scale '%s': %s: stored %.9g, computed %.9g; %" PRId64 " of %" PRId64 " are off",
                      label, which, place, (double)stored[first], (double)computed[first], bad, count);
}

static void check_value_scales(DflashChecker *k, const char *label, int32_t stage, const DflashValue *stored,
                               const DflashValue *computed) {
  int64_t count = computed->rows * computed->width;
  check_scale(k, label, stage, "alone", stored->alone, computed->alone, count);
  check_scale(k, label, stage, "chain", stored->chain, computed->chain, count);
}

static void check_scales(DflashChecker *k, const Scales *s) {
  char label[64];
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(k->geometry, i, &stage, &layer); i++) {
    const DflashValue *value = dflash_case_value(k->c, stage, layer);
    dflash_stage_label(stage, layer, label);
    check_value_scales(k, label, stage, &s->stages[value - k->c->stages], value);
  }
  for (layer = 0; layer < k->c->layers; layer++) {
    snprintf(label, sizeof label, "context_state.k/%" PRId64, layer);
    check_value_scales(k, label, DFLASH_STAGE_HELD_K, &s->held_k[layer], &k->c->held_k[layer]);
    snprintf(label, sizeof label, "context_state.v/%" PRId64, layer);
    check_value_scales(k, label, DFLASH_STAGE_HELD_V, &s->held_v[layer], &k->c->held_v[layer]);
  }
  int64_t scores = k->c->sizes.n_draft * k->geometry->selector_top;
  check_scale(k, "select", DFLASH_STAGE_SELECT, "alone", s->alone, k->c->tokens.alone, scores);
  check_scale(k, "select", DFLASH_STAGE_SELECT, "chain", s->chain, k->c->tokens.chain, scores);
}

static bool any_scale(const DflashValue *values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (values[i].alone || values[i].chain) return true;
  return false;
}

static bool has_scales(const DflashCase *c) {
  return c->tokens.alone || c->tokens.chain || any_scale(c->stages, stage_values(c)) ||
         any_scale(c->held_k, c->layers) || any_scale(c->held_v, c->layers);
}

DflashStatus dflash_check_again(DflashChecker *k, const DflashWeights *weights, DflashPool *pool, DflashError *error) {
  Scales stored;
  bool scales = has_scales(k->c);
  DflashEvaluate options = {.geometry = k->geometry,
                            .weights = weights,
                            .pool = pool,
                            .scales_alone = scales,
                            .scales_chain = scales,
                            .recompute = true,
                            .values = true,
                            .visit = visit_value,
                            .visit_context = k,
                            .visit_tokens = visit_tokens};
  DflashStatus status = DFLASH_OK;
  if (!take_scales(k->c, &stored)) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for error scales");
  if (status == DFLASH_OK) status = dflash_evaluate_case(&options, k->c, error);
  if (status == DFLASH_OK && scales) check_scales(k, &stored);
  free_scales(&stored, k->c);
  return status;
}
