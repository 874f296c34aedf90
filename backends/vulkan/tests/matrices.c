#include "matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

enum { TEAMS = 8, GROUP_CODE_BITS = 5 };

static const char *const STREAM = "matrix";

static uint32_t draw(DflashRandom random, uint64_t index) { return dflash_random_u32(random, index); }

static void set_bits(uint32_t *words, int64_t bit, int width, uint32_t value) {
  for (int i = 0; i < width; i++, bit++)
    if (value >> i & 1) words[bit / 32] |= 1u << bit % 32;
}

static int element_bits(int32_t storage) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return 32;
  case DFLASH_STORAGE_Q8_2F:
    return 8;
  case DFLASH_STORAGE_Q4TP:
    return 4;
  default:
    return 16;
  }
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* The value of finite f16 bits, by its definition. */
static double half_value(uint32_t bits) {
  const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  const double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

/* Small integers: -7 .. 8 as f16 bits. */
static uint32_t half_integer(int value) {
  uint32_t bits = value < 0 ? 0x8000 : 0;
  for (uint32_t m = 0; m < 0x7c00; m++)
    if (half_value(m) == abs(value)) return bits | m;
  return bits;
}

/* Bits of one element and its value. */
static uint32_t draw_element(const TestMatrix *m, uint32_t word, bool integers, double *value) {
  const int small = (int)(word % 16) - 7;
  switch (m->storage) {
  case DFLASH_STORAGE_F32: {
    const float f = integers ? (float)small : (float)((int32_t)word) * 0x1p-30f;
    *value = (double)f;
    return bits_of(f);
  }
  case DFLASH_STORAGE_F16: {
    static uint32_t cache[16];
    if (integers && !cache[word % 16]) cache[word % 16] = half_integer(small);
    const uint32_t bits = integers ? cache[word % 16] : word % 0x4400 | (word & 0x8000);
    *value = half_value(bits);
    return bits;
  }
  case DFLASH_STORAGE_BF16: {
    const uint32_t bits = bits_of(integers ? (float)small : (float)((int32_t)word) * 0x1p-30f) >> 16;
    float f;
    memcpy(&f, &(uint32_t){bits << 16}, sizeof f);
    *value = (double)f;
    return bits;
  }
  case DFLASH_STORAGE_Q8_2F:
    *value = integers ? small : (int8_t)(word & 255);
    return (uint32_t)(int)*value & 255;
  default:
    *value = (int)(word & 15) - 8;
    return word & 15;
  }
}

float test_rung(const TestMatrix *matrix, int64_t row, int64_t group) {
  uint32_t code = 0;
  for (int i = 0; i < GROUP_CODE_BITS; i++) {
    const int64_t bit = group * GROUP_CODE_BITS + i;
    code |= (matrix->codes[row * matrix->code_pitch + bit / 32] >> bit % 32 & 1) << i;
  }
  float rung = matrix->scales[2 * row];
  for (uint32_t c = 0; c < code; c++) rung *= matrix->scales[2 * row + 1];
  return rung;
}

int test_nibble(const TestMatrix *matrix, int64_t row, int64_t col) {
  const uint32_t word = matrix->weights[row * matrix->pitch * 4 + col / 8];
  return (int)(word >> col % 8 * 4 & 15) - 8;
}

static void draw_scales(TestMatrix *m, DflashRandom random, bool integers) {
  const int64_t groups = m->cols / TEST_GROUP;
  for (int64_t row = 0; row < m->rows && m->storage == DFLASH_STORAGE_Q8_2F; row++)
    m->scales[row] = integers ? 0.5f : 0x1p-8f * test_draw(random, (uint64_t)row);
  for (int64_t col = 0; col < m->cols && m->storage == DFLASH_STORAGE_Q8_2F; col++)
    m->columns[col] = integers ? 2.0f : 1 + 0.5f * test_draw(random, (uint64_t)(m->rows + col));
  for (int64_t row = 0; row < m->rows && m->storage == DFLASH_STORAGE_Q4TP; row++) {
    m->scales[2 * row] = integers ? 1.0f : 0.01f + 0.005f * test_draw(random, (uint64_t)row);
    m->scales[2 * row + 1] = integers ? 1.0f : 1.1f + 0.05f * test_draw(random, (uint64_t)(m->rows + row));
    for (int64_t g = 0; g < groups; g++)
      set_bits(m->codes + row * m->code_pitch, g * GROUP_CODE_BITS, GROUP_CODE_BITS,
               draw(random, (uint64_t)(2 * m->rows + row * groups + g)) % TEST_RUNGS);
  }
}

static void apply_scales(TestMatrix *m) {
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t col = 0; col < m->cols; col++) {
      double *value = &m->values[row * m->cols + col];
      if (m->storage == DFLASH_STORAGE_Q8_2F) *value *= (double)m->scales[row];
      if (m->storage == DFLASH_STORAGE_Q4TP) *value *= (double)test_rung(m, row, col / TEST_GROUP);
    }
}

