#include "coop_steps.h"

#include <stdlib.h>
#include <string.h>

#include "coop.h"
#include "draw.h"

enum { ALIGN = 256, CHECKED = 4 };

/* A product of a model that has nothing else, on buffers of its own. */
typedef struct Bench {
  TestCoop *coop;
  DflashModel model;
  VulkanBuffer buffer; /* read by the host: holds all arrays */
  uint64_t used;
  TestMatrix drawn;
  VulkanMatrix matrix;
  VulkanPart parts[2];
  VulkanProduct product;
} Bench;

static VulkanRange place(Bench *b, const void *data, uint64_t bytes) {
  const VulkanRange range = vulkan_buffer_range(&b->buffer, b->used, bytes);
  assert_true(b->used + bytes <= b->buffer.bytes);
  unsigned char *at = (unsigned char *)b->buffer.mapped + b->used;
  if (data)
    memcpy(at, data, bytes);
  else
    memset(at, 0xff, bytes); /* NaN */
  b->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return range;
}

/* Two parts: 48 rows, and those that are left. */
static void place_matrix(Bench *b) {
  const TestMatrix *m = &b->drawn;
  const bool ladder = m->storage == DFLASH_STORAGE_Q4TP;
  int64_t first = 0;
  for (int i = 0; i < 2; i++) {
    const int64_t rows = i == 0 ? 48 : m->rows - 48;
    const uint64_t count = (uint64_t)rows;
    VulkanPart *part = &b->parts[i];
    *part = (VulkanPart){.first = first, .rows = rows};
    part->weights = place(b, m->weights + first * m->pitch * 4, count * m->pitch * 16);
    part->scales = place(b, m->scales + (ladder ? 2 : 1) * first, count * (ladder ? 8 : 4));
    part->codes = ladder ? place(b, m->codes + first * m->code_pitch, count * m->code_pitch * 4) : part->weights;
    first += rows;
  }
  b->matrix = (VulkanMatrix){.storage = m->storage,
                             .rows = m->rows,
                             .cols = m->cols,
                             .pitch = m->pitch,
                             .code_pitch = m->code_pitch,
                             .columns = place(b, m->columns, (uint64_t)m->cols * 4),
                             .parts = b->parts,
                             .part_count = 2};
}

/* A call of `rows` rows of x from its second on, to y's third and on, and the first out_rows rows of the matrix. */
static void place_product(Bench *b, const float *x, int64_t rows, int64_t out_rows, uint32_t most_splits) {
  const uint64_t cols = (uint64_t)b->matrix.cols, n = (uint64_t)rows;
  b->product = (VulkanProduct){.matrix = &b->matrix,
                               .x = place(b, x, (n + 1) * cols * 4),
                               .y = place(b, NULL, (n + 2) * (uint64_t)out_rows * 4),
                               .rows = rows,
                               .x_first = 1,
                               .x_stride = b->matrix.cols,
                               .out_rows = out_rows,
                               .y_first = 2,
                               .y_stride = out_rows,
                               .words = place(b, NULL, n * cols + 32),
                               .scales = place(b, NULL, n * cols / 8 + 4),
                               .largest = place(b, NULL, n * 4),
                               .parts = place(b, NULL, vulkan_coop_parts_bytes(&b->matrix, rows)),
                               .factors = place(b, NULL, n * 8),
                               .most_splits = most_splits};
  const uint64_t found = vulkan_coop_found_bytes(&b->model, &b->matrix, rows, most_splits);
  b->product.found = place(b, NULL, found ? found : 4);
}

static void run_steps(Bench *b, VulkanSteps *steps) {
  DflashError error = {0};
  VulkanPlan plan = {0};
  VulkanDevice *device = &b->coop->kernels.device;
  test_ok(vulkan_buffer_flush(device, &b->buffer, &error), &error);
  test_ok(vulkan_plan_open(device, steps, false, 0, &plan, &error), &error);
  test_ok(vulkan_plan_run(device, &plan, &error), &error);
  vulkan_plan_close(device, &plan);
  test_ok(vulkan_buffer_invalidate(device, &b->buffer, &error), &error);
}

/* The model borrows the device and its pipelines. */
static void run_product(Bench *b) {
  DflashError error = {0};
  VulkanSteps steps = {0};
  const VulkanCoopTile tile = vulkan_coop_tile(&b->model, &b->matrix);
  assert_true(vulkan_coop_takes(&b->model, &b->matrix));
  test_coop_pipeline(b->coop, vulkan_coop_kernel(&b->model, &b->matrix), &tile.threads, 7);
  b->model.pipelines = b->coop->kernels.pipelines;
  test_ok(vulkan_steps_coop_product(&b->model, &steps, &b->product, &error), &error);
  b->coop->kernels.pipelines = b->model.pipelines;
  run_steps(b, &steps);
  vulkan_steps_close(&steps);
}

