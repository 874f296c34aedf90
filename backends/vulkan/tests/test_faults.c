/* Every call of the API fails in turn: one clear error, nothing left behind, nothing for the validation layers to say.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "memory.h"

enum { BYTES = 3 * 4096 + 4 };

typedef struct Plant {
  VkResult result;
  DflashStatus status;
} Plant;

static const Plant plants[] = {{VK_ERROR_OUT_OF_DEVICE_MEMORY, DFLASH_OUT_OF_MEMORY},
                               {VK_ERROR_DEVICE_LOST, DFLASH_DEVICE_LOST}};

static DflashStatus move(VulkanDevice *device, VulkanRange range, char *data, DflashError *error) {
  VulkanUpload upload;
  memset(data, 7, BYTES);
  DflashStatus status = vulkan_upload_begin(device, &upload, error);
  if (status != DFLASH_OK) return status;
  status = vulkan_upload_copy(device, &upload, range, data, BYTES, error);
  if (status == DFLASH_OK) status = vulkan_upload_end(device, &upload, error);
  vulkan_upload_close(device, &upload);
  memset(data, 0, BYTES);
  return status == DFLASH_OK ? vulkan_download(device, range, data, BYTES, error) : status;
}

static DflashStatus use(VulkanDevice *device, char *data, DflashError *error) {
  VulkanBuffer mapped = {0}, buffer = {0};
  DflashStatus status = vulkan_buffer_open(device, VULKAN_READBACK, 100, "a test", &mapped, error);
  mapped.incoherent = true;
  if (status == DFLASH_OK) status = vulkan_buffer_flush(device, &mapped, error);
  if (status == DFLASH_OK) status = vulkan_buffer_invalidate(device, &mapped, error);
  if (status == DFLASH_OK) status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, BYTES, "a test", &buffer, error);
  if (status == DFLASH_OK) status = move(device, vulkan_buffer_range(&buffer, 0, BYTES), data, error);
  vulkan_buffer_close(device, &buffer);
  vulkan_buffer_close(device, &mapped);
  return status;
}

/* The n-th call fails; false when there was no n-th call. */
static bool fail_at(uint64_t n, Plant plant) {
  char data[BYTES] = {0};
  DflashError error = {0};
  VulkanDevice device;
  const VulkanDeviceOptions options = {.validation = true, .fault = {.at = n, .result = plant.result}};
  DflashStatus status = vulkan_device_open(&options, &device, &error);
  if (status == DFLASH_OK) {
    status = use(&device, data, &error);
    if (plant.result == VK_ERROR_DEVICE_LOST && status != DFLASH_OK) {
      DflashError later = {0};
      assert_int_equal(use(&device, data, &later), DFLASH_DEVICE_LOST);
      assert_non_null(strstr(later.message, "lost before"));
    }
    vulkan_device_close(&device);
  }
  const bool reached = device.api.fault.calls >= n;
  DflashError spoken = {0};
  if (vulkan_device_check(&device, &spoken) != DFLASH_OK) fail_msg("call %u: %s", (unsigned)n, spoken.message);
  if (status != (reached ? plant.status : DFLASH_OK)) fail_msg("call %u: status %d", (unsigned)n, (int)status);
  if (reached && strncmp(error.message, "vulkan: ", 8) != 0) fail_msg("call %u: %s", (unsigned)n, error.message);
  if (!reached)
    for (int i = 0; i < BYTES; i++) assert_int_equal(data[i], 7);
  return reached;
}

static void test_every_call(void **state) {
  (void)state;
  uint64_t counts[2];
  for (int i = 0; i < 2; i++) {
    uint64_t n = 1;
    while (fail_at(n, plants[i])) n++;
    counts[i] = n - 1;
  }
  assert_true(counts[0] > 25);
  assert_int_equal(counts[1], counts[0]);
}

static void test_works_after_a_failure(void **state) {
  (void)state;
  char data[BYTES] = {0};
  DflashError error = {0};
  VulkanDevice device;
  test_ok(vulkan_device_open(&(VulkanDeviceOptions){.validation = true}, &device, &error), &error);
  test_ok(use(&device, data, &error), &error);
  const uint64_t opening = device.api.fault.calls;
  test_ok(use(&device, data, &error), &error);
  const uint64_t calls = device.api.fault.calls - opening;
  for (uint64_t n = 1; n <= calls; n++) {
    device.api.fault = (VulkanFault){.at = n, .result = VK_TIMEOUT};
    assert_int_equal(use(&device, data, &error), DFLASH_TIMED_OUT);
    test_ok(use(&device, data, &error), &error);
    for (int i = 0; i < BYTES; i++) assert_int_equal(data[i], 7);
  }
  assert_true(test_device_close(&device));
}

/* An arena whose second block is refused keeps its first, and grows later. */
static void test_arena(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanDevice device;
  VulkanArena arena = {0};
  VulkanRange first, second;
  test_ok(vulkan_device_open(&(VulkanDeviceOptions){.validation = true}, &device, &error), &error);
  test_ok(vulkan_arena_take(&device, &arena, 100, "a test", &first, &error), &error);
  for (uint64_t n = 1; n <= 3; n++) {
    device.api.fault = (VulkanFault){.at = n, .result = VK_ERROR_OUT_OF_DEVICE_MEMORY};
    const DflashStatus status = vulkan_arena_take(&device, &arena, 64u << 20, "weights", &second, &error);
    assert_int_equal(status, DFLASH_OUT_OF_MEMORY);
    assert_string_equal(error.message,
                        "vulkan: weights: 64.0 MiB: VK_ERROR_OUT_OF_DEVICE_MEMORY: no memory on the device");
  }
  test_ok(vulkan_arena_take(&device, &arena, 64u << 20, "weights", &second, &error), &error);
  assert_ptr_not_equal(first.buffer, second.buffer);
  vulkan_arena_close(&device, &arena);
  assert_true(test_device_close(&device));
}

static void test_list(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanDevice device;
  const VulkanDeviceOptions options = {.fault = {.at = 1, .result = VK_ERROR_OUT_OF_HOST_MEMORY}};
  assert_int_equal(vulkan_device_open(&options, &device, &error), DFLASH_OUT_OF_MEMORY);
  assert_string_equal(error.message,
                      "vulkan: asking the loader's version: VK_ERROR_OUT_OF_HOST_MEMORY: no memory on the host");
}

int main(void) {
  VulkanDevice device;
  test_device_open(&device);
  if (!test_device_close(&device)) return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call), cmocka_unit_test(test_works_after_a_failure),
                                     cmocka_unit_test(test_arena), cmocka_unit_test(test_list)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
