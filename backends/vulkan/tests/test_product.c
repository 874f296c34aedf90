/* Products as a block asks for them: which kernels run, in which profile, on which parts of a matrix. */
#include "product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "drawn_model.h"
#include "fixture.h"
#include "model/storage.h"
#include "pack.h"
#include "units.h"

enum { X_FIRST = 2, X_SPARE = 5, Y_FIRST = 3, PART_ROWS = 32, TWICE = 2 };

/* A matrix in parts of PART_ROWS rows, its activations, and two products of them: the second finds them prepared. */
typedef struct Case {
  DflashModel *model;
  DflashTensor tensor;
  VulkanMatrix matrix;
  int64_t rows, out_rows;
  VulkanBuffer x, y, scratch;
  VulkanSteps steps;
} Case;

static DrawnModel drawn; /* owns the stored matrices */

static int64_t x_stride(const Case *c) { return c->matrix.cols + X_SPARE; }
static int64_t y_stride(const Case *c) { return c->out_rows + 1; }
static const float *x_row(const Case *c, int64_t row) {
  return (const float *)c->x.mapped + (X_FIRST + row) * x_stride(c);
}
static float y_at(const Case *c, int64_t product, int64_t row, int64_t out) {
  return ((const float *)c->y.mapped)[(Y_FIRST + product * c->rows + row) * y_stride(c) + out];
}

static void open_matrix(Case *c) {
  DflashError error = {0};
  VulkanUpload upload = {0};
  VulkanDevice *device = &c->model->device;
  const uint64_t binding = device->traits.max_binding;
  device->traits.max_binding = (PART_ROWS + 1) * vulkan_form(c->tensor.storage, c->tensor.shape[1]).weight_bytes;
  test_ok(vulkan_upload_begin(device, &upload, &error), &error);
  test_ok(vulkan_matrix_open(c->model, &upload, &c->tensor, "a matrix", &c->matrix, &error), &error);
  test_ok(vulkan_upload_end(device, &upload, &error), &error);
  vulkan_upload_close(device, &upload);
  device->traits.max_binding = binding;
  assert_true(c->matrix.part_count > 1);
}

static void open_values(Case *c) {
  DflashError error = {0};
  VulkanDevice *device = &c->model->device;
  const int64_t x_count = (X_FIRST + c->rows) * x_stride(c), y_count = (Y_FIRST + TWICE * c->rows) * y_stride(c);
  test_ok(vulkan_buffer_open(device, VULKAN_UPLOAD, (uint64_t)x_count * 4, "x", &c->x, &error), &error);
  test_ok(vulkan_buffer_open(device, VULKAN_READBACK, (uint64_t)y_count * 4, "y", &c->y, &error), &error);
  test_ok(vulkan_buffer_open(device, VULKAN_ON_DEVICE, (uint64_t)(c->rows * c->matrix.cols) * 4 + 4096, "scratch",
                             &c->scratch, &error),
          &error);
  for (int64_t i = 0; i < x_count; i++)
    ((float *)c->x.mapped)[i] = test_draw(dflash_random_stream(3, "x"), (uint64_t)i);
  for (int64_t i = 0; i < y_count; i++) ((float *)c->y.mapped)[i] = NAN;
  test_ok(vulkan_buffer_flush(device, &c->x, &error), &error);
  test_ok(vulkan_buffer_flush(device, &c->y, &error), &error);
}

static void add_product(Case *c, int64_t number) {
  DflashError error = {0};
  const uint64_t words = (uint64_t)(c->rows * c->matrix.cols), scales = words / 8 + 4;
  const uint64_t at = (words + 1023) / 1024 * 1024, end = at + (scales + 1023) / 1024 * 1024;
  const VulkanProduct product = {.matrix = &c->matrix,
                                 .x = vulkan_buffer_range(&c->x, 0, c->x.bytes),
                                 .y = vulkan_buffer_range(&c->y, 0, c->y.bytes),
                                 .rows = c->rows,
                                 .x_first = X_FIRST,
                                 .x_stride = x_stride(c),
                                 .out_rows = c->out_rows,
                                 .y_first = Y_FIRST + number * c->rows,
                                 .y_stride = y_stride(c),
                                 .words = vulkan_buffer_range(&c->scratch, 0, words),
                                 .scales = vulkan_buffer_range(&c->scratch, at, scales),
                                 .largest = vulkan_buffer_range(&c->scratch, end, (uint64_t)c->rows * 4),
                                 .prepared = number > 0};
  test_ok(vulkan_steps_product(c->model, &c->steps, &product, &error), &error);
}

