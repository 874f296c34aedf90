#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"
#include "oracle_half.h"
#include "oracle_internal.h"
#include "oracle_kernel.h"
#include "oracle_matrix.h"

static int row_lowest(const float *x, int64_t count) {
  int lowest = INT_MAX;
  for (int64_t i = 0; i < count; i++) {
    int bit = isfinite(x[i]) ? dflash_lowest_bit(x[i]) : INT_MIN / 2;
    if (bit < lowest) lowest = bit;
  }
  return lowest;
}

DflashStatus dflash_matrix_open(const DflashOracleCall *call, DflashMatrix *m, DflashError *error) {
  const DflashTensor *weights = dflash_stage_weight(call->weights, call->stage, call->layer);
  if (!weights || !weights->data)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "oracle: %s has no weights",
                            dflash_stage_row(call->stage)->name);
  *m = (DflashMatrix){.call = call, .weights = weights, .cols = dflash_tensor_cols(weights)};
  m->rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  m->outputs = dflash_stage_width(call->geometry, &call->sizes, call->stage);
  m->segment = m->cols < 1024 ? 16 : 64;
  int64_t skip = dflash_stage_row(call->stage)->rows == DFLASH_ROWS_DRAFT ? m->cols : 0; /* rows 1 .. of final.norm */
  m->x = call->inputs[0] + skip;
  m->sigma = call->chain && call->sigmas[0] ? call->sigmas[0] + skip : NULL;
  m->facts = dflash_alloc((size_t)m->rows, sizeof *m->facts);
  if (call->exact) m->lowest = dflash_alloc((size_t)m->rows, sizeof *m->lowest);
  if (m->sigma) m->common = dflash_alloc((size_t)m->rows, sizeof *m->common);
  bool half =
      !call->half || dflash_half_matrix_open(&m->half, call, call->inputs[0], m->rows * m->cols + skip, weights);
  if (!half || !m->facts || (call->exact && !m->lowest) || (m->sigma && !m->common)) {
    dflash_matrix_close(m);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for %" PRId64 " rows", m->rows);
  }
  for (int64_t r = 0; m->lowest && r < m->rows; r++) m->lowest[r] = row_lowest(m->x + r * m->cols, m->cols);
  for (int64_t r = 0; m->common && r < m->rows; r++)
    m->common[r] = dflash_row_common(m->x + r * m->cols, m->sigma + r * m->cols, m->cols);
  return DFLASH_OK;
}

void dflash_matrix_close(DflashMatrix *m) {
  free(m->facts);
  free(m->common);
  free(m->lowest);
  dflash_half_matrix_close(&m->half);
}

/* By the row's own weights, where bounds over whole rows do not settle it. */
static bool exact_by_terms(const DflashMatrix *m, const DflashMatrixElement *e) {
  DflashExactSum sum = {INT_MAX, 0};
  double weights[DFLASH_PANEL];
  const float *x = m->x + e->row * m->cols;
  for (int64_t col = 0; col < m->cols; col += DFLASH_PANEL) {
    int64_t cols = m->cols - col < DFLASH_PANEL ? m->cols - col : DFLASH_PANEL;
    dflash_tensor_row(m->weights, e->output, col, cols, weights);
    for (int64_t k = 0; k < cols; k++) dflash_exact_add(&sum, weights[k], x[col + k]);
  }
  return dflash_exact_holds(&sum);
}

/* Every term is a multiple of the product of the lowest bits, and the sum of magnitudes is at most the root of
 * n * sum of squares (which f32 sums know to three digits). */
static bool exact_by_rows(const DflashMatrix *m, const DflashMatrixElement *e) {
  int lowest_x = m->lowest[e->row], lowest_w = e->weight->lowest;
  if (lowest_x == INT_MAX || lowest_w == INT_MAX) return true;
  double n = fmin(m->facts[e->row].nonzero, e->weight->nonzero);
  DflashExactSum sum = {lowest_x + lowest_w, 1.01 * sqrt(n * e->squares)};
  return e->squares > 0 && dflash_exact_holds(&sum);
}

/* Roundings that a storage adds beside products and sums: a weight held as f32 (all quantised ones), a column
 * field folded into x and a row scale applied to the sum (q8_2f), a scale applied to the sum of a group (q4tp). */
static double operand_roundings(const DflashMatrix *m, double squares, double value) {
  double square = value * value;
  if (m->weights->storage == DFLASH_STORAGE_Q8_2F) return 2 * squares + square;
  if (m->weights->storage == DFLASH_STORAGE_Q4TP) return 2 * squares + 32 / (double)m->cols * square;
  return 0;
}

static double own_variance(const DflashMatrix *m, const DflashMatrixElement *e) {
  const DflashRowFacts *x = &m->facts[e->row];
  if (x->nonzero == 0) return 0;
  double squares = fmax(e->squares, e->value * e->value / x->nonzero); /* what f32 squares lose to underflow */
  if (isnan(e->value) || isnan(e->squares)) return NAN;
  double expected = dflash_partials(x->nonzero, squares, e->value);
  double segment = fmin((double)m->segment, x->nonzero);
  double natural = e->path * (x->nonzero / (double)m->cols) + segment / 6 * squares + 0.5 * e->value * e->value;
  double repeats = dflash_repeats(x->nonzero, x->distinct * e->weight->distinct);
  double roundings = repeats * fmax(expected, natural) + squares + operand_roundings(m, squares, e->value);
  double flush = squares > 0 ? x->nonzero * DFLASH_FLUSH : 0;
  return DFLASH_ROUNDING * roundings + flush + dflash_golden_rounding(e->value);
}

/* Errors of x that are all one factor move the sum by that factor, however its terms cancel or not. */
static double inherited_variance(const DflashMatrix *m, const DflashMatrixElement *e) {
  double together = m->common ? m->common[e->row] * (e->value * e->value - e->squares) : 0;
  return e->inherited + fmax(0, together);
}

/* A field that is folded into x makes other values equal than x has: those count in full. */
static void put_half(const DflashMatrix *m, const DflashMatrixElement *e, int64_t at, bool exact) {
  const DflashRowFacts *x = &m->facts[e->row];
  double rounded_x = e->rounded_x, output = dflash_half_output(m->call->half, e->value);
  if (m->half.fields) rounded_x *= dflash_repeats(x->nonzero, x->distinct * e->weight->distinct);
  exact = exact && e->rounded_weights == 0 && dflash_half_kept(m->call->half, e->value);
  double own = own_variance(m, e) + e->rounded_weights + output;
  double inherited = dflash_half_lost(m->call->half, inherited_variance(m, e), e->squares, e->value);
  dflash_half_put(m->call, at, e->value, own, rounded_x, inherited, exact);
}

void dflash_matrix_finish(const DflashMatrix *m, const DflashMatrixElement *e) {
  int64_t at = e->row * m->outputs + e->output;
  if (!dflash_oracle_scaled(m->call)) {
    dflash_oracle_put(m->call, at, e->value, 0, 0, false);
    return;
  }
  bool exact = m->call->exact && (exact_by_rows(m, e) || exact_by_terms(m, e));
  if (m->call->half)
    put_half(m, e, at, exact);
  else
    dflash_oracle_put(m->call, at, e->value, own_variance(m, e), inherited_variance(m, e), exact);
}
