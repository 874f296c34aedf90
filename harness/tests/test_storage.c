#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "model/storage.h"

static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                   DFLASH_STORAGE_Q4TP};

static DflashTensor tensor_of(int32_t storage, int64_t rows, int64_t cols) {
  DflashTensor tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}};
  assert_int_equal(dflash_storage_bytes(storage, rows, cols, &tensor.bytes, NULL), DFLASH_OK);
  tensor.data = malloc(tensor.bytes); /* exactly as long, so that a sanitizer sees a read past the end */
  assert_non_null(tensor.data);
  return tensor;
}

static unsigned char *bytes_of(DflashTensor *tensor) { return (unsigned char *)(uintptr_t)tensor->data; }

static void put_u16(unsigned char *at, uint16_t bits) {
  at[0] = (unsigned char)bits;
  at[1] = (unsigned char)(bits >> 8);
}

static void draw(DflashTensor *tensor, uint64_t seed) {
  DflashRandom random = dflash_random_stream(seed, "bytes");
  for (uint64_t i = 0; i < tensor->bytes; i++) bytes_of(tensor)[i] = (unsigned char)dflash_random_u32(random, i);
}

/* Drawn bytes with ladders that stay finite: lo in -8 .. 8, step in 0 .. 0.5. */
static void draw_q4tp(DflashTensor *tensor, uint64_t seed) {
  draw(tensor, seed);
  unsigned char *ladder = bytes_of(tensor) + tensor->shape[0] * tensor->shape[1] / 2;
  for (int64_t row = 0; row < tensor->shape[0]; row++) {
    uint32_t word = dflash_random_u32(dflash_random_stream(seed, "ladder"), (uint64_t)row);
    put_u16(ladder + 4 * row, dflash_f16_round(((float)(word & 0xffff) - 32768) / 4096));
    put_u16(ladder + 4 * row + 2, dflash_f16_round((float)(word >> 16) / 131072));
  }
}

static void release(DflashTensor *tensor) { free(bytes_of(tensor)); }

static void names_are_found(void **state) {
  (void)state;
  static const char *const names[] = {"f32", "f16", "bf16", "q8_2f", "q4tp"};
  for (int i = 0; i < 5; i++) {
    assert_string_equal(dflash_storage_name(storages[i]), names[i]);
    assert_int_equal(dflash_storage_find(names[i]), storages[i]);
  }
  assert_null(dflash_storage_name(3));
  assert_null(dflash_storage_name(-1));
  assert_int_equal(dflash_storage_find("f64"), -1);
  assert_int_equal(dflash_storage_find(""), -1);
}

static void sizes_follow_the_layout(void **state) {
  (void)state;
  static const struct {
    int32_t storage;
    int64_t rows, cols;
    uint64_t bytes;
  } cases[] = {{DFLASH_STORAGE_F32, 3, 5, 60},
               {DFLASH_STORAGE_F16, 3, 5, 30},
               {DFLASH_STORAGE_BF16, 1, 7, 14},
               {DFLASH_STORAGE_Q8_2F, 3, 5, 15 + 6 + 10},
               {DFLASH_STORAGE_Q4TP, 3, 32, 3 * 16 + 12 + 3},
               {DFLASH_STORAGE_Q4TP, 3, 96, 3 * 48 + 12 + 3 * 2},
               {DFLASH_STORAGE_Q4TP, 2, 256, 2 * 128 + 8 + 2 * 5},
               {DFLASH_STORAGE_Q4TP, 17408, 5120, (uint64_t)17408 * (2560 + 4 + 100)},
               {DFLASH_STORAGE_F32, (int64_t)1 << 40, (int64_t)1 << 20, (uint64_t)1 << 62}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t bytes;
    assert_int_equal(dflash_storage_bytes(cases[i].storage, cases[i].rows, cases[i].cols, &bytes, NULL), DFLASH_OK);
    assert_true(bytes == cases[i].bytes);
  }
}

