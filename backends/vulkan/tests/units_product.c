#include "units_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "fixture.h"
#include "pack.h"

enum {
  ALIGN = 256,
  PART_ROWS = 32,
  X_FIRST = 2,
  X_SPARE = 5,
  Y_FIRST = 3,
  Y_SPARE = 2,
  TWICE = 2,
  NAN_BYTE = 0xff,
  EMULATED_THREADS = 256
};

static VulkanBuffer tables; /* of the model that is open */

static void open_tables(DflashModel *model) {
  DflashError error = {0};
  test_ok(vulkan_buffer_open(&model->device, VULKAN_UPLOAD, 2 * ALIGN, "tables", &tables, &error), &error);
  model->masks = vulkan_buffer_range(&tables, 0, VULKAN_UNITS_MASKS * sizeof(uint32_t));
  model->pairs = vulkan_buffer_range(&tables, ALIGN, VULKAN_UNITS_PAIRS * sizeof(uint32_t));
  vulkan_units_masks(tables.mapped);
  vulkan_units_pairs((uint32_t *)((char *)tables.mapped + ALIGN));
  test_ok(vulkan_buffer_flush(&model->device, &tables, &error), &error);
}

bool test_units_open(DflashModel *model, uint64_t emulated) {
  DflashError error = {0};
  *model = (DflashModel){.options = {.units = true}};
  test_device_open(&model->device);
  if (emulated) model->device.traits.coop_f16 = 8;
  if (emulated) model->device.traits.max_threads = EMULATED_THREADS;
  model->device.traits.shared_bytes -= emulated * EMULATED_THREADS;
  open_tables(model);
  test_ok(vulkan_units_probe(&model->device, &model->pipelines, &model->units_fit, &error), &error);
  if (model->units_fit) return true;
  fprintf(stderr, "%s has no matrix units that the kernels can use\n", model->device.traits.name);
  return false;
}

bool test_units_close(DflashModel *model) {
  vulkan_arena_close(&model->device, &model->arena);
  vulkan_pipelines_close(&model->device, &model->pipelines);
  vulkan_buffer_close(&model->device, &tables);
  return test_device_close(&model->device);
}

void test_matrix_on_units(TestUnits *units, DflashModel *model, Stored stored) {
  DflashError error = {0};
  VulkanUpload upload = {0};
  VulkanDevice *device = &model->device;
  const DflashTensor *tensor = &stored.tensor;
  const uint64_t binding = device->traits.max_binding;
  *units = (TestUnits){.model = model, .stored = stored};
  device->traits.max_binding = (PART_ROWS + 1) * vulkan_units_form(tensor->storage, tensor->shape[1]).weight_bytes;
  test_ok(vulkan_upload_begin(device, &upload, &error), &error);
  test_ok(vulkan_matrix_open(model, &upload, tensor, "a matrix", &units->matrix, &error), &error);
  test_ok(vulkan_upload_end(device, &upload, &error), &error);
  vulkan_upload_close(device, &upload);
  device->traits.max_binding = binding;
  assert_true(units->matrix.pieces > 0);
  assert_int_equal(units->matrix.part_count, (tensor->shape[0] + PART_ROWS - 1) / PART_ROWS);
}

void test_matrix_close_units(TestUnits *units) {
  vulkan_matrix_close(&units->matrix);
  stored_close(&units->stored);
}

/* Buffers of a product, which the host reads. */
typedef struct Bench {
  VulkanBuffer buffer;
  uint64_t used;
  VulkanProduct product;
  float *first; /* what y was before the second time; NULL: the first time */
} Bench;

/* Filled with NaN; before there is a buffer, only counted. */
static VulkanRange place(Bench *b, uint64_t bytes) {
  const VulkanRange range = {b->buffer.buffer, b->used, bytes};
  if (b->buffer.mapped) memset((char *)b->buffer.mapped + b->used, NAN_BYTE, bytes);
  b->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return range;
}

static void *at(const Bench *b, VulkanRange range) { return (char *)b->buffer.mapped + range.offset; }

static void place_all(Bench *b, const TestUnits *units, int64_t rows, int64_t most_rows, int64_t out_rows,
                      const TestCut *cut) {
  const VulkanMatrix *m = &units->matrix;
  VulkanUnitsBytes bytes = vulkan_units_product_bytes(units->model, m, most_rows);
  if (cut) {
    const uint64_t x_tiles = 2 * (uint64_t)rows / 8 + 2;
    bytes.found = (uint64_t)vulkan_units_tiles(m->rows) * cut->splits * x_tiles * 512;
    bytes.arrivals = (uint64_t)vulkan_units_tiles(m->rows) * x_tiles * 4;
  }
  b->used = 0;
  b->product = (VulkanProduct){.matrix = m,
                               .x = place(b, (uint64_t)((X_FIRST + rows) * (m->cols + X_SPARE)) * 4),
                               .y = place(b, (uint64_t)((Y_FIRST + rows) * (out_rows + Y_SPARE)) * 4),
                               .rows = rows,
                               .x_first = X_FIRST,
                               .x_stride = m->cols + X_SPARE,
                               .out_rows = out_rows,
                               .y_first = Y_FIRST,
                               .y_stride = out_rows + Y_SPARE,
                               .fragments = place(b, bytes.words),
                               .factors = place(b, bytes.factors),
                               .found = place(b, bytes.found + 4),
                               .arrivals = place(b, bytes.arrivals + 4),
                               .most_rows = most_rows};
}