static Case case_run(DflashModel *model, int32_t profile, int32_t storage, int64_t rows, int64_t out_rows) {
  DflashError error = {0};
  VulkanPlan plan;
  Case c = {.model = model, .rows = rows, .out_rows = out_rows};
  model->profile = profile;
  c.tensor = drawn_tensor(&drawn, storage, 100, 224, 5);
  open_matrix(&c);
  open_values(&c);
  for (int64_t number = 0; number < TWICE; number++) add_product(&c, number);
  test_ok(vulkan_plan_open(&model->device, &c.steps, false, 0, &plan, &error), &error);
  test_ok(vulkan_plan_run(&model->device, &plan, &error), &error);
  vulkan_plan_close(&model->device, &plan);
  test_ok(vulkan_buffer_invalidate(&model->device, &c.y, &error), &error);
  return c;
}

static void case_close(Case *c) {
  vulkan_buffer_close(&c->model->device, &c->x);
  vulkan_buffer_close(&c->model->device, &c->y);
  vulkan_buffer_close(&c->model->device, &c->scratch);
  vulkan_matrix_close(&c->matrix);
  vulkan_steps_close(&c->steps);
}

/* `first` once where it is a kernel, then `kernel` for each part that out_rows reaches; the second product leaves
 * `first` out. */
static void check_kernels(const Case *c, int first, int kernel) {
  const uint32_t parts = (uint32_t)((c->out_rows + PART_ROWS - 1) / PART_ROWS), before = first >= 0;
  assert_int_equal(c->steps.count, before + TWICE * parts);
  if (before) assert_int_equal(c->steps.at[0].pipeline->kernel, first);
  for (uint32_t i = before; i < c->steps.count; i++) assert_int_equal(c->steps.at[i].pipeline->kernel, kernel);
}

static float group_largest(const float *x) {
  float largest = 0;
  for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(x[i]));
  return largest;
}

/* The sum in f64; *off: by how much a profile may miss it. Activations are off by half a step of int8, or of f16 (11
 * bits; those below 2^-14 of the largest have steps of 2^-39 of it). */
static double expected_y(const Case *c, int64_t row, const double *w, int32_t profile, double *off) {
  const float *x = x_row(c, row);
  double sum = 0;
  *off = 0;
  for (int64_t col = 0; col < c->matrix.cols; col++) {
    const double term = w[col] * (double)x[col];
    double moved = 0;
    if (profile == DFLASH_PROFILE_I8) moved = (double)group_largest(x + col / 32 * 32) / 127 * 0.5001;
    if (profile == DFLASH_PROFILE_F16) moved = fabs((double)x[col]) * 0x1p-11 + 0x1p-38;
    sum += term;
    *off += fabs(term) * 0x1p-24 * (double)c->matrix.cols + fabs(w[col]) * moved;
  }
  return sum;
}

static void check_values(const Case *c, int32_t profile) {
  double *w = test_memory((size_t)c->matrix.cols, sizeof *w), off;
  for (int64_t out = 0; out < c->out_rows; out++) {
    dflash_tensor_row(&c->tensor, out, 0, c->matrix.cols, w);
    for (int64_t row = 0; row < c->rows; row++) {
      const double sum = expected_y(c, row, w, profile, &off);
      assert_true(fabs((double)y_at(c, 0, row, out) - sum) <= off);
      assert_float_equal(y_at(c, 1, row, out), y_at(c, 0, row, out), 0);
    }
  }
  for (int64_t row = 0; row < c->rows; row++) assert_true(isnan(y_at(c, 0, row, c->out_rows)));
  free(w);
}

static void check(DflashModel *model, int32_t profile, int32_t storage, int first, int kernel, int64_t rows) {
  Case whole = case_run(model, profile, storage, rows, 100);
  check_kernels(&whole, first, kernel);
  check_values(&whole, profile);
  case_close(&whole);
  Case cut = case_run(model, profile, storage, rows, 33); /* into the second part */
  check_kernels(&cut, first, kernel);
  check_values(&cut, profile);
  case_close(&cut);
}

static void test_exact_products(void **state) {
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_F32, -1, VULKAN_KERNEL_MATRIX_F32, 8);
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_F16, -1, VULKAN_KERNEL_MATRIX_F16, 8);
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_BF16, -1, VULKAN_KERNEL_MATRIX_BF16, 8);
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q8_2F, -1, VULKAN_KERNEL_MATRIX_Q8, 8);
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q4TP, -1, VULKAN_KERNEL_MATRIX_Q4, 8);
}

