#include "coop_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

static size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool test_coop_is_direct(const TestCoopCase *with) {
  return with->kernel == VULKAN_KERNEL_COOP_Q8_DIRECT || with->kernel == VULKAN_KERNEL_COOP_Q4_DIRECT;
}

bool test_coop_takes(const TestCoop *coop, const TestCoopCase *with) {
  if (test_coop_is_direct(with) && !coop->direct) return false;
  return ((with->kernel == VULKAN_KERNEL_COOP_I8 ? coop->widths_i8 : coop->widths_f16) & with->rows) != 0;
}

TestPrepared test_prepared_open(size_t x_words, size_t factor_count) {
  return (TestPrepared){test_memory(x_words, 4), x_words, test_memory(factor_count, 4), factor_count};
}

void test_prepared_close(TestPrepared *prepared) {
  free(prepared->x);
  free(prepared->factors);
}

static VkPipeline make_pipeline(VulkanDevice *device, const VulkanModule *code, const VulkanPipeline *wanted) {
  const VulkanApi *api = &device->api;
  VkSpecializationMapEntry entries[VULKAN_MAX_CONSTANTS];
  for (uint32_t i = 0; i < wanted->constant_count; i++) entries[i] = (VkSpecializationMapEntry){i, 4 * i, 4};
  const VkShaderModuleCreateInfo module_info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = code->bytes, .pCode = code->words};
  VkShaderModule module;
  assert_int_equal(api->vkCreateShaderModule(device->device, &module_info, NULL, &module), VK_SUCCESS);
  const VkSpecializationInfo constants = {wanted->constant_count, entries, 4 * (size_t)wanted->constant_count,
                                          wanted->constants};
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main",
                                                      .pSpecializationInfo = &constants},
                                            .layout = wanted->layout};
  VkPipeline pipeline;
  assert_int_equal(api->vkCreateComputePipelines(device->device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline),
                   VK_SUCCESS);
  api->vkDestroyShaderModule(device->device, module, NULL);
  return pipeline;
}

static bool is_made(const VulkanPipelines *pipelines, const VulkanPipeline *wanted) {
  for (uint32_t i = 0; i < pipelines->count; i++) {
    const VulkanPipeline *made = pipelines->made[i];
    if (made->kernel == wanted->kernel && made->constant_count == wanted->constant_count &&
        memcmp(made->constants, wanted->constants, sizeof wanted->constants) == 0)
      return true;
  }
  return false;
}

static void add(VulkanPipelines *pipelines, const VulkanPipeline *made) {
  if (pipelines->count == pipelines->capacity) {
    pipelines->capacity *= 2;
    pipelines->made = realloc(pipelines->made, pipelines->capacity * sizeof(VulkanPipeline *));
    assert_non_null(pipelines->made);
  }
  VulkanPipeline *kept = test_memory(1, sizeof *kept);
  *kept = *made;
  pipelines->made[pipelines->count++] = kept;
}

/* It is bound like `out`, which binds as many buffers. */
void test_coop_pipeline(TestCoop *coop, int kernel, const uint32_t *constants, uint32_t count) {
  if (!coop->emulated) return;
  DflashError error = {0};
  const VulkanPipeline *like;
  VulkanDevice *device = &coop->kernels.device;
  VulkanPipelines *pipelines = &coop->kernels.pipelines;
  test_ok(vulkan_pipeline_get(device, pipelines, VULKAN_KERNEL_OUT, NULL, 0, &like, &error), &error);
  VulkanPipeline wanted = {.kernel = kernel, .constant_count = count, .layout = like->layout, .set = like->set};
  memcpy(wanted.constants, constants, count * sizeof *wanted.constants);
  if (is_made(pipelines, &wanted)) return;
  wanted.pipeline = make_pipeline(device, &coop->emulated[kernel - VULKAN_KERNEL_COOP_F16], &wanted);
  add(pipelines, &wanted);
}

static void find_largest(const TestProduct *p) {
  const TestMatrix *m = p->matrix;
  memset(p->largest, 0, (size_t)p->rows * sizeof *p->largest);
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t col = 0; col < m->cols; col++) {
      volatile float value = test_product_x(p, row)[col];
      if (m->storage == DFLASH_STORAGE_Q8_2F) value *= m->columns[col];
      const uint32_t magnitude = bits_of(value) & 0x7fffffff;
      if (magnitude > p->largest[row]) p->largest[row] = magnitude;
    }
}