/* Small integers; in int8 each group's largest is 127, so its step is 1. */
static float *draw_x(int64_t rows, int64_t cols) {
  const DflashRandom random = dflash_random_stream(3, "x");
  float *x = test_memory((size_t)((rows + 1) * cols), sizeof *x);
  for (int64_t i = 0; i < (rows + 1) * cols; i++)
    x[i] = i % cols % TEST_GROUP == 0 ? 127 : (float)((int)(dflash_random_u32(random, (uint64_t)i) % 31) - 15);
  return x;
}

static void check_y(const Bench *b, const float *x) {
  const VulkanProduct *p = &b->product;
  const float *y = (const float *)((const unsigned char *)b->buffer.mapped + p->y.offset);
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t out = 0; out < p->out_rows; out++) {
      double sum = 0;
      for (int64_t col = 0; col < p->x_stride; col++) {
        double term = (double)x[(row + 1) * p->x_stride + col] * b->drawn.values[out * p->x_stride + col];
        if (b->drawn.storage == DFLASH_STORAGE_Q8_2F) term *= (double)b->drawn.columns[col];
        sum += term;
      }
      assert_float_equal(y[(2 + row) * p->y_stride + out], sum, 0);
    }
}

static void check(TestCoop *coop, bool direct, int32_t profile, int32_t storage, int64_t rows, int64_t out_rows,
                  uint32_t splits) {
  enum { ROWS = 150, COLS = 1088 };
  DflashError error = {0};
  static Bench b;
  b = (Bench){.coop = coop, .drawn = test_matrix_draw(dflash_random_stream(9, "w"), storage, ROWS, COLS, true)};
  b.model.device = coop->kernels.device;
  b.model.device.traits.coop_f16 = coop->widths_f16;
  b.model.device.traits.coop_i8 = coop->widths_i8;
  b.model.geometry.block = 8;
  b.model.profile = profile;
  b.model.coop_direct = direct;
  test_ok(vulkan_buffer_open(&coop->kernels.device, VULKAN_READBACK, 4 << 20, "arrays", &b.buffer, &error), &error);
  float *x = draw_x(rows, COLS);
  place_matrix(&b);
  place_product(&b, x, rows, out_rows, splits);
  run_product(&b);
  check_y(&b, x);
  free(x);
  vulkan_buffer_close(&coop->kernels.device, &b.buffer);
  test_matrix_close(&b.drawn);
}

static void check_all(TestCoop *coop, bool direct) {
  check(coop, direct, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q4TP, 8, 150, 1);
  check(coop, direct, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q4TP, 11, 101, 4);
  check(coop, direct, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q8_2F, 3, 48, 64);
  check(coop, direct, DFLASH_PROFILE_F16, DFLASH_STORAGE_Q8_2F, 8, 149, 2);
}

static void test_products_are_exact(void **state) {
  const TestCoop *coop = *state;
  check_all(*state, false);
  if (coop->direct) check_all(*state, true);
  check(*state, false, DFLASH_PROFILE_I8, DFLASH_STORAGE_Q4TP, 9, 150, 3);
}

/* Splits of the published geometry's products: none where there are rows enough, and rounds for each. */
static void test_tiles_fit_and_splits_share_the_columns(void **state) {
  static const int64_t SIZES[][2] = {{1024, 5120}, {5120, 17408}, {17408, 5120}, {248320, 5120}, {1, 32}};
  TestCoop *coop = *state;
  static DflashModel model;
  model.device.traits = coop->kernels.device.traits;
  model.geometry.block = 16;
  for (int32_t profile = 0; profile < CHECKED; profile++)
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
      model.profile = profile;
      model.coop_direct = i % 2;
      const VulkanMatrix matrix = {.storage = DFLASH_STORAGE_Q4TP, .rows = SIZES[i][0], .cols = SIZES[i][1]};
      const VulkanCoopTile tile = vulkan_coop_tile(&model, &matrix);
      assert_true(vulkan_coop_shared(&tile, vulkan_coop_kernel(&model, &matrix)) <= model.device.traits.shared_bytes);
      assert_int_equal(vulkan_coop_splits(&tile, &matrix, 1), 1);
      const uint32_t splits = vulkan_coop_splits(&tile, &matrix, 64);
      assert_true(splits >= 1 && splits <= 64);
      assert_true(splits == 1 || splits * 4 * tile.step <= (uint64_t)matrix.cols + 4 * tile.step);
      assert_true((splits == 1) == (matrix.rows > 200000 || matrix.rows == 1));
    }
}

int test_coop_steps_run(TestCoop *coop, const char *name) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_products_are_exact, coop),
      cmocka_unit_test_prestate(test_tiles_fit_and_splits_share_the_columns, coop),
  };
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
