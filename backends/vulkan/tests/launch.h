/* One launch of a kernel on arrays of the host. */
#ifndef DFLASH_VULKAN_TESTS_LAUNCH_H
#define DFLASH_VULKAN_TESTS_LAUNCH_H

#include "fixture.h"
#include "kernel.h"

/* A device and the pipelines that its tests share: the state of each test. */
typedef struct TestKernels {
  VulkanDevice device;
  VulkanPipelines pipelines;
} TestKernels;

/* As test_device_open and test_device_close. */
void test_kernels_open(TestKernels *kernels);
bool test_kernels_close(TestKernels *kernels);

/* What is bound: `bytes` (1 or more) of the host, copied to the device, and back when the kernel writes the binding. */
typedef struct TestArray {
  void *data;
  size_t bytes;
} TestArray;

typedef struct TestLaunch {
  int kernel;
  const uint32_t *constants;
  uint32_t constant_count;
  const TestArray *arrays; /* as many as the kernel binds */
  const void *push;
  uint32_t groups[3];
} TestLaunch;

/* Runs it. Fails the test on an error, and when something beside a written binding changed: what lies before and after
 * each array, or an array that is only read. */
void test_launch(TestKernels *kernels, const TestLaunch *launch);
/* The same with a pipeline that takes the place of the kernel's. */
void test_launch_pipeline(TestKernels *kernels, const VulkanPipeline *pipeline, const TestLaunch *launch);

#endif
