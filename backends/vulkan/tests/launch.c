#include "launch.h"

#include <string.h>

#include "plan.h"

/* No device asks for a larger alignment of offsets. The bytes make NaN of f32: a kernel that reads them shows it. */
enum { GUARD = 256, GUARD_BYTE = 0xff };

void test_kernels_open(TestKernels *kernels) {
  *kernels = (TestKernels){0};
  test_device_open(&kernels->device);
}

bool test_kernels_close(TestKernels *kernels) {
  vulkan_pipelines_close(&kernels->device, &kernels->pipelines);
  return test_device_close(&kernels->device);
}

/* guard, data, guard */
static void send(VulkanDevice *device, const TestArray *array, VulkanBuffer *buffer) {
  DflashError error = {0};
  const uint64_t bytes = array->bytes + 2 * GUARD;
  test_ok(vulkan_buffer_open(device, VULKAN_READBACK, bytes, "an array", buffer, &error), &error);
  memset(buffer->mapped, GUARD_BYTE, bytes);
  memcpy((char *)buffer->mapped + GUARD, array->data, array->bytes);
  test_ok(vulkan_buffer_flush(device, buffer, &error), &error);
}

static bool is_guard(const unsigned char *bytes) {
  for (int i = 0; i < GUARD; i++)
    if (bytes[i] != GUARD_BYTE) return false;
  return true;
}

static void receive(VulkanDevice *device, VulkanBuffer *buffer, bool written, const TestArray *array) {
  DflashError error = {0};
  test_ok(vulkan_buffer_invalidate(device, buffer, &error), &error);
  const unsigned char *data = (const unsigned char *)buffer->mapped + GUARD;
  assert_true(is_guard(buffer->mapped));
  assert_true(is_guard(data + array->bytes));
  if (written)
    memcpy(array->data, data, array->bytes);
  else
    assert_memory_equal(array->data, data, array->bytes);
  vulkan_buffer_close(device, buffer);
}

static void run(VulkanDevice *device, const VulkanPipeline *pipeline, const TestLaunch *launch,
                const VulkanRange *ranges) {
  DflashError error = {0};
  VulkanSteps steps = {0};
  VulkanPlan plan = {0};
  const VulkanDispatch dispatch = {
      pipeline, ranges, launch->push, {launch->groups[0], launch->groups[1], launch->groups[2]}, 0, 0};
  vulkan_steps_dispatch(&steps, &dispatch);
  assert_false(steps.failed);
  test_ok(vulkan_plan_open(device, &steps, false, 0, &plan, &error), &error);
  test_ok(vulkan_plan_run(device, &plan, &error), &error);
  vulkan_plan_close(device, &plan);
  vulkan_steps_close(&steps);
}

void test_launch_pipeline(TestKernels *kernels, const VulkanPipeline *pipeline, const TestLaunch *launch) {
  const VulkanKernelInfo *info = vulkan_kernel_info(launch->kernel);
  VulkanBuffer buffers[VULKAN_MAX_BINDINGS];
  VulkanRange ranges[VULKAN_MAX_BINDINGS];
  for (uint32_t i = 0; i < info->bindings; i++) {
    send(&kernels->device, &launch->arrays[i], &buffers[i]);
    ranges[i] = vulkan_buffer_range(&buffers[i], GUARD, launch->arrays[i].bytes);
  }
  run(&kernels->device, pipeline, launch, ranges);
  for (uint32_t i = 0; i < info->bindings; i++)
    receive(&kernels->device, &buffers[i], info->writes >> i & 1, &launch->arrays[i]);
}

void test_launch(TestKernels *kernels, const TestLaunch *launch) {
  DflashError error = {0};
  const VulkanPipeline *pipeline;
  test_ok(vulkan_pipeline_get(&kernels->device, &kernels->pipelines, launch->kernel, launch->constants,
                              launch->constant_count, &pipeline, &error),
          &error);
  test_launch_pipeline(kernels, pipeline, launch);
}
