#include "units_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "fixture.h"
#include "model/storage.h"
#include "units_product.h"

enum { GROUP = 32, PROFILES = 3 };

static const int32_t STORAGES[] = {DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_F16};
#define EACH_STORAGE(s) for (size_t s = 0; s < sizeof STORAGES / sizeof *STORAGES; s++)

static const int32_t ALL_PROFILES[PROFILES] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_F16, DFLASH_PROFILE_I8};

/* Other ways to cut than the chosen one: threads, tiles of x of many rows, tiles of w, how x comes, parts (by the
 * profile), pieces (q4tp: 2 at most; f16: 2), plain (one part of q4tp), rungs, shares (as many as divide the rounds).
 */
static const TestCut CUTS[] = {
    {{64, 1, 1, VULKAN_X_SHARED, 0, 1, 0, 1, 1}, 1}, {{32, 2, 2, VULKAN_X_CACHE, 0, 2, 1, 4, 1}, 3},
    {{96, 2, 1, VULKAN_X_AHEAD, 0, 1, 1, 2, 1}, 2},  {{64, 1, 4, VULKAN_X_SHARED, 0, 4, 0, 4, 1}, 2},
    {{64, 2, 2, VULKAN_X_AHEAD, 0, 2, 1, 2, 3}, 1},  {{32, 1, 1, VULKAN_X_CACHE, 0, 1, 0, 1, 5}, 1}};
enum { CUT_COUNT = sizeof CUTS / sizeof CUTS[0] };

static uint64_t emulated_bytes; /* of shared memory, a thread */

typedef struct Shape {
  int64_t rows, out_rows, cols;
} Shape;
static const Shape SHAPES[] = {{1, 16, 32},    {3, 65, 352}, {8, 33, 544}, {9, 70, 96},
                               {19, 33, 1056}, {5, 17, 1},   {2, 33, 257}, {8, 20, 1333}};
#define EACH_SHAPE(i, storage)                                \
  for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) \
    if ((storage) != DFLASH_STORAGE_Q4TP || SHAPES[i].cols % GROUP == 0)

/* The i-th cut of a product, NULL: as it is chosen. */
static const TestCut *cut_at(const TestUnits *units, size_t i, int64_t rows, TestCut *cut) {
  const VulkanUnitsTile chosen = vulkan_units_tile(units->model, &units->matrix, rows);
  if (i == CUT_COUNT) return NULL;
  *cut = CUTS[i];
  const bool q8 = units->matrix.storage == DFLASH_STORAGE_Q8_2F;
  cut->tile.parts = chosen.parts;
  if (rows <= 8) cut->tile.x_tiles = 1;
  if (units->matrix.storage == DFLASH_STORAGE_F16 || (!q8 && cut->tile.pieces > 2)) cut->tile.pieces = 2;
  if (!chosen.plain) cut->tile.plain = 0;
  const int64_t rounds = units->matrix.pieces / cut->tile.pieces / 2;
  while (rounds % cut->tile.shares != 0) cut->tile.shares--;
  cut->tile.threads *= cut->tile.shares;
  while ((rounds + cut->splits - 1) / cut->splits * (cut->splits - 1) >= rounds) cut->splits--; /* none is empty */
  const uint64_t shared = vulkan_units_shared(&cut->tile, units->matrix.storage) + emulated_bytes * cut->tile.threads;
  return shared <= units->model->device.traits.shared_bytes ? cut : NULL;
}

/* ---- activations ---- */

/* Small integers; the largest of each group is 127, so that the step of int8 is 1. */
static float *draw_integers(int64_t rows, int64_t cols) {
  const DflashRandom random = dflash_random_stream(3, "x");
  float *x = test_memory((size_t)(rows * cols), sizeof *x);
  for (int64_t i = 0; i < rows * cols; i++)
    x[i] = i % cols % GROUP == 0 ? 127 : (float)((int)(dflash_random_u32(random, (uint64_t)i) % 31) - 15);
  return x;
}

