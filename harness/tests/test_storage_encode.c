#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "model/storage.h"

static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                   DFLASH_STORAGE_Q4TP};

enum { ROWS = 6, COLS = 320 };

static DflashTensor encode(int32_t storage, const float *values, int64_t rows, int64_t cols) {
  DflashTensor tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}};
  DflashError error = {0};
  assert_int_equal(dflash_storage_bytes(storage, rows, cols, &tensor.bytes, NULL), DFLASH_OK);
  void *data = malloc(tensor.bytes);
  assert_non_null(data);
  memset(data, 0xa5, tensor.bytes);
  if (dflash_storage_encode(storage, values, rows, cols, data, &error) != DFLASH_OK) fail_msg("%s", error.message);
  tensor.data = data;
  if (dflash_tensor_check(&tensor, "encoded", &error) != DFLASH_OK) fail_msg("%s", error.message);
  return tensor;
}

static void release(DflashTensor *tensor) { free((void *)(uintptr_t)tensor->data); }

/* Sums of four uniform numbers, about normal with deviation `size`. */
static void draw(float *values, int64_t count, double size, uint64_t seed) {
  DflashRandom random = dflash_random_stream(seed, "values");
  for (int64_t i = 0; i < count; i++) {
    uint32_t words[4];
    dflash_random_block(random, (uint64_t)i, words);
    double sum = 0;
    for (int w = 0; w < 4; w++) sum += words[w] * 0x1p-32 - 0.5;
    values[i] = (float)(sum * sqrt(3) * size);
  }
}

static void dense_storages_keep_or_round(void **state) {
  (void)state;
  float values[ROWS * COLS];
  draw(values, ROWS * COLS, 0.02, 1);
  for (int s = 0; s < 3; s++) {
    DflashTensor tensor = encode(storages[s], values, ROWS, COLS);
    for (int64_t i = 0; i < ROWS * COLS; i++) {
      double expected = (double)values[i];
      if (s == 1) expected = (double)dflash_f16_value(dflash_f16_round(values[i]));
      if (s == 2) expected = (double)dflash_bf16_value(dflash_bf16_round(values[i]));
      assert_true(dflash_tensor_at(&tensor, i / COLS, i % COLS) == expected);
    }
    release(&tensor);
  }
}

static double reaching_scale(const float *group) {
  double scale = 0;
  for (int i = 0; i < 32; i++) scale = fmax(scale, group[i] > 0 ? (double)group[i] / 7 : -(double)group[i] / 8);
  return scale;
}

/* No group does worse than rounding at 1.4 times the smallest scale that clips nothing would: the ladder's steps and
 * roundings together stay below that for rows whose groups lie within a factor of 64. */
static void check_q4tp_bound(const float *values, int64_t rows, int64_t cols) {
  DflashTensor tensor = encode(DFLASH_STORAGE_Q4TP, values, rows, cols);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t group = 0; group < cols / 32; group++) {
      const float *at = values + row * cols + group * 32;
      double decoded[32], sum = 0, half_step = 0.7 * reaching_scale(at);
      dflash_tensor_row(&tensor, row, group * 32, 32, decoded);
      for (int i = 0; i < 32; i++) sum += (decoded[i] - (double)at[i]) * (decoded[i] - (double)at[i]);
      assert_true(sum <= 32 * half_step * half_step);
    }
  release(&tensor);
}

static void q4tp_errors_are_bounded(void **state) {
  (void)state;
  const double sizes[] = {1e-30, 1e-7, 0.02, 1, 3e4, 1e36};
  float values[ROWS * COLS];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    draw(values, ROWS * COLS, sizes[s], s);
    check_q4tp_bound(values, ROWS, COLS);
    for (int64_t i = 0; i < ROWS * COLS; i++) values[i] *= (float)(1 << i / 32 % 7); /* groups of unlike size */
    check_q4tp_bound(values, ROWS, COLS);
  }
}

static void the_ladder_reaches_the_largest_group(void **state) {
  (void)state;
  float values[COLS];
  for (uint64_t seed = 0; seed < 200; seed++) {
    draw(values, COLS, 0.02, seed);
    DflashTensor tensor = encode(DFLASH_STORAGE_Q4TP, values, 1, COLS);
    uint16_t ladder[2];
    float rungs[32];
    memcpy(ladder, (const unsigned char *)tensor.data + COLS / 2, sizeof ladder);
    dflash_q4tp_ladder(ladder[0], ladder[1], rungs);
    double largest = 0;
    for (int64_t group = 0; group < COLS / 32; group++) largest = fmax(largest, reaching_scale(values + 32 * group));
    assert_true((double)rungs[31] >= largest * (1 - 0x1p-18) && (double)rungs[31] < largest * 1.02);
    release(&tensor);
  }
}

