/* Activations as codes and steps, and how errors of the activations move them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "oracle_i8.h"
#include "oracle_math.h"

static const float ZERO_LIMIT = 0x1p-100f; /* a group whose largest magnitude is below is zero */

/* Magnitudes of floats are in the order of their bits, infinity and NaN above all others. */
static float largest(const float *x) {
  uint32_t most = 0, bits;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    memcpy(&bits, &x[k], sizeof bits);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  float value;
  memcpy(&value, &most, sizeof value);
  return value;
}

double dflash_i8_quantise(const float x[DFLASH_I8_GROUP], int16_t codes[DFLASH_I8_GROUP]) {
  float most = largest(x);
  memset(codes, 0, DFLASH_I8_GROUP * sizeof *codes);
  if (!isfinite(most)) return NAN;
  if (most < ZERO_LIMIT) return 0;
  float step = most / 127.0f, inverse = 127.0f / most;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    float scaled = x[k] * inverse;
    codes[k] = (int16_t)rintf(scaled); /* to even */
  }
  return (double)step;
}

/* Upper bound of the normal tail beyond t >= 0, exact at 0 and within 2% elsewhere. */
static double tail(double t) {
  return 0.3989422804014327 * dflash_oracle_exp(-0.5 * t * t) * 2 / (t + sqrt(t * t + 2.5464790894703255));
}

/* Square of the difference of two roundings, in steps: 1/12 each, and as much again for what they have in common. */
static const double LEFT_BY_ROUNDING = 1.0 / 3;

typedef struct Moves {
  double count, square, reach;
} Moves;

/* Half steps that lie `distance`, distance + 1, ... from the scaled value, at most `room` of them; deviation of the
 * scaled value in steps. */
static void add_side(Moves *moves, double distance, int room, double deviation) {
  for (int k = 1; k <= room; k++) {
    double t = fmax(distance + k - 1, 0) / deviation;
    if (t > DFLASH_I8_LAMBDA) return;
    double p = tail(t);
    moves->count += p;
    moves->square += (2 * k - 1) * p;
    moves->reach = fmax(moves->reach, k);
  }
}

/* Group facts: its largest value's sigma, the step's relative variance. */
typedef struct Group {
  double most, sway, top; /* largest magnitude; relative variance of it; largest sigma */
} Group;

/* The largest magnitude moves with every element that is close enough to be it. */
static Group look(const float *x, const float *sigma) {
  Group group = {.most = (double)largest(x)};
  double variance = 0;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    double deviation = (double)sigma[k];
    group.top = fmax(group.top, deviation);
    if (fabs((double)x[k]) + 4 * deviation >= group.most) variance += deviation * deviation;
  }
  group.sway = group.most > 0 ? variance / (group.most * group.most) : 0;
  return group;
}

/* Without a look at single steps: the activation's own error, and what the rounding of either side leaves: at most half
 * a step, or the limit where a group is zero. */
static void move_freely(DflashI8 *i8, int64_t at, int64_t group, double unit, const float *sigma) {
  double left = LEFT_BY_ROUNDING + (double)ZERO_LIMIT * (double)ZERO_LIMIT / (unit * unit);
  i8->moves[group] = unit;
  i8->sway[group] = 0;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    double deviation = (double)sigma[k] / unit;
    double square = deviation * deviation + left;
    i8->squares[at + k] = (float)square;
    i8->counts[at + k] = (float)sqrt(square);
    i8->reach[at + k] = (float)(DFLASH_I8_LAMBDA * deviation + 2 * sqrt(left));
    i8->movable[at + k] = -1;
  }
}

/* Half steps that are close enough to be crossed. Returns the sum of expected squares, in steps. */
static double move_by_steps(DflashI8 *i8, int64_t at, int64_t group, const Group *facts, const float *x,
                            const float *sigma) {
  double inverse = 127 / facts->most, sway = facts->sway + 4 * DFLASH_ROUNDING, squares = 0;
  bool any = false;
  for (int k = 0; k < DFLASH_I8_GROUP; k++) {
    double scaled = (double)x[k] * inverse, direct = (double)sigma[k] * inverse;
    double deviation = sqrt(direct * direct + scaled * scaled * sway);
    if (deviation == 0) continue;
    int code = i8->codes[at + k];
    Moves moves = {0, 0, 0};
    add_side(&moves, code + 0.5 - scaled, 127 - code, deviation);
    add_side(&moves, scaled - (code - 0.5), 127 + code, deviation);
    i8->counts[at + k] = (float)moves.count;
    i8->squares[at + k] = (float)moves.square;
    i8->reach[at + k] = (float)moves.reach;
    i8->movable[at + k] = moves.reach > 0 ? -1 : 0;
    squares += moves.square;
    any = any || moves.reach > 0;
  }
  i8->moves[group] = any ? i8->steps[group] : 0;
  i8->sway[group] = facts->sway > 0 ? facts->sway + 2 * DFLASH_ROUNDING : 0;
  return squares;
}

