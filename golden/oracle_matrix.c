/* Matrix products. A worker takes 32 rows of weights, decodes a panel of their columns once and multiplies it with
 * up to 512 rows of x. The scales ride along: sum (w x)^2 and sum w^2 var(x) need few digits and are summed in f32
 * from panels that are scaled by powers of two. */
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"
#include "oracle_internal.h"
#include "oracle_kernel.h"
#include "oracle_matrix.h"
#include "oracle_scale.h"

enum { OUTPUTS = 32, ROWS = 512 };

typedef struct Sums {
  double value, drift, path; /* drift, path: the partial sums in column order, and their squares */
  double squares, inherited;
} Sums;

typedef struct Scratch {
  _Alignas(64) double weights[OUTPUTS * DFLASH_PANEL];
  _Alignas(64) double x[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float weight_squares[OUTPUTS * DFLASH_PANEL];
  _Alignas(64) float x_squares[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float variances[DFLASH_TILE * DFLASH_PANEL];
  double weight_unit[OUTPUTS], x_unit[DFLASH_TILE], variance_unit[DFLASH_TILE]; /* of the scaled squares */
  Sums sums[ROWS * OUTPUTS];
  DflashWeightFacts facts[OUTPUTS];
  DflashDistinct distinct[OUTPUTS];
} Scratch;

typedef struct Job {
  DflashMatrix matrix;
  DflashTiles tiles;
  bool scaled, few; /* few: some row of x takes few values, so weights are counted too */
  Scratch *scratch; /* [threads] */
} Job;

/* squares[k] = (values[k] / 2^e)^2 with 2^e just above the largest; returns 2^2e. */
static double scaled_squares(const double *values, int64_t count, float *squares) {
  double max = 0;
  for (int64_t k = 0; k < count; k++) max = fabs(values[k]) > max ? fabs(values[k]) : max;
  double scale = dflash_power_scale(max);
  for (int64_t k = 0; k < count; k++) squares[k] = (float)((values[k] * scale) * (values[k] * scale));
  return 1 / (scale * scale);
}

static void note_weights(const Job *job, Scratch *s, int o, const double *values, int64_t cols) {
  DflashWeightFacts *facts = &s->facts[o];
  if (job->few)
    for (int64_t k = 0; k < cols; k++) dflash_distinct_add(&s->distinct[o], (float)values[k]);
  if (!job->matrix.call->exact) return;
  for (int64_t k = 0; k < cols; k++) {
    int lowest = dflash_lowest_bit(values[k]);
    if (lowest < facts->lowest) facts->lowest = lowest;
    facts->nonzero += values[k] != 0;
  }
}

static void load_weights(const Job *job, Scratch *s, int64_t output, int64_t col, int64_t cols) {
  int64_t padded = dflash_panel_round(cols);
  for (int o = 0; o < OUTPUTS; o++) {
    double *values = s->weights + o * DFLASH_PANEL;
    memset(values, 0, (size_t)padded * sizeof *values);
    if (output + o < job->matrix.outputs) {
      dflash_tensor_row(job->matrix.weights, output + o, col, cols, values);
      note_weights(job, s, o, values, cols);
    }
    if (job->scaled) s->weight_unit[o] = scaled_squares(values, padded, s->weight_squares + o * DFLASH_PANEL);
  }
}

static void load_row(const float *row, int64_t cols, int64_t padded, double *out) {
  memset(out, 0, (size_t)padded * sizeof *out);
  for (int64_t k = 0; row && k < cols; k++) out[k] = row[k];
}

static void load_x(const Job *job, Scratch *s, int64_t row, int64_t col, int64_t cols) {
  const DflashMatrix *m = &job->matrix;
  int64_t padded = dflash_panel_round(cols);
  for (int r = 0; r < DFLASH_TILE; r++) {
    int64_t at = (row + r) * m->cols + col;
    double *x = s->x + r * DFLASH_PANEL, sigma[DFLASH_PANEL];
    load_row(row + r < m->rows ? m->x + at : NULL, cols, padded, x);
    if (!job->scaled) continue;
    s->x_unit[r] = scaled_squares(x, padded, s->x_squares + r * DFLASH_PANEL);
    if (!m->sigma) continue;
    load_row(row + r < m->rows ? m->sigma + at : NULL, cols, padded, sigma);
    s->variance_unit[r] = scaled_squares(sigma, padded, s->variances + r * DFLASH_PANEL);
  }
}

static void multiply_segment(const Job *job, Scratch *s, int64_t row, int o, int64_t k, int64_t cols) {
  double pieces[16];
  job->tiles.f64(s->x + k, s->weights + o * DFLASH_PANEL + k, dflash_panel_round(cols), pieces);
  for (int r = 0; r < DFLASH_TILE; r++)
    for (int c = 0; c < DFLASH_TILE; c++) {
      Sums *sums = &s->sums[(row + r) * OUTPUTS + o + c];
      double before = sums->value, after = before + pieces[r * DFLASH_TILE + c];
      sums->drift += (double)cols / 2 * (before + after);
      sums->path += (double)cols / 3 * (before * before + before * after + after * after);
      sums->value = after;
    }
}

/* Adds a panel's 4 x 4 products to their sums. */
static void multiply(const Job *job, Scratch *s, int64_t row, int o, int64_t cols) {
  int64_t padded = dflash_panel_round(cols);
  float squares[16] = {0}, inherited[16] = {0};
  int64_t step = job->matrix.segment;
  for (int64_t k = 0; k < cols; k += step) multiply_segment(job, s, row, o, k, cols - k < step ? cols - k : step);
  if (job->scaled) job->tiles.f32(s->x_squares, s->weight_squares + o * DFLASH_PANEL, padded, squares);
  if (job->scaled && job->matrix.sigma)
    job->tiles.f32(s->variances, s->weight_squares + o * DFLASH_PANEL, padded, inherited);
  for (int r = 0; r < DFLASH_TILE; r++)
    for (int c = 0; c < DFLASH_TILE; c++) {
      Sums *sums = &s->sums[(row + r) * OUTPUTS + o + c];
      sums->squares += (double)squares[r * DFLASH_TILE + c] * s->x_unit[r] * s->weight_unit[o + c];
      sums->inherited += (double)inherited[r * DFLASH_TILE + c] * s->variance_unit[r] * s->weight_unit[o + c];
    }
}

static void finish(const Job *job, Scratch *s, int64_t row, int64_t rows, int64_t output) {
  const DflashMatrix *m = &job->matrix;
  int outputs = (int)(m->outputs - output < OUTPUTS ? m->outputs - output : OUTPUTS);
  for (int o = 0; o < outputs; o++)
    s->facts[o].distinct = job->few ? dflash_distinct_values(&s->distinct[o]) : INFINITY;
  for (int64_t r = 0; r < rows; r++)
    for (int o = 0; o < outputs; o++) {
      const Sums *sums = &s->sums[r * OUTPUTS + o];
      DflashMatrixElement element = {.row = row + r,
                                     .output = output + o,
                                     .weight = &s->facts[o],
                                     .value = sums->value,
                                     .path = sums->path,
                                     .squares = sums->squares,
                                     .inherited = sums->inherited};
      /* backwards each partial sum is what was left to add */
      double rest = sums->path - 2 * sums->value * sums->drift + (double)m->cols * sums->value * sums->value;
      element.path = fmax(element.path, rest);
      dflash_matrix_finish(m, &element);
    }
}

static void block(const Job *job, Scratch *s, int64_t output, int64_t row, int64_t rows) {
  const DflashMatrix *m = &job->matrix;
  int64_t tile_rows = (rows + DFLASH_TILE - 1) / DFLASH_TILE * DFLASH_TILE;
  memset(s->sums, 0, (size_t)(tile_rows * OUTPUTS) * sizeof *s->sums);
  for (int o = 0; o < OUTPUTS; o++) s->facts[o] = (DflashWeightFacts){INT_MAX, 0, INFINITY};
  if (job->few) memset(s->distinct, 0, sizeof s->distinct);
  for (int64_t col = 0; col < m->cols; col += DFLASH_PANEL) {
    int64_t cols = m->cols - col < DFLASH_PANEL ? m->cols - col : DFLASH_PANEL;
    load_weights(job, s, output, col, cols);
    for (int64_t r = 0; r < rows; r += DFLASH_TILE) {
      load_x(job, s, row + r, col, cols);
      for (int o = 0; o < OUTPUTS; o += DFLASH_TILE) multiply(job, s, r, o, cols);
    }
  }
  finish(job, s, row, rows, output);
}

static void run_blocks(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  for (int64_t b = begin; b < end; b++)
    for (int64_t row = 0; row < job->matrix.rows; row += ROWS) {
      int64_t rows = job->matrix.rows - row < ROWS ? job->matrix.rows - row : ROWS;
      block(job, &job->scratch[worker], b * OUTPUTS, row, rows);
    }
}

static void run_facts(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  const DflashMatrix *m = &job->matrix;
  for (int64_t r = begin; r < end; r++)
    m->facts[r] = dflash_row_facts(m->x + r * m->cols, m->cols, &job->scratch[worker].distinct[0]);
}

static void survey(Job *job, DflashPool *pool) {
  dflash_pool_run(pool, job->matrix.rows, 1, run_facts, job);
  for (int64_t r = 0; r < job->matrix.rows; r++) {
    const DflashRowFacts *facts = &job->matrix.facts[r];
    if (facts->nonzero > 1 && facts->distinct < facts->nonzero) job->few = true;
  }
}

DflashStatus dflash_oracle_matrix(const DflashOracleCall *call, DflashError *error) {
  Job job = {.tiles = dflash_tiles(), .scaled = dflash_oracle_scaled(call)};
  DflashStatus status = dflash_matrix_open(call, &job.matrix, error);
  if (status != DFLASH_OK) return status;
  job.scratch = dflash_alloc((size_t)dflash_pool_threads(call->pool), sizeof(Scratch));
  if (job.scratch) {
    if (job.scaled) survey(&job, call->pool);
    dflash_pool_run(call->pool, (job.matrix.outputs + OUTPUTS - 1) / OUTPUTS, 1, run_blocks, &job);
  } else {
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for a matrix product");
  }
  free(job.scratch);
  dflash_matrix_close(&job.matrix);
  return status;
}