/* About normal values: 4-bit rounding at the scale of a group of 32 leaves near 7% of the norm. */
static void q4tp_is_as_good_as_four_bits_are(void **state) {
  (void)state;
  enum { MANY = 2048 };
  float *values = malloc(sizeof(float) * ROWS * MANY);
  assert_non_null(values);
  draw(values, ROWS * MANY, 0.02, 5);
  DflashTensor tensor = encode(DFLASH_STORAGE_Q4TP, values, ROWS, MANY);
  double error = 0, norm = 0;
  for (int64_t i = 0; i < ROWS * MANY; i++) {
    double difference = dflash_tensor_at(&tensor, i / MANY, i % MANY) - (double)values[i];
    error += difference * difference;
    norm += (double)values[i] * (double)values[i];
  }
  assert_true(sqrt(error / norm) < 0.09 && sqrt(error / norm) > 0.05);
  release(&tensor);
  free(values);
}

/* Two groups whose values are multiples of one scale each: the ladder has a rung within half a step of both. */
static void q4tp_codes_use_both_ends(void **state) {
  (void)state;
  float values[64] = {0};
  for (int i = 0; i < 64; i++) values[i] = (float)(i % 16 - 8) * (i < 32 ? 0.5f : 2.0f);
  DflashTensor tensor = encode(DFLASH_STORAGE_Q4TP, values, 1, 64);
  const unsigned char *nibbles = tensor.data;
  int seen[16] = {0};
  for (int i = 0; i < 32; i++) seen[nibbles[i] & 15]++, seen[nibbles[i] >> 4]++;
  for (int n = 0; n < 16; n++) assert_int_equal(seen[n], 4);
  for (int i = 0; i < 64; i++)
    assert_true(fabs(dflash_tensor_at(&tensor, 0, i) - (double)values[i]) <= 0.03 * fabs((double)values[i]));
  release(&tensor);
}

static void zeros_stay_zero(void **state) {
  (void)state;
  float values[3 * 96] = {0};
  values[96 + 40] = -0.25f; /* row 1: one group of three; rows 0 and 2: nothing */
  for (int s = 0; s < 5; s++) {
    DflashTensor tensor = encode(storages[s], values, 3, 96);
    for (int64_t i = 0; i < 3 * 96; i++) {
      double got = dflash_tensor_at(&tensor, i / 96, i % 96);
      if (i == 96 + 40)
        assert_true(fabs(got + 0.25) < 0.01);
      else
        assert_true(got == 0);
    }
    release(&tensor);
  }
}

static void extremes_encode(void **state) {
  (void)state;
  float values[2][64];
  for (int i = 0; i < 64; i++) values[0][i] = i % 2 ? FLT_MAX : -FLT_MAX;
  for (int i = 0; i < 64; i++) values[1][i] = i % 2 ? FLT_TRUE_MIN : -FLT_TRUE_MIN;
  DflashTensor tensor = encode(DFLASH_STORAGE_Q4TP, values[0], 2, 64);
  for (int i = 0; i < 64; i++) assert_true(fabs(dflash_tensor_at(&tensor, 0, i) / (double)values[0][i] - 1) < 0.13);
  for (int i = 0; i < 64; i++) assert_true(dflash_tensor_at(&tensor, 1, i) == (double)values[1][i]);
  release(&tensor);
}

static void check_q8_bound(const float *values, int64_t rows, int64_t cols) {
  DflashTensor tensor = encode(DFLASH_STORAGE_Q8_2F, values, rows, cols);
  const unsigned char *scales = (const unsigned char *)tensor.data + rows * cols;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t col = 0; col < cols; col++) {
      uint16_t scale, field;
      memcpy(&scale, scales + 2 * row, 2);
      memcpy(&field, scales + 2 * rows + 2 * col, 2);
      double half_step = (double)dflash_f16_value(scale) * (double)dflash_f16_value(field) / 2;
      double difference = dflash_tensor_at(&tensor, row, col) - (double)values[row * cols + col];
      assert_true(fabs(difference) <= half_step * (1 + 1e-12));
    }
  release(&tensor);
}

static void q8_errors_are_bounded(void **state) {
  (void)state;
  const double sizes[] = {1e-20, 1e-7, 1e-3, 0.02, 1, 1e4, 1e8};
  float values[ROWS * (COLS + 1)];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    draw(values, ROWS * (COLS + 1), sizes[s], s);
    check_q8_bound(values, ROWS, COLS + 1);
    check_q8_bound(values, ROWS * (COLS + 1), 1);
    check_q8_bound(values, 1, ROWS * (COLS + 1));
  }
}