static void impossible_sizes_are_refused(void **state) {
  (void)state;
  static const struct {
    int32_t storage;
    int64_t rows, cols;
    const char *part;
  } cases[] = {{7, 1, 1, "number 7"},
               {-1, 1, 1, "number -1"},
               {DFLASH_STORAGE_F32, 0, 5, "0 x 5"},
               {DFLASH_STORAGE_F32, 5, -1, "5 x -1"},
               {DFLASH_STORAGE_Q4TP, 3, 33, "33 columns"},
               {DFLASH_STORAGE_Q4TP, 3, 16, "16 columns"},
               {DFLASH_STORAGE_F32, INT64_MAX, INT64_MAX, "overflow"},
               {DFLASH_STORAGE_F32, (int64_t)1 << 41, (int64_t)1 << 20, "overflow"},
               {DFLASH_STORAGE_F16, INT64_MAX, 2, "overflow"},
               {DFLASH_STORAGE_Q8_2F, INT64_MAX, 1, "overflow"},
               {DFLASH_STORAGE_Q4TP, INT64_MAX, INT64_MAX - 31, "overflow"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t bytes;
    DflashError error = {0};
    DflashStatus status = dflash_storage_bytes(cases[i].storage, cases[i].rows, cases[i].cols, &bytes, &error);
    assert_int_equal(status, DFLASH_INVALID_DATA);
    if (!strstr(error.message, cases[i].part)) fail_msg("%s", error.message);
  }
}

static void tensors_fold_into_matrices(void **state) {
  (void)state;
  DflashTensor vector = {.rank = 1, .shape = {7}}, matrix = {.rank = 2, .shape = {7, 5}};
  DflashTensor base = {.rank = 3, .shape = {2, 4, 9}};
  assert_true(dflash_tensor_rows(&vector) == 1 && dflash_tensor_cols(&vector) == 7);
  assert_true(dflash_tensor_rows(&matrix) == 7 && dflash_tensor_cols(&matrix) == 5);
  assert_true(dflash_tensor_rows(&base) == 8 && dflash_tensor_cols(&base) == 9);
}

/* Bit `index` of a byte string, least significant first. */
static int bit_at(const unsigned char *bytes, int64_t index) { return bytes[index / 8] >> index % 8 & 1; }

/* One q4tp element from the page that describes the format: offsets by hand, code bits one by one. */
static double slow_q4tp(const DflashTensor *tensor, int64_t row, int64_t col) {
  const unsigned char *data = tensor->data;
  int64_t rows = tensor->shape[0], gpr = tensor->shape[1] / 32, group = col / 32;
  int64_t codes_per_row = gpr * 5 % 8 ? gpr * 5 / 8 + 1 : gpr * 5 / 8;
  const unsigned char *ladder = data + rows * gpr * 16 + row * 4;
  const unsigned char *codes = data + rows * gpr * 16 + rows * 4 + row * codes_per_row;
  int code = 0;
  for (int bit = 0; bit < 5; bit++) code += bit_at(codes, group * 5 + bit) << bit;
  unsigned char byte = data[row * gpr * 16 + group * 16 + col % 32 / 2];
  int nibble = col % 2 ? byte / 16 : byte % 16;
  double lo = (double)dflash_f16_value((uint16_t)(ladder[0] + 256 * ladder[1]));
  double step = (double)dflash_f16_value((uint16_t)(ladder[2] + 256 * ladder[3]));
  double rung = (double)(float)exp2(lo), factor = (double)(float)exp2(step);
  for (int c = 0; c < code; c++) rung = (double)(float)(rung * factor);
  return (nibble - 8) * rung;
}

static double slow_at(const DflashTensor *tensor, int64_t row, int64_t col) {
  const unsigned char *data = tensor->data;
  int64_t rows = tensor->shape[0], cols = tensor->shape[1], at = row * cols + col;
  float value;
  switch (tensor->storage) {
  case DFLASH_STORAGE_F32:
    memcpy(&value, data + 4 * at, 4);
    return (double)value;
  case DFLASH_STORAGE_F16:
    return (double)dflash_f16_value((uint16_t)(data[2 * at] + 256 * data[2 * at + 1]));
  case DFLASH_STORAGE_BF16:
    return (double)dflash_bf16_value((uint16_t)(data[2 * at] + 256 * data[2 * at + 1]));
  case DFLASH_STORAGE_Q8_2F: {
    const unsigned char *scale = data + rows * cols + 2 * row, *field = data + rows * cols + 2 * rows + 2 * col;
    int code = data[at] < 128 ? data[at] : data[at] - 256;
    return code * (double)dflash_f16_value((uint16_t)(scale[0] + 256 * scale[1])) *
           (double)dflash_f16_value((uint16_t)(field[0] + 256 * field[1]));
  }
  default:
    return slow_q4tp(tensor, row, col);
  }
}

static int same(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

static void decoding_agrees_with_a_slow_one(void **state) {
  (void)state;
  const int64_t widths[] = {32, 64, 96, 160, 256, 288, 1024};
  for (int s = 0; s < 5; s++)
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      DflashTensor tensor = tensor_of(storages[s], 5, widths[w]);
      if (storages[s] == DFLASH_STORAGE_Q4TP)
        draw_q4tp(&tensor, w);
      else
        draw(&tensor, w);
      double values[1024];
      for (int64_t row = 0; row < 5; row++) {
        dflash_tensor_row(&tensor, row, 0, widths[w], values);
        for (int64_t col = 0; col < widths[w]; col++) assert_true(same(values[col], slow_at(&tensor, row, col)));
      }
      release(&tensor);
    }
}

static void pieces_of_a_row_are_the_row(void **state) {
  (void)state;
  for (int s = 0; s < 5; s++) {
    DflashTensor tensor = tensor_of(storages[s], 3, 96);
    draw_q4tp(&tensor, 4);
    double whole[96], piece[96];
    dflash_tensor_row(&tensor, 2, 0, 96, whole);
    for (int64_t begin = 0; begin < 96; begin += 5)
      for (int64_t count = 0; begin + count <= 96; count += 7) {
        dflash_tensor_row(&tensor, 2, begin, count, piece);
        for (int64_t i = 0; i < count; i++) assert_true(same(piece[i], whole[begin + i]));
      }
    for (int64_t col = 0; col < 96; col++) assert_true(same(dflash_tensor_at(&tensor, 2, col), whole[col]));
    release(&tensor);
  }
}

static void vectors_and_base_kernels_decode(void **state) {
  (void)state;
  const float values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -0.5f};
  DflashTensor vector = {.rank = 1, .shape = {12}, .bytes = sizeof values, .data = values};
  DflashTensor base = {.rank = 3, .shape = {2, 3, 2}, .bytes = sizeof values, .data = values};
  assert_true(dflash_tensor_at(&vector, 0, 11) == -0.5);
  assert_true(dflash_tensor_at(&base, 4, 1) == 9);
  assert_int_equal(dflash_tensor_check(&vector, "vector", NULL), DFLASH_OK);
  assert_int_equal(dflash_tensor_check(&base, "base", NULL), DFLASH_OK);
}

