/* Opening and closing devices, their list, and what is said when that cannot be done. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "instance.h"

static VulkanDevice shared;

static void test_traits(void **state) {
  (void)state;
  const VulkanTraits *traits = &shared.traits;
  assert_true(traits->api_version >= VK_API_VERSION_1_2);
  assert_true(traits->max_threads >= 256);
  assert_true(traits->shared_bytes >= 32768);
  assert_true(traits->max_storage_buffers >= 10);
  assert_true(traits->max_binding >= 1u << 27);
  assert_true(traits->max_allocation >= 1u << 30);
  assert_true(traits->offset_align > 0 && (traits->offset_align & (traits->offset_align - 1)) == 0);
  assert_true(traits->subgroup_size > 0);
  assert_true(traits->memory_bytes > 0);
  assert_true(traits->timestamp_bits == 0 || traits->timestamp_ns > 0);
  assert_true(traits->name[0] && traits->driver[0] && traits->id[0]);
}

static void test_list(void **state) {
  (void)state;
  DflashError error = {0};
  DflashDevice devices[16] = {{0}};
  uint32_t count = 0;
  for (int i = 0; i < 16; i++) devices[i].struct_size = sizeof *devices;
  test_ok(vulkan_devices(devices, 16, &count, &error), &error);
  assert_true(count >= 1);
  assert_string_equal(devices[0].id, shared.traits.id);
  assert_string_equal(devices[0].name, shared.traits.name);
  assert_string_equal(devices[0].driver, shared.traits.driver);
  for (uint32_t i = 1; i < count && i < 16; i++) assert_true(devices[i].is_cpu >= devices[i - 1].is_cpu);
}

/* A caller whose struct ends before the driver's name. */
static void test_list_of_short_structs(void **state) {
  (void)state;
  DflashError error = {0};
  DflashDevice device = {.struct_size = offsetof(DflashDevice, driver)};
  uint32_t count = 0;
  test_ok(vulkan_devices(&device, 1, &count, &error), &error);
  assert_int_equal(device.struct_size, offsetof(DflashDevice, driver));
  assert_string_equal(device.name, shared.traits.name);
  assert_string_equal(device.driver, "");
  device.struct_size = 0;
  assert_int_equal(vulkan_devices(&device, 1, &count, &error), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_devices(NULL, 1, &count, &error), DFLASH_INVALID_ARGUMENT);
}

static void test_list_without_room(void **state) {
  (void)state;
  DflashError error = {0};
  uint32_t count = 0;
  test_ok(vulkan_devices(NULL, 0, &count, &error), &error);
  assert_true(count >= 1);
}

static void test_open_by_id(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanDevice device;
  test_ok(vulkan_device_open(&(VulkanDeviceOptions){.id = shared.traits.id}, &device, &error), &error);
  assert_string_equal(device.traits.name, shared.traits.name);
  vulkan_device_close(&device);
  vulkan_device_close(&device);
}

static void test_unknown_id(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanDevice device;
  assert_int_equal(vulkan_device_open(&(VulkanDeviceOptions){.id = "none"}, &device, &error), DFLASH_UNAVAILABLE);
  assert_non_null(strstr(error.message, "'none'"));
  assert_null(device.device);
  assert_null(device.instance);
}

static void test_close_of_zeroes(void **state) {
  (void)state;
  VulkanDevice device = {0};
  vulkan_device_close(&device);
  assert_null(device.device);
}

static void check_unavailable(const char *variable, bool validation, const char *says) {
  DflashError error = {0};
  VulkanDevice device;
  setenv(variable, "/nonexistent", 1);
  const DflashStatus status = vulkan_device_open(&(VulkanDeviceOptions){.validation = validation}, &device, &error);
  unsetenv(variable);
  assert_int_equal(status, DFLASH_UNAVAILABLE);
  if (!strstr(error.message, says)) fail_msg("%s", error.message);
}

static void test_absent_layers(void **state) {
  (void)state;
  check_unavailable("VK_LAYER_PATH", true, "package vulkan-validationlayers");
}

