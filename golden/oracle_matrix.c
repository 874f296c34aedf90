/* Matrix products. A worker takes 64 rows of weights, decodes a panel of their columns once and multiplies it with
 * up to 256 rows of x. The scales ride along: sum (w x)^2 and sum w^2 var(x) need few digits and are summed in f32
 * from panels that are scaled by powers of two. */
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"
#include "oracle_half_matrix.h"
#include "oracle_internal.h"
#include "oracle_kernel.h"
#include "oracle_matrix.h"
#include "oracle_scale.h"

enum { OUTPUTS = 64, ROWS = 256 };

/* 4 rows of x with 4 rows of weights. */
typedef struct Sums {
  DflashTileSums sums;
  double squares[16], inherited[16];
  DflashHalfSums half;
} Sums;

typedef struct Scratch {
  _Alignas(64) double weights[OUTPUTS * DFLASH_PANEL];
  _Alignas(64) double x[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float weight_squares[OUTPUTS * DFLASH_PANEL];
  _Alignas(64) float x_squares[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float variances[DFLASH_TILE * DFLASH_PANEL];
  double weight_unit[OUTPUTS], x_unit[DFLASH_TILE], variance_unit[DFLASH_TILE]; /* of the scaled squares */
  Sums sums[ROWS / DFLASH_TILE][OUTPUTS / DFLASH_TILE];
  DflashWeightFacts facts[OUTPUTS];
  DflashDistinct distinct[OUTPUTS];
  DflashHalfPanels half; /* used in profiles of 16 bits */
} Scratch;

typedef struct Job {
  DflashMatrix matrix;
  DflashTiles tiles;
  bool scaled, half, few; /* few: some row of x takes few values, so weights are counted too */
  Scratch *scratch;       /* [threads] */
} Job;

/* squares[k] = (values[k] / 2^e)^2 with 2^e just above the largest; returns 2^2e. Magnitudes of floats are in the
 * order of their bits. */
static double scaled_squares(const float *values, int64_t count, int64_t padded, float *squares) {
  int32_t max = 0, bits;
  for (int64_t k = 0; k < count; k++) {
    memcpy(&bits, &values[k], sizeof bits);
    bits &= 0x7fffffff;
    max = bits > max ? bits : max;
  }
  float largest;
  memcpy(&largest, &max, sizeof largest);
  double scale = dflash_power_scale(largest);
  for (int64_t k = 0; k < count; k++) {
    float scaled = (float)(values[k] * scale);
    squares[k] = scaled * scaled;
  }
  for (int64_t k = count; k < padded; k++) squares[k] = 0;
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
    float rounded[DFLASH_PANEL];
    memset(values, 0, (size_t)padded * sizeof *values);
    if (output + o < job->matrix.outputs) {
      dflash_tensor_row(job->matrix.weights, output + o, col, cols, values);
      note_weights(job, s, o, values, cols);
    }
    if (!job->scaled) continue;
    for (int64_t k = 0; k < cols; k++) rounded[k] = (float)values[k];
    s->weight_unit[o] = scaled_squares(rounded, cols, padded, s->weight_squares + o * DFLASH_PANEL);
    if (job->half) dflash_half_load_weights(&job->matrix.half, &s->half, o, rounded, cols, padded, s->weight_unit[o]);
  }
}

/* Rows past the end are zeros. */
static void load_x(const Job *job, Scratch *s, int64_t row, int64_t col, int64_t cols) {
  const DflashMatrix *m = &job->matrix;
  int64_t padded = dflash_panel_round(cols);
  for (int r = 0; r < DFLASH_TILE; r++) {
    bool inside = row + r < m->rows;
    int64_t at = inside ? (row + r) * m->cols + col : 0, count = inside ? cols : 0, panel = r * DFLASH_PANEL;
    for (int64_t k = 0; k < count; k++) s->x[panel + k] = m->x[at + k];
    for (int64_t k = count; k < padded; k++) s->x[panel + k] = 0;
    if (!job->scaled) continue;
    s->x_unit[r] = scaled_squares(m->x + at, count, padded, s->x_squares + panel);
    if (job->half) dflash_half_load_x(&m->half, &s->half, r, m->x + at, col, count, padded, s->x_unit[r]);
    if (m->sigma) s->variance_unit[r] = scaled_squares(m->sigma + at, count, padded, s->variances + panel);
  }
}

static void multiply_half(const Job *job, const Scratch *s, int o, int64_t padded, DflashHalfSums *sums) {
  DflashHalfTile tile = {s->x_squares, s->weight_squares + o * DFLASH_PANEL, s->x_unit, s->weight_unit + o, padded};
  dflash_half_multiply(&job->tiles, &s->half, &tile, o, sums);
}

/* Adds a panel's 4 x 4 products to their sums. */
static void multiply(const Job *job, Scratch *s, Sums *sums, int o, int64_t cols) {
  int64_t padded = dflash_panel_round(cols);
  float squares[16], inherited[16] = {0};
  job->tiles.follow(s->x, s->weights + o * DFLASH_PANEL, cols, job->matrix.segment, &sums->sums);
  if (!job->scaled) return;
  job->tiles.f32(s->x_squares, s->weight_squares + o * DFLASH_PANEL, padded, squares);
  if (job->matrix.sigma) job->tiles.f32(s->variances, s->weight_squares + o * DFLASH_PANEL, padded, inherited);
  for (int i = 0; i < 16; i++) {
    double unit = s->weight_unit[o + i % DFLASH_TILE];
    sums->squares[i] += (double)squares[i] * s->x_unit[i / DFLASH_TILE] * unit;
    if (job->matrix.sigma) sums->inherited[i] += (double)inherited[i] * s->variance_unit[i / DFLASH_TILE] * unit;
  }
  if (job->half) multiply_half(job, s, o, padded, &sums->half);
}

static void finish_element(const DflashMatrix *m, const Sums *sums, int i, DflashMatrixElement *element) {
  double value = sums->sums.value[i], path = sums->sums.path[i], drift = sums->sums.drift[i];
  double backwards = path - 2 * value * drift + (double)m->cols * value * value; /* of what was left to add */
  element->value = value;
  element->path = fmax(path, backwards);
  element->squares = sums->squares[i];
  element->inherited = sums->inherited[i];
  element->rounded_x = fmax(sums->half.x[i], sums->half.known_x[i] * sums->half.known_x[i]);
  element->rounded_weights = fmax(sums->half.weights[i], sums->half.known_weights[i] * sums->half.known_weights[i]);
  dflash_matrix_finish(m, element);
}

static void finish(const Job *job, Scratch *s, int64_t row, int64_t rows, int64_t output) {
  const DflashMatrix *m = &job->matrix;
  int64_t outputs = m->outputs - output < OUTPUTS ? m->outputs - output : OUTPUTS;
  for (int64_t o = 0; o < outputs; o++)
    s->facts[o].distinct = job->few ? dflash_distinct_values(&s->distinct[o]) : INFINITY;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t o = 0; o < outputs; o++) {
      const Sums *sums = &s->sums[r / DFLASH_TILE][o / DFLASH_TILE];
      DflashMatrixElement element = {.row = row + r, .output = output + o, .weight = &s->facts[o]};
      finish_element(m, sums, (int)(r % DFLASH_TILE * DFLASH_TILE + o % DFLASH_TILE), &element);
    }
}