static void extreme_codes_are_values(void **state) {
  (void)state;
  DflashTensor q8 = tensor_of(DFLASH_STORAGE_Q8_2F, 1, 1), q4 = tensor_of(DFLASH_STORAGE_Q4TP, 1, 32);
  bytes_of(&q8)[0] = 0x80;
  put_u16(bytes_of(&q8) + 1, 0x3c01); /* 1 + 2^-10, at an odd address */
  put_u16(bytes_of(&q8) + 3, 0x7bff); /* 65504 */
  assert_true(dflash_tensor_at(&q8, 0, 0) == -128 * (1 + 0x1p-10) * 65504);
  memset(bytes_of(&q4), 0xf0, 16); /* low nibble 0, high nibble 15 */
  put_u16(bytes_of(&q4) + 16, 0);
  put_u16(bytes_of(&q4) + 18, 0x3c00); /* step 1 */
  bytes_of(&q4)[20] = 31;
  assert_true(dflash_tensor_at(&q4, 0, 0) == -8 * 0x1p31 && dflash_tensor_at(&q4, 0, 1) == 7 * 0x1p31);
  assert_int_equal(dflash_tensor_check(&q8, "q8", NULL), DFLASH_OK);
  assert_int_equal(dflash_tensor_check(&q4, "q4", NULL), DFLASH_OK);
  release(&q8);
  release(&q4);
}