static void test_absent_driver(void **state) {
  (void)state;
  DflashError error = {0};
  uint32_t count = 7;
  setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
  assert_int_equal(vulkan_devices(NULL, 0, &count, &error), DFLASH_UNAVAILABLE);
  unsetenv("VK_ICD_FILENAMES");
  assert_int_equal(count, 0);
  check_unavailable("VK_ICD_FILENAMES", false, "driver");
}

/* The layers do speak: a buffer of no bytes is against the rules. */
static void test_validation_speaks(void **state) {
  (void)state;
  DflashError error = {0};
  VulkanDevice device;
  test_ok(vulkan_device_open(&(VulkanDeviceOptions){.validation = true}, &device, &error), &error);
  test_ok(vulkan_device_check(&device, &error), &error);
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  VkBuffer buffer = VK_NULL_HANDLE;
  device.api.vkCreateBuffer(device.device, &info, NULL, &buffer);
  assert_int_equal(vulkan_device_check(&device, &error), DFLASH_INTERNAL);
  assert_non_null(strstr(error.message, "VUID-VkBufferCreateInfo-size-00912"));
  device.api.vkDestroyBuffer(device.device, buffer, NULL);
  vulkan_device_close(&device);
}

/* Old layers and new ones name the same advice differently. */
static void test_advice(void **state) {
  (void)state;
  static const char *const left_out[] = {"UNASSIGNED-BestPractices-vkAllocateMemory-small-allocation",
                                         "BestPractices-vkAllocateMemory-small-allocation",
                                         "BestPractices-SpirvDeprecated_WorkgroupSize"};
  static const char *const noted[] = {"UNASSIGNED-BestPractices-vkAllocateMemory-too-many-objects",
                                      "VUID-VkBufferCreateInfo-size-00912", "UNASSIGNED-", NULL};
  VulkanMessages messages = {0};
  const VkDebugUtilsMessengerCreateInfoEXT info = vulkan_messenger_info(&messages);
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
    const VkDebugUtilsMessengerCallbackDataEXT data = {.pMessageIdName = left_out[i], .pMessage = left_out[i]};
    info.pfnUserCallback(VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT, 0, &data, info.pUserData);
  }
  assert_int_equal(messages.count, 0);
  for (size_t i = 0; i < sizeof noted / sizeof *noted; i++) {
    const VkDebugUtilsMessengerCallbackDataEXT data = {.pMessageIdName = noted[i], .pMessage = "said"};
    info.pfnUserCallback(VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT, 0, &data, info.pUserData);
    assert_int_equal(messages.count, i + 1);
  }
  assert_string_equal(messages.first, "said");
}

static void test_results(void **state) {
  (void)state;
  DflashError error = {0};
  assert_int_equal(vulkan_result(VK_ERROR_OUT_OF_DEVICE_MEMORY, &error, "here"), DFLASH_OUT_OF_MEMORY);
  assert_string_equal(error.message, "vulkan: here: VK_ERROR_OUT_OF_DEVICE_MEMORY: no memory on the device");
  assert_int_equal(vulkan_result(VK_TIMEOUT, &error, "here"), DFLASH_TIMED_OUT);
  assert_int_equal(vulkan_result((VkResult)-77, &error, "here"), DFLASH_INTERNAL);
  assert_non_null(strstr(error.message, "-77"));
}

int main(void) {
  test_device_open(&shared);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_traits),
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_list_of_short_structs),
      cmocka_unit_test(test_list_without_room),
      cmocka_unit_test(test_open_by_id),
      cmocka_unit_test(test_unknown_id),
      cmocka_unit_test(test_close_of_zeroes),
      cmocka_unit_test(test_absent_layers),
      cmocka_unit_test(test_absent_driver),
      cmocka_unit_test(test_validation_speaks),
      cmocka_unit_test(test_advice),
      cmocka_unit_test(test_results),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_device_close(&shared) ? failed : 1;
}