/* int8 is for q4tp alone. */
static void test_int8_products(void **state) {
  DflashModel *model = *state;
  model->options.dot = false;
  check(model, DFLASH_PROFILE_I8, DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_QUANTISE, VULKAN_KERNEL_MATRIX_I8, 8);
  check(model, DFLASH_PROFILE_I8, DFLASH_STORAGE_Q8_2F, -1, VULKAN_KERNEL_MATRIX_Q8, 8);
  model->options.dot = true;
  const int dot = model->device.traits.integer_dot ? VULKAN_KERNEL_MATRIX_I8_DOT : VULKAN_KERNEL_MATRIX_I8;
  check(model, DFLASH_PROFILE_I8, DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_QUANTISE, dot, 8);
}

static void test_half_products(void **state) {
  check(*state, DFLASH_PROFILE_F16, DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_LARGEST, VULKAN_KERNEL_HALF_Q4, 8);
  check(*state, DFLASH_PROFILE_F16, DFLASH_STORAGE_Q8_2F, VULKAN_KERNEL_LARGEST, VULKAN_KERNEL_HALF_Q8, 8);
}

static void test_many_rows(void **state) {
  check(*state, DFLASH_PROFILE_EXACT, DFLASH_STORAGE_Q8_2F, -1, VULKAN_KERNEL_MATRIX_Q8, 41);
}

/* As vulkan_matrix_open describes it. */
static VulkanMatrix described(const DflashModel *model, int32_t storage, int64_t rows) {
  VulkanMatrix matrix = {.storage = storage, .rows = rows, .cols = 32};
  if (vulkan_units_take(model, storage)) matrix.pieces = vulkan_units_pieces(storage, matrix.cols);
  return matrix;
}

static void check_path(const DflashModel *model, int32_t storage, int64_t out_rows, int64_t rows,
                       const char *expected) {
  const VulkanMatrix matrix = described(model, storage, out_rows);
  char path[96];
  vulkan_product_path(model, &matrix, rows, path, sizeof path);
  assert_string_equal(path, expected);
}

static void test_paths(void **state) {
  DflashModel *model = *state;
  model->profile = DFLASH_PROFILE_EXACT;
  check_path(model, DFLASH_STORAGE_Q4TP, 17408, 8, "tile 8x32 q4tp, f32");
  check_path(model, DFLASH_STORAGE_Q8_2F, 5120, 9, "tile 16x16 q8_2f, f32");
  check_path(model, DFLASH_STORAGE_BF16, 1024, 2, "tile 8x8 bf16, f32");
  model->profile = DFLASH_PROFILE_F16;
  check_path(model, DFLASH_STORAGE_F32, 1, 1, "tile 8x8 f32, x in f16, f32");
  model->profile = DFLASH_PROFILE_I8;
  model->options.dot = false;
  check_path(model, DFLASH_STORAGE_Q4TP, 1, 1, "tile 8x8 q4tp, int8");
  check_path(model, DFLASH_STORAGE_F16, 1, 1, "tile 8x8 f16, f32");
}

/* What one product makes of x serves the next that needs the same, and no other. */
static void check_follows(const DflashModel *model, const int32_t *storages, const char *prepared) {
  VulkanMade made = {0};
  VulkanMatrix matrices[16];
  for (int i = 0; prepared[i]; i++) {
    matrices[i] = described(model, storages[i], 32);
    VulkanProduct p = {.matrix = &matrices[i]};
    vulkan_product_follow(model, &p, &made);
    assert_int_equal(p.prepared, prepared[i] == '+');
  }
}

static const int32_t in_turn[] = {DFLASH_STORAGE_Q4TP,  DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_F16, DFLASH_STORAGE_F16,
                                  DFLASH_STORAGE_BF16,  DFLASH_STORAGE_BF16, DFLASH_STORAGE_F16, DFLASH_STORAGE_Q8_2F,
                                  DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_F32, DFLASH_STORAGE_Q4TP};

static void test_prepared_on_tiles(void **state) {
  DflashModel *model = *state;
  model->profile = DFLASH_PROFILE_EXACT;
  check_follows(model, in_turn, "------------");
  model->profile = DFLASH_PROFILE_F16;
  check_follows(model, in_turn, "-++++++---++");
  model->profile = DFLASH_PROFILE_I8;
  check_follows(model, in_turn, "-+-------+-+");
}

/* A device with matrix units, and shared memory to spare. */
static DflashModel with_units(const DflashModel *like) {
  DflashModel model = *like;
  model.options.units = model.units_fit = true;
  model.device.traits.shared_bytes = 65536;
  model.device.traits.coop_f16 = 8;
  model.device.traits.addresses = false;
  return model;
}