static void expect_refusal(const DflashTensor *tensor, const char *part) {
  DflashError error = {0};
  assert_int_equal(dflash_tensor_check(tensor, "fc.weight", &error), DFLASH_INVALID_DATA);
  if (!strstr(error.message, part) || strncmp(error.message, "fc.weight: ", 11) != 0) fail_msg("%s", error.message);
}

static void forms_are_checked(void **state) {
  (void)state;
  DflashTensor good = tensor_of(DFLASH_STORAGE_F32, 4, 32), bad = good;
  memset(bytes_of(&good), 0, good.bytes);
  assert_int_equal(dflash_tensor_check(&good, "fc.weight", NULL), DFLASH_OK);
  bad.rank = 0, expect_refusal(&bad, "rank is 0");
  bad.rank = 4, expect_refusal(&bad, "rank is 4");
  bad = good, bad.shape[0] = 0, expect_refusal(&bad, "dimension 0 is 0");
  bad = good, bad.shape[1] = -32, expect_refusal(&bad, "dimension 1 is -32");
  bad = good, bad.shape[0] = INT64_MAX, expect_refusal(&bad, "overflow");
  bad.rank = 3, bad.shape[1] = bad.shape[2] = 4, expect_refusal(&bad, "dimension 1 is 4");
  bad = good, bad.storage = 4, expect_refusal(&bad, "number 4");
  bad = good, bad.bytes--, expect_refusal(&bad, "511 bytes; expected 512");
  bad = good, bad.data = NULL, expect_refusal(&bad, "no address");
  release(&good);
}

/* A single bad element anywhere is found and named, also past the pieces in which the pass looks. */
static void one_bad_element_is_found(void **state) {
  (void)state;
  const int64_t rows = 37, cols = 291, places[] = {0, 1, 4095, 4096, 4097, 8191, rows * cols - 1};
  for (int s = 0; s < 3; s++)
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
      for (int kind = 0; kind < 4; kind++) {
        DflashTensor tensor = tensor_of(storages[s], rows, cols);
        memset(bytes_of(&tensor), 0x3b, tensor.bytes);
        assert_int_equal(dflash_tensor_check(&tensor, "fc.weight", NULL), DFLASH_OK);
        int width = s == 0 ? 4 : 2;
        uint32_t bits = s == 0 ? 0x7f800000u : s == 1 ? 0x7c00u : 0x7f80u;
        bits |= (kind & 1 ? 1u : 0u) | (kind & 2 ? 1u << (8 * width - 1) : 0u);
        memcpy(bytes_of(&tensor) + places[p] * width, &bits, (size_t)width);
        DflashError error = {0};
        char place[64];
        snprintf(place, sizeof place, "row %d, column %d is ", (int)(places[p] / cols), (int)(places[p] % cols));
        assert_int_equal(dflash_tensor_check(&tensor, "fc.weight", &error), DFLASH_INVALID_DATA);
        if (!strstr(error.message, place)) fail_msg("%s lacks %s", error.message, place);
        release(&tensor);
      }
}

static void scales_of_q8_must_be_finite(void **state) {
  (void)state;
  DflashTensor tensor = tensor_of(DFLASH_STORAGE_Q8_2F, 3, 5);
  memset(bytes_of(&tensor), 0xff, 15); /* codes may be anything */
  memset(bytes_of(&tensor) + 15, 0, 16);
  assert_int_equal(dflash_tensor_check(&tensor, "fc.weight", NULL), DFLASH_OK);
  put_u16(bytes_of(&tensor) + 15 + 4, 0x7c00);
  expect_refusal(&tensor, "scale of row 2 is inf");
  put_u16(bytes_of(&tensor) + 15 + 4, 0);
  put_u16(bytes_of(&tensor) + 15 + 6 + 8, 0x7e00);
  expect_refusal(&tensor, "field of column 4 is nan");
  release(&tensor);
}