static float *draw_x(int64_t rows, int64_t cols, uint64_t seed) {
  const DflashRandom random = dflash_random_stream(seed, "x");
  float *x = test_memory((size_t)(rows * cols), sizeof *x);
  for (int64_t i = 0; i < rows * cols; i++)
    x[i] = ldexpf(test_draw(random, (uint64_t)(2 * i)), -(int)(dflash_random_u32(random, (uint64_t)(2 * i + 1)) % 6));
  return x;
}

/* ---- what a product must be ---- */

typedef struct Expected {
  double sum, off; /* by which it may be missed */
} Expected;

/* What a profile may take from x, in units of the largest of its group. */
static double moved(const TestUnits *units, double x, double largest) {
  if (vulkan_units_integers(units->model, units->matrix.storage)) return largest / 127 * 0.5001;
  if (units->model->profile == DFLASH_PROFILE_F16) return x * 0x1p-11 + largest * 0x1p-38;
  return 0;
}

static double largest_at(const TestUnits *units, const float *x, int64_t col) {
  const int64_t first = col / GROUP * GROUP, end = units->matrix.cols;
  double largest = 0;
  for (int64_t i = first; i < first + GROUP && i < end; i++)
    largest = fmax(largest, fabs((double)x[i] * (double)stored_column(&units->stored, i)));
  return largest;
}

/* No term meets more roundings than twice 64 in a unit, one a group and 32 splits, and some. */
static Expected expect(const TestUnits *units, const float *x, const double *w, bool exact) {
  const double roundings = (160 + (double)units->matrix.cols / GROUP) * 0x1p-24;
  Expected e = {0};
  for (int64_t col = 0; col < units->matrix.cols; col++) {
    const double term = (double)x[col] * w[col], column = (double)stored_column(&units->stored, col);
    e.sum += term;
    if (exact) continue;
    e.off += fabs(term) * roundings;
    e.off += fabs(w[col] / column) * moved(units, fabs((double)x[col] * column), largest_at(units, x, col));
  }
  return e;
}

static void check(const TestUnits *units, const float *x, int64_t rows, int64_t out_rows, const float *y, bool exact) {
  const int64_t cols = units->matrix.cols;
  double *w = test_memory((size_t)cols, sizeof *w);
  for (int64_t out = 0; out < out_rows; out++) {
    dflash_tensor_row(&units->stored.tensor, out, 0, cols, w);
    for (int64_t row = 0; row < rows; row++) {
      const Expected e = expect(units, x + row * cols, w, exact);
      const double got = (double)y[row * out_rows + out];
      if (!(fabs(got - e.sum) <= e.off))
        fail_msg("storage %d, profile %d, %lld x %lld, row %lld, out %lld: got %.9g, expected %.9g within %.3g",
                 units->matrix.storage, units->model->profile, (long long)out_rows, (long long)cols, (long long)row,
                 (long long)out, got, e.sum, e.off);
    }
  }
  free(w);
}

static void run_shape(DflashModel *model, int32_t storage, const Shape *shape, size_t which, bool integers) {
  TestUnits units;
  TestCut cut;
  const uint64_t seed = (uint64_t)shape->cols;
  test_matrix_on_units(&units, model,
                       stored_draw(dflash_random_stream(seed, "w"), storage, shape->out_rows, shape->cols, integers));
  float *x = integers ? draw_integers(shape->rows, shape->cols) : draw_x(shape->rows, shape->cols, seed);
  float *y =
      test_units_run(&units, x, shape->rows, shape->rows, shape->out_rows, cut_at(&units, which, shape->rows, &cut));
  check(&units, x, shape->rows, shape->out_rows, y, integers);
  free(x);
  free(y);
  test_matrix_close_units(&units);
}

/* Every cut meets some shapes here and the others below. */
static void test_random_products_are_within_their_roundings(void **state) {
  DflashModel *model = *state;
  for (int p = 0; p < PROFILES; p++) EACH_STORAGE(s) EACH_SHAPE(i, STORAGES[s]) {
      model->profile = ALL_PROFILES[p];
      if (p == 0 || (i + s) % 2 == 0) run_shape(model, STORAGES[s], &SHAPES[i], (i + s) % (CUT_COUNT + 1), false);
    }
}

