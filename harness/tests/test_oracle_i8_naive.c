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

typedef struct Row {
  int64_t cols;
  I8Group *groups;            /* [cols / 32] of x */
  float *products, *unscaled; /* [cols / 32] dot * scale, step: an order of f32_dot adds their products */
} Row;

static void take_products(const DflashTensor *matrix, int64_t output, const Row *row) {
  float rungs[32];
  ladder_of(matrix, output, rungs);
  for (int64_t g = 0; g < row->cols / I8_GROUP; g++) {
    double values[I8_GROUP];
    int codes[I8_GROUP], dot = 0;
    dflash_tensor_row(matrix, output, g * I8_GROUP, I8_GROUP, values);
    float scale = codes_of(values, rungs, codes);
    for (int k = 0; k < I8_GROUP; k++) dot += codes[k] * row->groups[g].codes[k];
    row->products[g] = (float)dot * scale;
    row->unscaled[g] = row->groups[g].step;
  }
}

static void run_matrix(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashTensor *matrix = matrix_of(call);
  int64_t rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage), cols = dflash_tensor_cols(matrix);
  int64_t outputs = dflash_stage_width(call->geometry, &call->sizes, call->stage), groups = cols / I8_GROUP;
  Row row = {cols, dflash_alloc((size_t)groups, sizeof *row.groups), dflash_alloc((size_t)groups, sizeof(float)),
             dflash_alloc((size_t)groups, sizeof(float))};
  assert_true(row.groups && row.products && row.unscaled);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t g = 0; g < groups; g++) row.groups[g] = i8_group(row_of(call, r) + g * I8_GROUP);
    for (int64_t o = 0; o < outputs; o++) {
      take_products(matrix, o, &row);
      out[r * outputs + o] = f32_dot(way, row.products, row.unscaled, groups);
    }
  }
  free(row.groups);
  free(row.products);
  free(row.unscaled);
}

void i8_stage(const F32Way *way, const DflashOracleCall *call, float *out) {
  if (i8_takes_codes(call))
    run_matrix(way, call, out);
  else
    f32_stage(way, call, out);
}