/* Step by step where errors are small beside a step: there most codes stay and the step's own change shows. Where they
 * are large, codes follow the activations, whatever the step is. */
void dflash_i8_moves(DflashI8 *i8, int64_t row, int64_t g, const float *x, const float *sigma) {
  int64_t group = row * i8->groups + g, at = row * i8->cols + g * DFLASH_I8_GROUP;
  Group facts = look(x, sigma);
  double reach = facts.most + DFLASH_I8_LAMBDA * facts.top, free_squares = DFLASH_I8_GROUP * LEFT_BY_ROUNDING;
  if (isnan(i8->steps[group]) || facts.top == 0 || reach < (double)ZERO_LIMIT) return;
  bool zero = facts.most - DFLASH_I8_LAMBDA * facts.top < (double)ZERO_LIMIT;
  if (zero || facts.sway > 0x1p-8) {
    move_freely(i8, at, group, (facts.most + 4 * facts.top) / 127, sigma);
    return;
  }
  for (int k = 0; k < DFLASH_I8_GROUP; k++)
    free_squares += (double)sigma[k] * (double)sigma[k] / (i8->steps[group] * i8->steps[group]);
  if (move_by_steps(i8, at, group, &facts, x, sigma) > free_squares)
    move_freely(i8, at, group, i8->steps[group], sigma);
}

typedef struct Job {
  const DflashMatrix *matrix;
  DflashI8 *i8;
} Job;

static void run_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  DflashI8 *i8 = job->i8;
  (void)worker;
  for (int64_t row = begin; row < end; row++)
    for (int64_t g = 0; g < i8->groups; g++) {
      int64_t at = row * i8->cols + g * DFLASH_I8_GROUP;
      i8->steps[row * i8->groups + g] = dflash_i8_quantise(job->matrix->x + at, i8->codes + at);
      if (i8->moves) dflash_i8_moves(i8, row, g, job->matrix->x + at, job->matrix->sigma + at);
    }
}

static bool open_arrays(DflashI8 *i8, bool moves) {
  size_t rows = (size_t)i8->rows, cols = (size_t)i8->cols, groups = (size_t)i8->groups;
  i8->codes = dflash_alloc(rows, cols * sizeof *i8->codes);
  i8->steps = dflash_alloc(rows, groups * sizeof *i8->steps);
  if (!moves) return i8->codes && i8->steps;
  i8->moves = dflash_alloc(rows, groups * sizeof *i8->moves);
  i8->sway = dflash_alloc(rows, groups * sizeof *i8->sway);
  i8->counts = dflash_alloc(rows, cols * sizeof *i8->counts);
  i8->squares = dflash_alloc(rows, cols * sizeof *i8->squares);
  i8->reach = dflash_alloc(rows, cols * sizeof *i8->reach);
  i8->movable = dflash_alloc(rows, cols * sizeof *i8->movable);
  return i8->codes && i8->steps && i8->moves && i8->sway && i8->counts && i8->squares && i8->reach && i8->movable;
}

DflashStatus dflash_i8_open(const DflashMatrix *matrix, DflashPool *pool, DflashI8 *i8, DflashError *error) {
  *i8 = (DflashI8){.rows = matrix->rows, .cols = matrix->cols, .groups = matrix->cols / DFLASH_I8_GROUP};
  if (!open_arrays(i8, matrix->sigma != NULL)) {
    dflash_i8_close(i8);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for codes of activations");
  }
  Job job = {matrix, i8};
  dflash_pool_run(pool, i8->rows, 1, run_rows, &job);
  return DFLASH_OK;
}

void dflash_i8_close(DflashI8 *i8) {
  free(i8->codes);
  free(i8->steps);
  free(i8->moves);
  free(i8->sway);
  free(i8->counts);
  free(i8->squares);
  free(i8->reach);
  free(i8->movable);
  *i8 = (DflashI8){0};
}
