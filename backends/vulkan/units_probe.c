#include "units.h"

#include <string.h>

#include "base/error.h"

/* Small integers, those of w times 2^-24, the smallest f16, on which the kernels build, too: every sum of products is
 * exact, and few of the sums are alike. */
enum { LANES = 32, OF_W = 8, OF_X = 4, OF_Y = 4, DEPTH = 16 };

static int number_of_w(VulkanPlace place) {
  return (int)((place.row * 16 + place.col) * 37 % 59 + place.row * 3) % 31 - 15;
}

static int number_of_x(VulkanPlace place) {
  return (int)((place.row * 16 + place.col) * 29 % 53 + place.row * 5) % 29 - 14;
}

static float product_of(VulkanPlace place) {
  int sum = 0;
  for (uint32_t k = 0; k < DEPTH; k++)
    sum += number_of_w((VulkanPlace){place.row, k}) * number_of_x((VulkanPlace){place.col, k});
  return (float)sum * 0x1p-24f;
}

static uint16_t smallest_halves(int value) { return (uint16_t)(value < 0 ? 0x8000 | -value : value); }

/* An f16 of an integer below 2^11. */
static uint16_t half_of(int value) {
  const uint16_t sign = value < 0 ? 0x8000 : 0;
  uint32_t magnitude = (uint32_t)(value < 0 ? -value : value), exponent = 25;
  if (magnitude == 0) return 0;
  for (; magnitude < 1u << 10; magnitude *= 2) exponent--;
  return (uint16_t)(sign | exponent << 10 | (magnitude & 0x3ff));
}

/* What the kernel binds: elements of w and of x, thread by thread, and the products. */
typedef struct Probe {
  VulkanBuffer buffer;
  VulkanRange ranges[3];
} Probe;

static void *at(const Probe *p, int which) { return (char *)p->buffer.mapped + p->ranges[which].offset; }

static DflashStatus open_probe(VulkanDevice *device, Probe *p, DflashError *error) {
  static const uint64_t bytes[3] = {LANES * OF_W * 2, LANES * OF_X * 2, LANES * OF_Y * sizeof(float)};
  uint64_t offsets[3], end = 0;
  for (int i = 0; i < 3; i++) offsets[i] = vulkan_place(device, &end, bytes[i]);
  DflashStatus status =
      vulkan_buffer_open(device, VULKAN_READBACK, end, "the places of a matrix's elements", &p->buffer, error);
  for (int i = 0; i < 3 && !status; i++) p->ranges[i] = vulkan_buffer_range(&p->buffer, offsets[i], bytes[i]);
  return status;
}

/* Of products that were not written no bits are those of a number. */
static DflashStatus fill_probe(VulkanDevice *device, const Probe *p, DflashError *error) {
  uint16_t *w = at(p, 0), *x = at(p, 1);
  for (uint32_t i = 0; i < LANES * OF_W; i++) w[i] = smallest_halves(number_of_w(vulkan_units_w(i / OF_W, i % OF_W)));
  for (uint32_t i = 0; i < LANES * OF_X; i++) x[i] = half_of(number_of_x(vulkan_units_x(i / OF_X, i % OF_X)));
  memset(at(p, 2), 0xff, LANES * OF_Y * sizeof(float));
  return vulkan_buffer_flush(device, &p->buffer, error);
}

static DflashStatus run_probe(VulkanDevice *device, VulkanPipelines *pipelines, const Probe *p, DflashError *error) {
  VulkanSteps steps = {0};
  VulkanPlan plan = {0};
  const VulkanPipeline *pipeline;
  const MeasurePush push = {0};
  DflashStatus status = vulkan_pipeline_get(device, pipelines, VULKAN_KERNEL_UNITS_PROBE, NULL, 0, &pipeline, error);
  if (status) return status;
  vulkan_steps_dispatch(
      &steps,
      &(VulkanDispatch){
          .pipeline = pipeline, .ranges = p->ranges, .push = &push, .groups = {1, 1, 1}, .stage = DFLASH_STAGE_NONE});
  status = vulkan_plan_open(device, &steps, false, 0, &plan, error);
  if (!status) status = vulkan_plan_run(device, &plan, error);
  if (!status) status = vulkan_buffer_invalidate(device, &p->buffer, error);
  vulkan_plan_close(device, &plan);
  vulkan_steps_close(&steps);
  return status;
}

static bool products_fit(const float *products) {
  for (uint32_t i = 0; i < LANES * OF_Y; i++)
    if (products[i] != product_of(vulkan_units_y(i / OF_Y, i % OF_Y))) return false;
  return true;
}

DflashStatus vulkan_units_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *fits, DflashError *error) {
  *fits = false;
  if (!(device->traits.coop_f16 & 8)) return DFLASH_OK;
  Probe p;
  DflashStatus status = open_probe(device, &p, error);
  if (status) return status;
  status = fill_probe(device, &p, error);
  if (!status) status = run_probe(device, pipelines, &p, error);
  if (!status) *fits = products_fit(at(&p, 2));
  vulkan_buffer_close(device, &p.buffer);
  return status;
}
