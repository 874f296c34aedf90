/* Matrix products of profile i8. Dots of codes are integers, so only the sum over groups has an order: one after the
 * other. A worker takes a row of weights apart once and multiplies it with every row of codes. */
#include "oracle_i8.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"
#include "oracle_internal.h"

/* A row of weights. */
typedef struct Weights {
  int16_t *codes; /* [cols] */
  float *sizes;   /* [cols] magnitudes of codes */
  float *scales;  /* [groups] */
  DflashDistinct distinct;
} Weights;

typedef struct Job {
  DflashMatrix matrix;
  DflashI8 i8;
  bool scaled;
  bool *few;        /* [rows] some groups of the row have equal steps, so that terms may be equal */
  Weights *weights; /* [threads] */
} Job;

/* Sums over groups, of terms t = dot * scale * step. */
typedef struct Sums {
  double value, squares, path, drift; /* sum of t, t^2; of the partial sums' squares and values */
  double nonzero, flush, sway;
  double count, square, reach, largest; /* of moves */
} Sums;

static int32_t dot(const int16_t *a, const int16_t *b) {
  int32_t sum = 0;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) sum += (int32_t)a[k] * b[k];
  return sum;
}

static void add_term(Sums *sums, int32_t product, double scale, double step) {
  double term = product * scale * step;
  sums->value += term;
  sums->squares += term * term;
  sums->path += sums->value * sums->value;
  sums->drift += sums->value;
  if (term == 0) return;
  sums->nonzero++;
  sums->flush += 1 + (double)product * product + step * step;
}

typedef float Lanes __attribute__((vector_size(32), may_alias));
enum { LANES = sizeof(Lanes) / sizeof(float) };

/* In halves: sums of 32 terms, none of them negative. */
static double add_lanes(const Lanes *lanes) {
  float l[LANES];
  memcpy(l, lanes, sizeof l);
  return (double)((l[0] + l[4] + (l[2] + l[6])) + (l[1] + l[5] + (l[3] + l[7])));
}

/* The largest code of a weight whose activation may move. */
static int largest_code(const int16_t *movable, const int16_t *codes) {
  int16_t largest = 0;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    int16_t size = codes[k] < 0 ? (int16_t)-codes[k] : codes[k];
    size &= movable[k];
    largest = size > largest ? size : largest;
  }
  return largest;
}

/* What moves of the group's activations do to the output. at, to: its first column in all rows of activations and in
 * the row of weights; unit: of a move times a code of 1. */
static void add_moves(Sums *sums, const DflashI8 *i8, int64_t at, const Weights *w, int64_t to, double unit) {
  Lanes count = {0}, square = {0}, within = {0};
  for (int k = 0; k < DFLASH_I8_GROUP; k += LANES) {
    Lanes size = *(const Lanes *)(const void *)(w->sizes + to + k);
    count += *(const Lanes *)(const void *)(i8->counts + at + k) * size;
    square += *(const Lanes *)(const void *)(i8->squares + at + k) * (size * size);
    within += *(const Lanes *)(const void *)(i8->reach + at + k) * size;
  }
  sums->count += add_lanes(&count) * unit;
  sums->square += add_lanes(&square) * unit * unit;
  sums->reach += add_lanes(&within) * unit;
  sums->largest = fmax(sums->largest, largest_code(i8->movable + at, w->codes + to) * unit);
}

static Sums sum_groups(const Job *job, const Weights *w, int64_t row) {
  const DflashI8 *i8 = &job->i8;
  Sums sums = {0};
  for (int64_t g = 0; g < i8->groups; g++) {
    int64_t group = row * i8->groups + g, at = row * i8->cols + g * DFLASH_I8_GROUP;
    const int16_t *codes = w->codes + g * DFLASH_I8_GROUP;
    double scale = (double)w->scales[g];
    int32_t product = dot(i8->codes + at, codes);
    add_term(&sums, product, scale, i8->steps[group]);
    if (!i8->moves) continue;
    double term = product * scale * i8->steps[group];
    sums.sway += term * term * i8->sway[group];
    if (i8->moves[group] > 0) add_moves(&sums, i8, at, w, g * DFLASH_I8_GROUP, fabs(scale) * i8->moves[group]);
  }
  return sums;
}

/* Equal terms round alike: how often each occurs, at most. */
static double repeats(const Job *job, Weights *w, int64_t row, double nonzero) {
  const DflashI8 *i8 = &job->i8;
  if (!job->few[row]) return 1;
  memset(&w->distinct, 0, sizeof w->distinct);
  for (int64_t g = 0; g < i8->groups; g++) {
    int64_t at = row * i8->cols + g * DFLASH_I8_GROUP;
    double scale = (double)w->scales[g] * i8->steps[row * i8->groups + g];
    dflash_distinct_add(&w->distinct, (float)(dot(i8->codes + at, w->codes + g * DFLASH_I8_GROUP) * scale));
  }
  return dflash_repeats(nonzero, dflash_distinct_values(&w->distinct));
}

