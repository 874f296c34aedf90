#include "test_oracle_i8_naive.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/storage.h"

static int half_to_even(double value) {
  double below = floor(value), rest = value - below;
  bool up = rest > 0.5 || (rest == 0.5 && fmod(below, 2) != 0);
  return (int)below + up;
}

I8Group i8_group(const float *x) {
  I8Group group = {0};
  double most = 0;
  for (int k = 0; k < I8_GROUP; k++) most = fmax(most, fabs((double)x[k]));
  if (most < ldexp(1, -100)) return group;
  group.step = (float)(most / 127);
  float inverse = (float)(127 / most);
  for (int k = 0; k < I8_GROUP; k++) {
    float scaled = (float)((double)x[k] * (double)inverse);
    group.codes[k] = half_to_even((double)scaled);
  }
  return group;
}

static const DflashTensor *matrix_of(const DflashOracleCall *call) {
  return dflash_stage_weight(call->weights, call->stage, call->layer);
}

bool i8_takes_codes(const DflashOracleCall *call) {
  const DflashTensor *matrix = matrix_of(call);
  return dflash_stage_is_matrix(call->stage) && matrix->storage == DFLASH_STORAGE_Q4TP;
}

static const float *row_of(const DflashOracleCall *call, int64_t row) {
  bool drafts = dflash_stage_row(call->stage)->rows == DFLASH_ROWS_DRAFT;
  return call->inputs[0] + (row + drafts) * dflash_tensor_cols(matrix_of(call));
}

long double i8_element(const DflashOracleCall *call, int64_t row, int64_t column) {
  const DflashTensor *matrix = matrix_of(call);
  long double sum = 0;
  for (int64_t col = 0; col < dflash_tensor_cols(matrix); col += I8_GROUP) {
    I8Group group = i8_group(row_of(call, row) + col);
    long double dot = 0;
    for (int k = 0; k < I8_GROUP; k++) dot += (long double)dflash_tensor_at(matrix, column, col + k) * group.codes[k];
    sum += dot * (long double)group.step;
  }
  return sum;
}

/* The scale of a group of weights, from any of its values that is not 0, and the codes: value / scale. */
static float codes_of(const double *values, const float *rungs, int codes[I8_GROUP]) {
  for (int rung = 0; rung < 32; rung++) {
    bool all = true;
    for (int k = 0; k < I8_GROUP; k++) {
      double code = values[k] / (double)rungs[rung];
      codes[k] = (int)code;
      all = all && code == floor(code) && code >= -8 && code <= 7;
    }
    if (all) return rungs[rung];
  }
  fail_msg("%s", "no rung fits a group");
  return 0;
}

static void ladder_of(const DflashTensor *matrix, int64_t row, float rungs[32]) {
  int64_t nibbles = dflash_tensor_rows(matrix) * dflash_tensor_cols(matrix) / 2;
  const unsigned char *at = (const unsigned char *)matrix->data + nibbles + row * 4;
  dflash_q4tp_ladder((uint16_t)(at[0] | at[1] << 8), (uint16_t)(at[2] | at[3] << 8), rungs);
}

/* One row of weights, taken apart. */
typedef struct Weights {
  int64_t groups;
  int (*codes)[I8_GROUP]; /* [groups] */
  float *scales;          /* [groups] */
} Weights;

static void take_apart(const DflashTensor *matrix, int64_t output, const Weights *w) {
  float rungs[32];
  ladder_of(matrix, output, rungs);
  for (int64_t g = 0; g < w->groups; g++) {
    double values[I8_GROUP];
    dflash_tensor_row(matrix, output, g * I8_GROUP, I8_GROUP, values);
    w->scales[g] = codes_of(values, rungs, w->codes[g]);
  }
}

/* Dots scaled, times steps: the way adds these products. */
static float multiply(const F32Way *way, const Weights *w, const I8Group *x, float *scaled, float *steps) {
  for (int64_t g = 0; g < w->groups; g++) {
    int dot = 0;
    for (int k = 0; k < I8_GROUP; k++) dot += w->codes[g][k] * x[g].codes[k];
    scaled[g] = (float)dot * w->scales[g];
    steps[g] = x[g].step;
  }
  return f32_dot(way, scaled, steps, w->groups);
}

static void run_matrix(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashTensor *matrix = matrix_of(call);
  int64_t rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  int64_t outputs = dflash_stage_width(call->geometry, &call->sizes, call->stage);
  size_t groups = (size_t)(dflash_tensor_cols(matrix) / I8_GROUP);
  Weights w = {(int64_t)groups, dflash_alloc(groups, sizeof *w.codes), dflash_alloc(groups, sizeof *w.scales)};
  I8Group *x = dflash_alloc((size_t)rows * groups, sizeof *x);
  float *scaled = dflash_alloc(groups, sizeof *scaled), *steps = dflash_alloc(groups, sizeof *steps);
  if (!w.codes || !w.scales || !x || !scaled || !steps) abort();
  for (int64_t i = 0; i < rows * w.groups; i++) x[i] = i8_group(row_of(call, i / w.groups) + i % w.groups * I8_GROUP);
  for (int64_t o = 0; o < outputs; o++) {
    take_apart(matrix, o, &w);
    for (int64_t r = 0; r < rows; r++) out[r * outputs + o] = multiply(way, &w, x + r * w.groups, scaled, steps);
  }
  free(w.codes);
  free(w.scales);
  free(x);
  free(scaled);
  free(steps);
}

void i8_stage(const F32Way *way, const DflashOracleCall *call, float *out) {
  if (i8_takes_codes(call))
    run_matrix(way, call, out);
  else
    f32_stage(way, call, out);
}