static double relative_error(const float *values, int64_t rows, int64_t cols, int64_t skip) {
  DflashTensor tensor = encode(DFLASH_STORAGE_Q8_2F, values, rows, cols);
  double error = 0, norm = 0;
  for (int64_t i = 0; i < rows * cols; i++) {
    double difference = dflash_tensor_at(&tensor, i / cols, i % cols) - (double)values[i];
    if (i % cols == skip) continue;
    error += difference * difference;
    norm += (double)values[i] * (double)values[i];
  }
  release(&tensor);
  return sqrt(error / norm);
}

/* A column a hundred times as large does not cost the others their bits: that is what the field is for. */
static void an_outlying_column_costs_the_others_nothing(void **state) {
  (void)state;
  float values[ROWS * COLS];
  draw(values, ROWS * COLS, 0.02, 9);
  double plain = relative_error(values, ROWS, COLS, 7);
  for (int64_t row = 0; row < ROWS; row++) values[row * COLS + 7] *= 100;
  double outlying = relative_error(values, ROWS, COLS, 7);
  assert_true(plain < 0.01 && outlying < 1.2 * plain);
}

static void q8_codes_stay_within_127(void **state) {
  (void)state;
  float values[ROWS * COLS];
  draw(values, ROWS * COLS, 0.02, 3);
  DflashTensor tensor = encode(DFLASH_STORAGE_Q8_2F, values, ROWS, COLS);
  const int8_t *codes = tensor.data;
  for (int64_t row = 0; row < ROWS; row++) {
    int largest = 0;
    for (int64_t col = 0; col < COLS; col++) {
      int magnitude = abs(codes[row * COLS + col]);
      assert_true(magnitude <= 127);
      if (magnitude > largest) largest = magnitude;
    }
    assert_true(largest >= 126); /* the scale is the smallest that clips nothing */
  }
  release(&tensor);
}

static void nonfinite_input_is_refused(void **state) {
  (void)state;
  const float bad[] = {NAN, INFINITY, -INFINITY};
  unsigned char out[64 * 4 + 64 * 4];
  for (int s = 0; s < 5; s++)
    for (int b = 0; b < 3; b++) {
      float values[64] = {0};
      DflashError error = {0};
      values[45] = bad[b];
      assert_int_equal(dflash_storage_encode(storages[s], values, 2, 32, out, &error), DFLASH_NONFINITE);
      assert_non_null(strstr(error.message, "row 1, column 13"));
    }
}

static void values_beyond_a_storage_are_refused(void **state) {
  (void)state;
  float values[32] = {1, 2, 65520.0f};
  unsigned char out[256];
  DflashError error = {0};
  assert_int_equal(dflash_storage_encode(DFLASH_STORAGE_F16, values, 1, 32, out, &error), DFLASH_NONFINITE);
  assert_non_null(strstr(error.message, "row 0, column 2: 65520 is beyond the largest f16"));
  values[2] = FLT_MAX;
  assert_int_equal(dflash_storage_encode(DFLASH_STORAGE_BF16, values, 1, 32, out, &error), DFLASH_NONFINITE);
  assert_int_equal(dflash_storage_encode(DFLASH_STORAGE_Q8_2F, values, 1, 32, out, &error), DFLASH_NONFINITE);
  assert_non_null(strstr(error.message, "row 0 holds 3.40282e+38"));
  assert_int_equal(dflash_storage_encode(DFLASH_STORAGE_Q4TP, values, 1, 31, out, &error), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_storage_encode(6, values, 1, 32, out, &error), DFLASH_INVALID_DATA);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_storages_keep_or_round),
      cmocka_unit_test(q4tp_errors_are_bounded),
      cmocka_unit_test(the_ladder_reaches_the_largest_group),
      cmocka_unit_test(q4tp_is_as_good_as_four_bits_are),
      cmocka_unit_test(q4tp_codes_use_both_ends),
      cmocka_unit_test(zeros_stay_zero),
      cmocka_unit_test(extremes_encode),
      cmocka_unit_test(q8_errors_are_bounded),
      cmocka_unit_test(an_outlying_column_costs_the_others_nothing),
      cmocka_unit_test(q8_codes_stay_within_127),
      cmocka_unit_test(nonfinite_input_is_refused),
      cmocka_unit_test(values_beyond_a_storage_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