/* Two rows of 96 columns; row 1 has this ladder, and its three groups these codes. */
static DflashTensor with_ladder(uint16_t lo, uint16_t step, int code0, int code1, int code2) {
  DflashTensor tensor = tensor_of(DFLASH_STORAGE_Q4TP, 2, 96);
  memset(bytes_of(&tensor), 0, tensor.bytes);
  put_u16(bytes_of(&tensor) + 96 + 4, lo);
  put_u16(bytes_of(&tensor) + 96 + 6, step);
  put_u16(bytes_of(&tensor) + 96 + 8 + 2, (uint16_t)(code0 | code1 << 5 | code2 << 10));
  return tensor;
}

static void every_rung_of_q4tp_must_be_finite(void **state) {
  (void)state;
  const uint16_t ten = 0x4900, five = 0x4500, huge = 0x7bff, inf = 0x7c00, nan = 0x7e00, minus = 0x8000;
  static const struct {
    uint16_t lo, step;
    int codes[3];
    const char *part; /* NULL: accepted */
  } cases[] = {{ten, 0x3c00, {0, 10, 31}, NULL},
               {ten, five, {0, 10, 23}, "row 1, rung 24 is inf"}, /* rung 23 is 2^125; no code names rung 24 */
               {inf, 0, {0, 0, 0}, "row 1 has lo inf and step 0"},
               {0, inf | minus, {0, 0, 0}, "row 1 has lo 0 and step -inf"},
               {nan, 0, {0, 0, 0}, "row 1 has lo nan"},
               {0, nan, {0, 0, 0}, "step nan"},
               {huge, 0, {0, 0, 0}, "rung 0 is inf"},
               {huge, huge | minus, {31, 31, 31}, "is"},        /* infinity times 0 */
               {huge | minus, huge, {0, 0, 0}, "rung 1 is"},    /* 0 times infinity */
               {huge | minus, huge | minus, {0, 15, 31}, NULL}, /* all rungs 0 */
               {ten, huge | minus, {0, 1, 31}, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int *codes = cases[i].codes;
    DflashTensor tensor = with_ladder(cases[i].lo, cases[i].step, codes[0], codes[1], codes[2]);
    if (cases[i].part)
      expect_refusal(&tensor, cases[i].part);
    else
      assert_int_equal(dflash_tensor_check(&tensor, "fc.weight", NULL), DFLASH_OK);
    release(&tensor);
  }
}

static void checked_tensors_decode_to_finite_values(void **state) {
  (void)state;
  int accepted = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    DflashTensor tensor = tensor_of(DFLASH_STORAGE_Q4TP, 1, 96);
    draw(&tensor, seed);
    double values[96];
    dflash_tensor_row(&tensor, 0, 0, 96, values);
    int finite = 1;
    for (int i = 0; i < 96; i++) finite &= isfinite(values[i]) != 0;
    if (dflash_tensor_check(&tensor, "drawn", NULL) == DFLASH_OK) {
      assert_true(finite);
      accepted++;
    }
    release(&tensor);
  }
  assert_true(accepted > 40 && accepted < 360);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_found),
      cmocka_unit_test(sizes_follow_the_layout),
      cmocka_unit_test(impossible_sizes_are_refused),
      cmocka_unit_test(tensors_fold_into_matrices),
      cmocka_unit_test(decoding_agrees_with_a_slow_one),
      cmocka_unit_test(pieces_of_a_row_are_the_row),
      cmocka_unit_test(vectors_and_base_kernels_decode),
      cmocka_unit_test(extreme_codes_are_values),
      cmocka_unit_test(forms_are_checked),
      cmocka_unit_test(one_bad_element_is_found),
      cmocka_unit_test(scales_of_q8_must_be_finite),
      cmocka_unit_test(every_rung_of_q4tp_must_be_finite),
      cmocka_unit_test(checked_tensors_decode_to_finite_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