/* f32 and bf16 stay with the tiles. Parts outlive a product that makes nothing, and serve q4tp and f16 alike. */
static void test_prepared_on_units(void **state) {
  static DflashModel model;
  model = with_units(*state);
  model.profile = DFLASH_PROFILE_EXACT;
  check_follows(&model, in_turn, "-+++--+----+");
  model.profile = DFLASH_PROFILE_F16;
  check_follows(&model, in_turn, "-+++-+------");
  model.profile = DFLASH_PROFILE_I8;
  check_follows(&model, in_turn, "-+-+--+----+");
}

static void test_paths_on_units(void **state) {
  static DflashModel model;
  uint32_t constants[VULKAN_MAX_CONSTANTS], count;
  model = with_units(*state);
  model.profile = DFLASH_PROFILE_EXACT;
  const VulkanMatrix matrix = described(&model, DFLASH_STORAGE_Q4TP, 1024);
  check_path(&model, DFLASH_STORAGE_Q4TP, 1024, 3, "matrix units, 16 rows, 3 parts of f16, q4tp");
  check_path(&model, DFLASH_STORAGE_Q8_2F, 1024, 8, "matrix units, 64 rows, 3 parts of f16, q8_2f");
  check_path(&model, DFLASH_STORAGE_F32, 1024, 8, "tile 8x8 f32, f32");
  assert_int_equal(vulkan_product_kernel(&model, &matrix, 8, constants, &count), VULKAN_KERNEL_UNITS_Q4);
  assert_true(count == VULKAN_UNITS_CONSTANTS && constants[0] == 32 && constants[1] == 1 && constants[4] == 3);
  assert_int_equal(vulkan_product_kernel(&model, &matrix, 9, constants, &count), VULKAN_KERNEL_UNITS_Q4);
  assert_int_equal(constants[1], 2);
  model.device.traits.addresses = true;
  assert_int_equal(vulkan_product_kernel(&model, &matrix, 8, constants, &count), VULKAN_KERNEL_UNITS_Q4_AT);
  model.profile = DFLASH_PROFILE_F16;
  check_path(&model, DFLASH_STORAGE_F16, 1024, 8, "matrix units, 64 rows, 1 part of f16, f16");
  model.profile = DFLASH_PROFILE_I8;
  check_path(&model, DFLASH_STORAGE_Q4TP, 1024, 8, "matrix units, 16 rows, int8 in f16, q4tp");
  check_path(&model, DFLASH_STORAGE_F16, 1024, 8, "matrix units, 64 rows, 3 parts of f16, f16");
}

/* What a model must have for its products to be on matrix units. */
static void test_who_has_units(void **state) {
  static DflashModel model;
  model = with_units(*state);
  assert_true(vulkan_units_take(&model, DFLASH_STORAGE_Q4TP) && vulkan_units_take(&model, DFLASH_STORAGE_F16));
  assert_false(vulkan_units_take(&model, DFLASH_STORAGE_F32) || vulkan_units_take(&model, DFLASH_STORAGE_BF16));
  model.options.units = false;
  assert_false(vulkan_units_take(&model, DFLASH_STORAGE_Q4TP));
  model = with_units(*state);
  model.units_fit = false;
  assert_false(vulkan_units_take(&model, DFLASH_STORAGE_Q4TP));
  model = with_units(*state);
  model.device.traits.coop_f16 = 16;
  assert_false(vulkan_units_take(&model, DFLASH_STORAGE_Q4TP));
  model = with_units(*state);
  model.device.traits.shared_bytes = 1024;
  assert_false(vulkan_units_take(&model, DFLASH_STORAGE_Q4TP));
}

int main(void) {
  static DflashModel model;
  test_device_open(&model.device);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_exact_products, &model),
      cmocka_unit_test_prestate(test_int8_products, &model),
      cmocka_unit_test_prestate(test_half_products, &model),
      cmocka_unit_test_prestate(test_many_rows, &model),
      cmocka_unit_test_prestate(test_paths, &model),
      cmocka_unit_test_prestate(test_prepared_on_tiles, &model),
      cmocka_unit_test_prestate(test_prepared_on_units, &model),
      cmocka_unit_test_prestate(test_paths_on_units, &model),
      cmocka_unit_test_prestate(test_who_has_units, &model),
  };
  const int failed = cmocka_run_group_tests_name("product", tests, NULL, NULL);
  drawn_model_close(&drawn);
  vulkan_arena_close(&model.device, &model.arena);
  vulkan_pipelines_close(&model.device, &model.pipelines);
  return test_device_close(&model.device) ? failed : 1;
}