static void open_bench(Bench *b, const TestUnits *units, const float *x, int64_t rows, int64_t most_rows,
                       int64_t out_rows, const TestCut *cut) {
  DflashError error = {0};
  const int64_t cols = units->matrix.cols;
  place_all(b, units, rows, most_rows, out_rows, cut);
  test_ok(vulkan_buffer_open(&units->model->device, VULKAN_READBACK, b->used, "arrays", &b->buffer, &error), &error);
  place_all(b, units, rows, most_rows, out_rows, cut);
  memset(at(b, b->product.arrivals), 0, b->product.arrivals.bytes);
  for (int64_t row = 0; row < rows; row++)
    memcpy((float *)at(b, b->product.x) + (X_FIRST + row) * (cols + X_SPARE), x + row * cols, (size_t)cols * 4);
  test_ok(vulkan_buffer_flush(&units->model->device, &b->buffer, &error), &error);
}

static void check_arrivals(const Bench *b) {
  const uint32_t *arrivals = at(b, b->product.arrivals);
  for (uint64_t i = 0; i < b->product.arrivals.bytes / 4; i++) assert_int_equal(arrivals[i], 0);
}

static void check_y(Bench *b) {
  const VulkanProduct *p = &b->product;
  const float *y = at(b, p->y);
  const int64_t count = (Y_FIRST + p->rows) * p->y_stride;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &y[i], sizeof bits);
    if (i / p->y_stride < Y_FIRST || i % p->y_stride >= p->out_rows) assert_int_equal(bits, UINT32_MAX);
  }
  if (b->first) assert_memory_equal(b->first, y, (size_t)count * 4);
  if (!b->first) {
    b->first = test_memory((size_t)count, 4);
    memcpy(b->first, y, (size_t)count * 4);
  }
}

static void run_steps(Bench *b, const TestUnits *units, const TestCut *cut) {
  DflashError error = {0};
  VulkanSteps steps = {0};
  DflashModel *model = units->model;
  DflashStatus status = cut ? vulkan_steps_units_cut(model, &steps, &b->product, &cut->tile, cut->splits, &error)
                            : vulkan_steps_product(model, &steps, &b->product, &error);
  VulkanPlan plan = {0};
  if (!status) status = vulkan_plan_open(&model->device, &steps, false, 0, &plan, &error);
  if (!status) status = vulkan_plan_run(&model->device, &plan, &error);
  vulkan_plan_close(&model->device, &plan);
  vulkan_steps_close(&steps);
  if (!status) status = vulkan_buffer_invalidate(&model->device, &b->buffer, &error);
  test_ok(status, &error);
}

/* In their order; something beside them was not written. */
static void check_sums(const Bench *b, uint32_t splits) {
  const VulkanProduct *p = &b->product;
  const float *found = at(b, p->found);
  const int64_t width = p->out_rows, count = p->rows * width * splits;
  for (int64_t i = 0; i < p->rows * width; i++) {
    const float *first = found + i / width * splits * width + i % width;
    const float expected = b->first[(Y_FIRST + i / width) * p->y_stride + i % width];
    volatile float sum = first[0];
    for (uint32_t s = 1; s < splits; s++) sum += first[s * width];
    if (!(sum == expected || (isnan(sum) && isnan(expected))))
      fail_msg("%u splits: row %lld, out %lld: %a, not %a", splits, (long long)(i / width), (long long)(i % width),
               (double)sum, (double)expected);
  }
  for (int64_t i = count; i < (int64_t)(p->found.bytes / sizeof *found); i++) assert_true(isnan(found[i]));
}

/* The same with the sums of splits left apart; without splits y is written as ever. */
static void run_apart(Bench *b, const TestUnits *units, const TestCut *cut) {
  DflashError error = {0};
  const uint32_t splits = cut ? cut->splits : vulkan_units_splits(units->model, &units->matrix, b->product.most_rows);
  b->product.apart = true;
  memset(at(b, b->product.found), NAN_BYTE, b->product.found.bytes);
  test_ok(vulkan_buffer_flush(&units->model->device, &b->buffer, &error), &error);
  run_steps(b, units, cut);
  check_arrivals(b);
  check_y(b);
  if (splits > 1) check_sums(b, splits);
}

float *test_units_run(const TestUnits *units, const float *x, int64_t rows, int64_t most_rows, int64_t out_rows,
                      const TestCut *cut) {
  Bench b = {.used = 0};
  bool *addresses = &units->model->device.traits.addresses;
  const bool has = *addresses;
  open_bench(&b, units, x, rows, most_rows, out_rows, cut);
  for (int i = 0; i < TWICE; i++) {
    *addresses = has && (i == 0 || cut || units->model->profile != DFLASH_PROFILE_EXACT);
    run_steps(&b, units, cut);
    check_arrivals(&b);
    check_y(&b);
  }
  run_apart(&b, units, cut);
  *addresses = has;
  float *y = test_memory((size_t)(rows * out_rows), sizeof *y);
  for (int64_t row = 0; row < rows; row++)
    memcpy(y + row * out_rows, b.first + (Y_FIRST + row) * b.product.y_stride, (size_t)out_rows * 4);
  free(b.first);
  vulkan_buffer_close(&units->model->device, &b.buffer);
  return y;
}