TestMatrix test_matrix_draw(DflashRandom random, int32_t storage, int64_t rows, int64_t cols, bool integers) {
  const int bits = element_bits(storage);
  TestMatrix m = {.storage = storage, .rows = rows, .cols = cols};
  m.pitch = (uint32_t)((cols * bits + 127) / 128);
  m.code_pitch = (uint32_t)((cols / TEST_GROUP * GROUP_CODE_BITS + 31) / 32);
  m.weights = test_memory((size_t)(rows * m.pitch), 16);
  m.scales = test_memory((size_t)(2 * rows), sizeof *m.scales);
  m.codes = test_memory((size_t)(rows * m.code_pitch + 1), sizeof *m.codes);
  m.columns = test_memory((size_t)(cols), sizeof *m.columns);
  m.values = test_memory((size_t)(rows * cols), sizeof *m.values);
  for (int64_t i = 0; i < rows * cols; i++) {
    const uint32_t element = draw_element(&m, draw(random, (uint64_t)i), integers, &m.values[i]);
    set_bits(m.weights + i / cols * m.pitch * 4, i % cols * bits, bits, element);
  }
  draw_scales(&m, dflash_random_stream(random.seed, STREAM), integers);
  apply_scales(&m);
  return m;
}

void test_matrix_close(TestMatrix *matrix) {
  free(matrix->weights);
  free(matrix->scales);
  free(matrix->codes);
  free(matrix->columns);
  free(matrix->values);
}

static float draw_x(DflashRandom random, uint64_t index, uint32_t octaves) {
  const uint32_t word = draw(random, 2 * index + 1);
  if (octaves == 0) return (float)((int)(word % 31) - 15);
  return ldexpf(test_draw(random, 2 * index), -(int)(word % octaves));
}

TestProduct test_product_draw(DflashRandom random, const TestMatrix *matrix, int64_t rows, int64_t spare,
                              uint32_t octaves) {
  TestProduct p = {
      .matrix = matrix, .rows = rows, .x_stride = matrix->cols + spare, .y_stride = TEST_OUT_FIRST + matrix->rows + 2};
  const int64_t all = TEST_X_FIRST + rows + 1;
  p.x = test_memory((size_t)(all * p.x_stride), sizeof *p.x);
  p.y = test_memory((size_t)((TEST_Y_FIRST + rows + 1) * p.y_stride), sizeof *p.y);
  p.largest = test_memory((size_t)(rows), sizeof *p.largest);
  for (int64_t i = 0; i < all * p.x_stride; i++) p.x[i] = NAN;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t col = 0; col < matrix->cols; col++)
      test_product_x(&p, row)[col] = draw_x(random, (uint64_t)(row * matrix->cols + col), octaves);
  return p;
}

void test_product_close(TestProduct *product) {
  free(product->x);
  free(product->y);
  free(product->largest);
}

float *test_product_x(const TestProduct *product, int64_t row) {
  return product->x + (TEST_X_FIRST + row) * product->x_stride;
}

float test_product_y(const TestProduct *product, int64_t row, int64_t out) {
  return product->y[(TEST_Y_FIRST + row) * product->y_stride + TEST_OUT_FIRST + out];
}

/* Elements outside the product hold what they held. */
static void check_untouched(const TestProduct *p, int64_t rows) {
  for (int64_t i = 0; i < (TEST_Y_FIRST + p->rows + 1) * p->y_stride; i++) {
    const int64_t row = i / p->y_stride - TEST_Y_FIRST, out = i % p->y_stride - TEST_OUT_FIRST;
    if (row < 0 || row >= rows || out < 0 || out >= p->matrix->rows) assert_int_equal(bits_of(p->y[i]), 0x7fc12345);
  }
}

void test_product_run(TestKernels *kernels, TestProduct *p, int kernel, uint32_t tile_rows, uint32_t weight_rows,
                      int64_t rows) {
  const TestMatrix *m = p->matrix;
  const int64_t x_count = (TEST_X_FIRST + p->rows + 1) * p->x_stride,
                y_count = (TEST_Y_FIRST + p->rows + 1) * p->y_stride;
  const MatrixPush push = {.rows = (uint32_t)rows,
                           .cols = (uint32_t)m->cols,
                           .out_rows = (uint32_t)m->rows,
                           .out_first = TEST_OUT_FIRST,
                           .pitch = m->pitch,
                           .code_pitch = m->code_pitch,
                           .x_first = TEST_X_FIRST,
                           .x_stride = (uint32_t)p->x_stride,
                           .y_first = TEST_Y_FIRST,
                           .y_stride = (uint32_t)p->y_stride};
  const TestArray arrays[] = {{m->weights, (size_t)(m->rows * m->pitch) * 16},
                              {m->scales, (size_t)(m->storage == DFLASH_STORAGE_Q4TP ? 2 * m->rows : m->rows) * 4},
                              {m->codes, (size_t)(m->code_pitch ? m->rows * m->code_pitch : 1) * 4},
                              {m->columns, (size_t)m->cols * 4},
                              {p->x, (size_t)x_count * 4},
                              {p->y, (size_t)y_count * 4},
                              {p->largest, (size_t)p->rows * 4}};
  for (int64_t i = 0; i < y_count; i++) memcpy(&p->y[i], &(uint32_t){0x7fc12345}, sizeof *p->y);
  test_launch(kernels, &(TestLaunch){.kernel = kernel,
                                     .constants = (const uint32_t[]){tile_rows, weight_rows},
                                     .constant_count = 2,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {(uint32_t)((m->rows + TEAMS * weight_rows - 1) / (TEAMS * weight_rows)),
                                                (uint32_t)((rows + tile_rows - 1) / tile_rows), 1}});
  check_untouched(p, rows);
}