static void block(const Job *job, Scratch *s, int64_t output, int64_t row, int64_t rows) {
  const DflashMatrix *m = &job->matrix;
  int64_t outputs = m->outputs - output < OUTPUTS ? m->outputs - output : OUTPUTS;
  memset(s->sums, 0, (size_t)((rows + DFLASH_TILE - 1) / DFLASH_TILE) * sizeof s->sums[0]);
  for (int o = 0; o < OUTPUTS; o++) s->facts[o] = (DflashWeightFacts){INT_MAX, 0, INFINITY};
  if (job->few) memset(s->distinct, 0, sizeof s->distinct);
  for (int64_t col = 0; col < m->cols; col += DFLASH_PANEL) {
    int64_t cols = m->cols - col < DFLASH_PANEL ? m->cols - col : DFLASH_PANEL;
    load_weights(job, s, output, col, cols);
    for (int64_t r = 0; r < rows; r += DFLASH_TILE) {
      load_x(job, s, row + r, col, cols);
      for (int o = 0; o < outputs; o += DFLASH_TILE)
        multiply(job, s, &s->sums[r / DFLASH_TILE][o / DFLASH_TILE], o, cols);
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
  job.half = call->half && job.scaled;
  job.scratch = aligned_alloc(64, (size_t)dflash_pool_threads(call->pool) * sizeof(Scratch)); /* filled by each block */
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