static void test_integers_are_exact(void **state) {
  DflashModel *model = *state;
  for (int p = 0; p < PROFILES; p++) EACH_STORAGE(s) EACH_SHAPE(i, STORAGES[s]) {
      model->profile = ALL_PROFILES[p];
      if (p == 0 || (i + s) % 2 == 1) run_shape(model, STORAGES[s], &SHAPES[i], (i + s + 2) % (CUT_COUNT + 1), true);
    }
}

/* All 24 bits of activations that lie up to 2^25 apart in a group reach the output. All weights are 0 but one of 4 a
 * row, whose column walks over all of them. */
static void test_one_weight_a_row_shows_all_bits_of_x(void **state) {
  enum { ROWS = 8, OUT_ROWS = 160, COLS = 160 };
  DflashModel *model = *state;
  const DflashRandom random = dflash_random_stream(5, "bits");
  float *x = test_memory(ROWS * COLS, sizeof *x);
  for (int n = 0; n < ROWS * COLS; n++) {
    const uint32_t word = dflash_random_u32(random, (uint64_t)n);
    const float value = ldexpf((float)(0x800001 | word >> 9), (int)(word % 25) - 40);
    x[n] = word & 256 ? -value : value;
  }
  model->profile = DFLASH_PROFILE_EXACT;
  EACH_STORAGE(s) {
    TestUnits units;
    Stored stored = stored_draw(random, STORAGES[s], OUT_ROWS, COLS, true);
    for (int64_t i = 0; i < OUT_ROWS * COLS; i++)
      stored_set(&stored, i / COLS, i % COLS, i % COLS == i / COLS * 37 % COLS ? 4 : 0);
    test_matrix_on_units(&units, model, stored);
    float *y = test_units_run(&units, x, ROWS, ROWS, OUT_ROWS, NULL);
    for (int64_t n = 0; n < ROWS * OUT_ROWS; n++)
      assert_float_equal(y[n], 4 * x[n / OUT_ROWS * COLS + n % OUT_ROWS * 37 % COLS], 0);
    free(y);
    test_matrix_close_units(&units);
  }
  free(x);
}

/* One-hot activations show (nibble - 8) * rung for every rung. */
static void test_the_ladder_is_equal_to_the_bit(void **state) {
  enum { ROWS = 16, OUT_ROWS = 70, COLS = 67 * GROUP };
  DflashModel *model = *state;
  TestUnits units;
  test_matrix_on_units(&units, model,
                       stored_draw(dflash_random_stream(11, "ladder"), DFLASH_STORAGE_Q4TP, OUT_ROWS, COLS, false));
  float *x = test_memory(ROWS * COLS, sizeof *x);
  for (int row = 0; row < ROWS; row++) x[row * COLS + row * 139 % COLS] = 1;
  model->profile = DFLASH_PROFILE_EXACT;
  for (size_t i = 0; i <= CUT_COUNT; i++) {
    TestCut cut;
    float *y = test_units_run(&units, x, ROWS, ROWS, OUT_ROWS, cut_at(&units, i, ROWS, &cut));
    for (int64_t n = 0; n < ROWS * OUT_ROWS; n++) {
      const int64_t out = n % OUT_ROWS, col = n / OUT_ROWS * 139 % COLS;
      assert_float_equal(y[n], (float)stored_nibble(&units.stored, out, col) * stored_rung(&units.stored, out, col), 0);
    }
    free(y);
  }
  free(x);
  test_matrix_close_units(&units);
}

/* A block cut to its first rows, and the matrix to its first ones, give the same bits. */
static void test_bits_do_not_depend_on_the_rows(void **state) {
  enum { ROWS = 19, OUT_ROWS = 70, CUT_ROWS = 41, COLS = 2240 };
  DflashModel *model = *state;
  float *x = draw_x(ROWS, COLS, 7);
  for (int p = 0; p < PROFILES; p++) EACH_STORAGE(s) {
      TestUnits units;
      model->profile = ALL_PROFILES[p];
      test_matrix_on_units(&units, model,
                           stored_draw(dflash_random_stream(7, "w"), STORAGES[s], OUT_ROWS, COLS, false));
      const uint32_t shares = vulkan_units_tile(model, &units.matrix, ROWS).shares;
      assert_true(shares > 1 || vulkan_units_splits(model, &units.matrix, ROWS) > 1);
      float *all = test_units_run(&units, x, ROWS, ROWS, OUT_ROWS, NULL);
      for (int64_t rows = 3; rows < ROWS; rows += 8) {
        float *y = test_units_run(&units, x, rows, ROWS, CUT_ROWS, NULL);
        for (int64_t n = 0; n < rows * CUT_ROWS; n++)
          assert_float_equal(y[n], all[n / CUT_ROWS * OUT_ROWS + n % CUT_ROWS], 0);
        free(y);
      }
      free(all);
      test_matrix_close_units(&units);
    }
  free(x);
}