static double own_variance(const Job *job, Weights *w, int64_t row, const Sums *sums) {
  if (isnan(sums->value)) return NAN;
  if (sums->nonzero == 0) return 0;
  double value = sums->value, backwards = sums->path - 2 * value * sums->drift + (double)job->i8.groups * value * value;
  double natural = fmax(sums->path, backwards) * (sums->nonzero / (double)job->i8.groups) + 0.5 * value * value;
  double partial = fmax(dflash_partials(sums->nonzero, sums->squares, value), natural);
  double roundings = repeats(job, w, row, sums->nonzero) * partial + 2 * sums->squares;
  return DFLASH_ROUNDING * roundings + sums->flush * DFLASH_FLUSH + dflash_golden_rounding(value);
}

/* Moves add linearly: the expected ones and five of the largest, but no more than twice all within reach. Where the
 * expected moves are many, their standard deviations say more. */
static double moved_variance(const Sums *sums) {
  double many = DFLASH_I8_LAMBDA * sqrt(sums->square), moves = fmin(sums->count, many) + 5 * sums->largest;
  double bound = fmax(fmin(2 * sums->reach, moves), many) / DFLASH_I8_LAMBDA;
  return sums->sway + bound * bound;
}

/* Whether f32 adds the terms without rounding, in any order. */
static bool exact_terms(const Job *job, const Weights *w, int64_t row) {
  const DflashI8 *i8 = &job->i8;
  DflashExactSum sum = {INT_MAX, 0};
  for (int64_t g = 0; g < i8->groups; g++) {
    int64_t at = row * i8->cols + g * DFLASH_I8_GROUP;
    double product = (double)dot(i8->codes + at, w->codes + g * DFLASH_I8_GROUP) * (double)w->scales[g];
    dflash_exact_add(&sum, product, i8->steps[row * i8->groups + g]);
  }
  return dflash_exact_holds(&sum);
}

static void finish(const Job *job, Weights *w, int64_t row, int64_t output, const Sums *sums) {
  const DflashOracleCall *call = job->matrix.call;
  int64_t at = row * job->matrix.outputs + output;
  if (!job->scaled) {
    dflash_oracle_put(call, at, sums->value, 0, 0, false);
    return;
  }
  bool exact = call->exact && exact_terms(job, w, row);
  dflash_oracle_put(call, at, sums->value, own_variance(job, w, row, sums), moved_variance(sums), exact);
}

static void run_outputs(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  Weights *w = &job->weights[worker];
  for (int64_t output = begin; output < end; output++) {
    dflash_q4tp_row(job->matrix.weights, output, w->codes, w->scales);
    for (int64_t k = 0; k < job->i8.cols; k++) w->sizes[k] = fabsf((float)w->codes[k]);
    for (int64_t row = 0; row < job->matrix.rows; row++) {
      Sums sums = sum_groups(job, w, row);
      finish(job, w, row, output, &sums);
    }
  }
}

static void find_few(Job *job) {
  const DflashI8 *i8 = &job->i8;
  for (int64_t row = 0; row < i8->rows; row++) {
    int64_t nonzero = 0;
    DflashDistinct *steps = &job->weights[0].distinct;
    memset(steps, 0, sizeof *steps);
    for (int64_t g = 0; g < i8->groups; g++) {
      float step = (float)i8->steps[row * i8->groups + g];
      nonzero += step != 0;
      dflash_distinct_add(steps, step);
    }
    job->few[row] = dflash_distinct_values(steps) < (double)nonzero;
  }
}

static bool open_weights(Job *job, int threads) {
  job->weights = dflash_alloc((size_t)threads, sizeof *job->weights);
  job->few = dflash_alloc((size_t)job->i8.rows, sizeof *job->few);
  bool all = job->weights && job->few;
  for (int i = 0; all && i < threads; i++) {
    job->weights[i].codes = dflash_alloc((size_t)job->i8.cols, sizeof *job->weights[i].codes);
    job->weights[i].scales = dflash_alloc((size_t)job->i8.groups, sizeof *job->weights[i].scales);
    job->weights[i].sizes = dflash_alloc((size_t)job->i8.cols, sizeof *job->weights[i].sizes);
    all = job->weights[i].codes && job->weights[i].scales && job->weights[i].sizes;
  }
  return all;
}

static void close_weights(Job *job, int threads) {
  for (int i = 0; job->weights && i < threads; i++) {
    free(job->weights[i].codes);
    free(job->weights[i].sizes);
    free(job->weights[i].scales);
  }
  free(job->weights);
  free(job->few);
}

DflashStatus dflash_oracle_matrix_i8(const DflashOracleCall *call, DflashError *error) {
  Job job = {.scaled = dflash_oracle_scaled(call)};
  int threads = dflash_pool_threads(call->pool);
  DflashStatus status = dflash_matrix_open(call, &job.matrix, error);
  if (status != DFLASH_OK) return status;
  status = dflash_i8_open(&job.matrix, call->pool, &job.i8, error);
  if (status == DFLASH_OK && !open_weights(&job, threads))
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for a matrix product");
  if (status == DFLASH_OK) {
    if (job.scaled) find_few(&job);
    dflash_pool_run(call->pool, job.matrix.outputs, 8, run_outputs, &job);
  }
  close_weights(&job, threads);
  dflash_i8_close(&job.i8);
  dflash_matrix_close(&job.matrix);
  return status;
}