TestPrepared test_coop_parts(TestCoop *coop, const TestProduct *p, uint32_t bits, bool direct, uint32_t parts,
                             int64_t rows) {
  const TestMatrix *m = p->matrix;
  const size_t units = 2 * ceil_div((size_t)m->cols, 16);
  TestPrepared made = test_prepared_open((size_t)rows * parts * units * 4, 2 * (size_t)rows);
  find_largest(p);
  const PartsPush push = {(uint32_t)rows, (uint32_t)m->cols, TEST_X_FIRST, (uint32_t)p->x_stride,
                          m->storage == DFLASH_STORAGE_Q8_2F};
  const TestArray arrays[] = {{p->x, (size_t)((TEST_X_FIRST + p->rows + 1) * p->x_stride) * 4},
                              {m->columns, (size_t)m->cols * 4},
                              {p->largest, (size_t)p->rows * 4},
                              {made.x, made.x_words * 4},
                              {made.factors, made.factor_count * 4}};
  test_launch(&coop->kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_PARTS,
                                            .constants = (const uint32_t[]){parts, bits, direct},
                                            .constant_count = 3,
                                            .arrays = arrays,
                                            .push = &push,
                                            .groups = {(uint32_t)ceil_div(units, 256), (uint32_t)rows, 1}});
  return made;
}

static void sum_splits(TestCoop *coop, TestProduct *p, float *found, uint32_t splits, int64_t rows) {
  const CoopSumPush push = {splits, (uint32_t)rows, (uint32_t)p->matrix->rows, TEST_Y_FIRST, (uint32_t)p->y_stride};
  const size_t y_count = (size_t)((TEST_Y_FIRST + p->rows + 1) * p->y_stride);
  const TestArray arrays[] = {{found, splits * (size_t)(rows * p->matrix->rows) * 4},
                              {p->y + TEST_OUT_FIRST, (y_count - TEST_OUT_FIRST) * 4}};
  test_launch(&coop->kernels,
              &(TestLaunch){.kernel = VULKAN_KERNEL_COOP_SUM,
                            .arrays = arrays,
                            .push = &push,
                            .groups = {(uint32_t)ceil_div((size_t)p->matrix->rows, 256), (uint32_t)rows, 1}});
}

/* Elements outside the product are not written. */
static void check_untouched(const TestProduct *p, int64_t rows) {
  for (int64_t i = 0; i < (TEST_Y_FIRST + p->rows + 1) * p->y_stride; i++) {
    const int64_t row = i / p->y_stride - TEST_Y_FIRST, out = i % p->y_stride - TEST_OUT_FIRST;
    if (row < 0 || row >= rows || out < 0 || out >= p->matrix->rows) assert_true(isnan(p->y[i]));
  }
}

void test_coop_multiply(TestCoop *coop, TestProduct *p, const TestCoopCase *with, uint32_t splits, int64_t rows,
                        const TestPrepared *prepared) {
  const TestMatrix *m = p->matrix;
  const size_t group_rows = 16 * with->tiles * (with->threads / 32 / with->slices);
  const size_t rounds = ceil_div((size_t)m->cols, with->step * with->slices);
  const size_t y_count = (size_t)((TEST_Y_FIRST + p->rows + 1) * p->y_stride);
  const size_t found_count = splits * (size_t)(rows * m->rows);
  const bool split = splits > 1;
  float *found = test_memory(found_count, sizeof *found);
  const CoopPush push = {.rows = (uint32_t)rows,
                         .cols = (uint32_t)m->cols,
                         .out_rows = (uint32_t)m->rows,
                         .out_first = split ? 0 : TEST_OUT_FIRST,
                         .pitch = m->pitch,
                         .code_pitch = m->code_pitch,
                         .y_first = split ? 0 : TEST_Y_FIRST,
                         .y_stride = (uint32_t)(split ? m->rows : p->y_stride),
                         .rounds = (uint32_t)ceil_div(rounds, splits),
                         .split_stride = (uint32_t)(rows * m->rows)};
  const TestArray arrays[] = {{m->weights, (size_t)(m->rows * m->pitch) * 16},
                              {m->scales, (size_t)(m->storage == DFLASH_STORAGE_Q4TP ? 2 * m->rows : m->rows) * 4},
                              {m->codes, (size_t)(m->code_pitch ? m->rows * m->code_pitch : 1) * 4},
                              {prepared->x, prepared->x_words * 4},
                              {prepared->factors, prepared->factor_count * 4},
                              {split ? found : p->y, (split ? found_count : y_count) * 4}};
  for (size_t i = 0; i < y_count; i++) p->y[i] = NAN;
  for (size_t i = 0; i < found_count; i++) found[i] = NAN;
  test_coop_pipeline(coop, with->kernel, &with->threads, 7);
  test_launch(&coop->kernels, &(TestLaunch){.kernel = with->kernel,
                                            .constants = &with->threads,
                                            .constant_count = 7,
                                            .arrays = arrays,
                                            .push = &push,
                                            .groups = {(uint32_t)ceil_div((size_t)m->rows, group_rows),
                                                       (uint32_t)ceil_div((size_t)rows, with->rows), splits}});
  if (split) sum_splits(coop, p, found, splits, rows);
  free(found);
  check_untouched(p, rows);
}