static void test_nan_reaches_its_row_and_no_other(void **state) {
  enum { ROWS = 10, OUT_ROWS = 20, COLS = 608 };
  DflashModel *model = *state;
  float *x = draw_x(ROWS, COLS, 13);
  x[4 * COLS - 1] = NAN;
  x[9 * COLS] = INFINITY;
  for (int p = 0; p < PROFILES; p++) EACH_STORAGE(s) {
      TestUnits units;
      model->profile = ALL_PROFILES[p];
      test_matrix_on_units(&units, model,
                           stored_draw(dflash_random_stream(13, "w"), STORAGES[s], OUT_ROWS, COLS, false));
      float *y = test_units_run(&units, x, ROWS, ROWS, OUT_ROWS, NULL);
      for (int n = 0; n < ROWS * OUT_ROWS; n++) {
        const int row = n / OUT_ROWS;
        assert_true(row == 3 ? isnan(y[n]) : row == 9 ? !isfinite(y[n]) : isfinite(y[n]));
      }
      free(y);
      test_matrix_close_units(&units);
    }
  free(x);
}

/* Of the published geometry: splits are as many as there is work for, and do not depend on what is bound. */
static void test_splits_share_the_columns(void **state) {
  static const int64_t SIZES[][2] = {{1024, 5120}, {5120, 17408}, {17408, 5120}, {248320, 5120}, {1, 32}};
  DflashModel *model = *state;
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) EACH_STORAGE(s) {
      VulkanMatrix m = {.storage = STORAGES[s], .rows = SIZES[i][0], .cols = SIZES[i][1], .part_count = 1};
      m.pieces = vulkan_units_pieces(m.storage, m.cols);
      const VulkanUnitsTile tile = vulkan_units_tile(model, &m, 8);
      const uint32_t splits = vulkan_units_splits(model, &m, 8), many = vulkan_units_splits(model, &m, 256);
      const int64_t steps = m.pieces / tile.pieces;
      assert_true(splits >= 1 && splits <= 32 && many >= 1 && many <= splits);
      assert_true(splits == 1 || 4 * splits <= steps);
      assert_true(splits == 1 || (m.rows > 1 && m.rows < 200000));
      assert_true(splits > 1 || tile.shares > 1 || m.rows > 10000 || m.rows == 1);
      assert_true(splits == 1 || tile.shares == 1);
      const VulkanUnitsBytes bytes = vulkan_units_product_bytes(model, &m, 8);
      assert_true((bytes.found > 0) == (splits > 1) && (bytes.arrivals > 0) == (splits > 1));
      const uint64_t binding = model->device.traits.max_binding;
      model->device.traits.max_binding = 1 << 19;
      assert_true(vulkan_units_product_bytes(model, &m, 8).found <= 1 << 19);
      model->device.traits.max_binding = binding;
    }
}

int test_units_cases(DflashModel *model, uint64_t emulated, const char *name) {
  emulated_bytes = emulated;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_splits_share_the_columns, model),
      cmocka_unit_test_prestate(test_integers_are_exact, model),
      cmocka_unit_test_prestate(test_random_products_are_within_their_roundings, model),
      cmocka_unit_test_prestate(test_one_weight_a_row_shows_all_bits_of_x, model),
      cmocka_unit_test_prestate(test_the_ladder_is_equal_to_the_bit, model),
      cmocka_unit_test_prestate(test_bits_do_not_depend_on_the_rows, model),
      cmocka_unit_test_prestate(test_nan_reaches_its_row_and_no_other, model),
  };
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
