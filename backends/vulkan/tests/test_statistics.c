/* Statistics of kernels: where they come from, how drivers name them, where they are shown. The device need not have
 * any: functions of the test's own stand in for it. */
#include <stdio.h>
#include <string.h>

#include "contexts.h"
#include "device_features.h"
#include "info.h"
#include "instance.h"
#include "statistics.h"

/* What a device of the test's own says of itself. */
static struct {
  uint32_t version;
  const char *extensions[4];
  uint32_t extension_count;
  VkBool32 dot, statistics, addresses, wide;
  int dot_asked, statistics_asked, address_asked;
} device;

static VkResult list_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                VkExtensionProperties *list) {
  (void)physical;
  (void)layer;
  *count = device.extension_count;
  for (uint32_t i = 0; list && i < *count; i++)
    snprintf(list[i].extensionName, sizeof list[i].extensionName, "%s", device.extensions[i]);
  return VK_SUCCESS;
}

static void get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *properties) {
  (void)physical;
  properties->properties.apiVersion = device.version;
  properties->properties.vendorID = 0x10de;
  for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext) {
    if (next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) continue;
    VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (VkPhysicalDevicePCIBusInfoPropertiesEXT *)next;
    pci->pciDomain = 0;
    pci->pciBus = 0xc1;
    pci->pciDevice = 0;
    pci->pciFunction = 1;
    device.address_asked++;
  }
}

static void get_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *features) {
  (void)physical;
  features->features.shaderInt64 = device.wide;
  for (VkBaseOutStructure *next = features->pNext; next; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES) {
      ((VkPhysicalDeviceBufferDeviceAddressFeatures *)next)->bufferDeviceAddress = device.addresses;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR) {
      ((VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR *)next)->pipelineExecutableInfo = device.statistics;
      device.statistics_asked++;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES) {
      ((VkPhysicalDeviceShaderIntegerDotProductFeatures *)next)->shaderIntegerDotProduct = device.dot;
      device.dot_asked++;
    }
}

static void get_memory(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *memory) {
  (void)physical;
  *memory = (VkPhysicalDeviceMemoryProperties){0};
}

static VulkanTraits read_traits(void) {
  VulkanApi api = {.vkEnumerateDeviceExtensionProperties = list_extensions,
                   .vkGetPhysicalDeviceProperties2 = get_properties,
                   .vkGetPhysicalDeviceFeatures2 = get_features,
                   .vkGetPhysicalDeviceMemoryProperties = get_memory};
  VulkanTraits traits;
  DflashError error = {0};
  test_ok(vulkan_traits_read(&api, VK_NULL_HANDLE, &traits, &error), &error);
  return traits;
}

/* A device is asked for what its list of extensions, or its version, has, and for nothing else. */
static void test_traits(void **state) {
  (void)state;
  memset(&device, 0, sizeof device);
  device.version = VK_API_VERSION_1_2;
  device.dot = device.statistics = VK_TRUE;
  VulkanTraits traits = read_traits();
  assert_false(traits.integer_dot || traits.statistics || traits.pci[0]);
  assert_true(device.dot_asked == 0 && device.statistics_asked == 0 && device.address_asked == 0);
  device.version = VK_API_VERSION_1_3;
  traits = read_traits();
  assert_true(traits.integer_dot && !traits.statistics);
  device.version = VK_API_VERSION_1_2;
  device.extensions[0] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
  device.extensions[1] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  device.extensions[2] = VK_EXT_PCI_BUS_INFO_EXTENSION_NAME;
  device.extension_count = 3;
  traits = read_traits();
  assert_true(traits.integer_dot && traits.statistics);
  assert_string_equal(traits.pci, "0000:c1:00.1");
  assert_int_equal(traits.vendor, 0x10de);
  device.dot = device.statistics = VK_FALSE;
  traits = read_traits();
  assert_false(traits.integer_dot || traits.statistics);
}

/* Kernels that read by address count in 64 bits. */
static void test_traits_of_addresses(void **state) {
  (void)state;
  memset(&device, 0, sizeof device);
  device.version = VK_API_VERSION_1_2;
  for (int i = 0; i < 4; i++) {
    device.addresses = i & 1;
    device.wide = i >> 1;
    assert_int_equal(read_traits().addresses, i == 3);
  }
}

static bool in_chain(const VulkanFeatures *features, VkStructureType type) {
  for (const VkBaseInStructure *next = features->chain; next; next = next->pNext)
    if (next->sType == type) return true;
  return false;
}

static bool named(const VulkanFeatures *features, const char *name) {
  for (uint32_t i = 0; i < features->extension_count; i++)
    if (strcmp(features->extensions[i], name) == 0) return true;
  return false;
}

static void test_features(void **state) {
  (void)state;
  static const VkStructureType dot_type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
                               statistics_type =
                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
  for (int i = 0; i < 8; i++) {
    const bool dot = i & 1, statistics = i & 2, is_13 = i & 4;
    const VulkanTraits traits = {
        .integer_dot = dot, .statistics = true, .api_version = is_13 ? VK_API_VERSION_1_3 : VK_API_VERSION_1_2};
    VulkanFeatures features;
    vulkan_features_fill(&traits, statistics, &features);
    assert_int_equal(in_chain(&features, dot_type), dot);
    assert_int_equal(in_chain(&features, statistics_type), statistics);
    assert_int_equal(named(&features, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME), dot && !is_13);
    assert_int_equal(named(&features, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME), statistics);
    assert_true(features.dot.shaderIntegerDotProduct == dot &&
                features.statistics.pipelineExecutableInfo == statistics);
  }
}

/* Among all features of 1.2 where there are matrix units, by themselves elsewhere: never twice. */
static void test_features_of_addresses(void **state) {
  (void)state;
  static const VkStructureType core = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                               alone = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
  for (int i = 0; i < 4; i++) {
    const bool addresses = i & 1, coop = i & 2;
    const VulkanTraits traits = {.addresses = addresses, .coop_f16 = coop ? 8 : 0};
    VulkanFeatures features;
    vulkan_features_fill(&traits, false, &features);
    assert_int_equal(in_chain(&features, core), coop);
    assert_int_equal(in_chain(&features, alone), addresses && !coop);
    assert_int_equal(in_chain(&features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2), addresses);
    assert_int_equal(features.basic.features.shaderInt64, addresses);
    assert_int_equal(coop ? features.coop.core.bufferDeviceAddress : features.addresses.bufferDeviceAddress, addresses);
  }
}

/* What a driver of the test's own says of every pipeline. */
static struct {
  struct {
    const char *name;
    VkPipelineExecutableStatisticFormatKHR format;
    int64_t value;
  } rows[2][3];
  uint32_t executables, row_count;
  VkPipelineCreateFlags flags; /* of the last pipeline made */
  PFN_vkCreateComputePipelines create;
} driver;

enum {
  U64 = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR,
  I64 = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR,
  F64 = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR
};

static void set_driver(uint32_t executables, uint32_t row_count) {
  const PFN_vkCreateComputePipelines create = driver.create;
  memset(&driver, 0, sizeof driver);
  driver.create = create;
  driver.executables = executables;
  driver.row_count = row_count;
}

static void set_row(int executable, int row, const char *name, int format, int64_t value) {
  driver.rows[executable][row].name = name;
  driver.rows[executable][row].format = (VkPipelineExecutableStatisticFormatKHR)format;
  driver.rows[executable][row].value = value;
}

static VkResult get_executables(VkDevice vk, const VkPipelineInfoKHR *info, uint32_t *count,
                                VkPipelineExecutablePropertiesKHR *list) {
  (void)vk;
  assert_true(info->pipeline != VK_NULL_HANDLE);
  assert_null(list);
  *count = driver.executables;
  return VK_SUCCESS;
}

static VkResult get_statistics(VkDevice vk, const VkPipelineExecutableInfoKHR *info, uint32_t *count,
                               VkPipelineExecutableStatisticKHR *list) {
  (void)vk;
  assert_true(info->pipeline != VK_NULL_HANDLE && info->executableIndex < driver.executables);
  *count = driver.row_count;
  for (uint32_t i = 0; list && i < *count; i++) {
    assert_int_equal(list[i].sType, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR);
    snprintf(list[i].name, sizeof list[i].name, "%s", driver.rows[info->executableIndex][i].name);
    list[i].format = driver.rows[info->executableIndex][i].format;
    list[i].value.i64 = driver.rows[info->executableIndex][i].value;
  }
  return VK_SUCCESS;
}

/* Makes pipelines as the device can: the flag is noted, not passed on. */
static VkResult create_pipelines(VkDevice vk, VkPipelineCache cache, uint32_t count,
                                 const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *allocator,
                                 VkPipeline *pipelines) {
  VkComputePipelineCreateInfo plain = *info;
  driver.flags = info->flags;
  plain.flags = 0;
  return driver.create(vk, cache, count, &plain, allocator, pipelines);
}

static VulkanStatistics read_statistics(void) {
  VulkanDevice fake = {.api = {.vkGetPipelineExecutablePropertiesKHR = get_executables,
                               .vkGetPipelineExecutableStatisticsKHR = get_statistics}};
  const VulkanPipeline pipeline = {.pipeline = (VkPipeline)(uintptr_t)1};
  VulkanStatistics statistics;
  DflashError error = {0};
  test_ok(vulkan_statistics_read(&fake, &pipeline, &statistics, &error), &error);
  return statistics;
}

static void test_drivers(void **state) {
  (void)state;
  set_driver(1, 3);
  set_row(0, 0, "Register Count", U64, 96);
  set_row(0, 1, "Binary Size", U64, 5000);
  set_row(0, 2, "Local Memory Size", U64, 128);
  VulkanStatistics got = read_statistics();
  assert_true(got.registers == 96 && got.spilled_bytes == 128);
  set_row(0, 2, "Local Memory Size", U64, (int64_t)16 << 32 | 64);
  assert_true(read_statistics().spilled_bytes == 64);
  set_driver(1, 3);
  set_row(0, 0, "SGPRs", U64, 80);
  set_row(0, 1, "VGPRs", U64, 48);
  set_row(0, 2, "Scratch size", U64, 0);
  got = read_statistics();
  assert_true(got.registers == 48 && got.spilled_bytes == 0);
  set_driver(2, 2);
  set_row(0, 0, "Scratch Memory Size", I64, 2048);
  set_row(0, 1, "Register Count", I64, -1);
  set_row(1, 0, "Scratch Memory Size", I64, 1024);
  set_row(1, 1, "Register Count", F64, 7);
  got = read_statistics();
  assert_true(got.registers == 0 && got.spilled_bytes == 2048);
  set_driver(1, 0);
  got = read_statistics();
  assert_true(got.registers == 0 && got.spilled_bytes == 0);
}

static void check_text(VulkanStatistics statistics, size_t size, const char *expected) {
  char text[64] = "f32";
  vulkan_statistics_append(&statistics, text, size);
  assert_string_equal(text, expected);
}

static void test_text(void **state) {
  (void)state;
  check_text((VulkanStatistics){96, 0}, 64, "f32, 96 registers");
  check_text((VulkanStatistics){96, 128}, 64, "f32, 96 registers, 128 B spilled");
  check_text((VulkanStatistics){0, 16}, 64, "f32, 16 B spilled");
  check_text((VulkanStatistics){0, 0}, 64, "f32");
  check_text((VulkanStatistics){96, 128}, 10, "f32, 96 r");
}

static DflashStatus stage_path(int32_t stage, DflashStageInfo *info, DflashError *error) {
  *info = (DflashStageInfo){.struct_size = sizeof *info};
  return vulkan_stage_info(contexts.model, stage, 0, 4, info, error);
}

static bool has_statistics(const DflashStageInfo *info) { return strstr(info->path, ", 96 registers, 128 B spilled"); }

/* The model's device gets the test's driver. */
static void plant_driver(void) {
  VulkanDevice *real = &contexts.model->device;
  set_driver(1, 2);
  set_row(0, 0, "Register Count", U64, 96);
  set_row(0, 1, "Local Memory Size", U64, 128);
  driver.create = real->api.vkCreateComputePipelines;
  real->statistics = true;
  real->api.vkCreateComputePipelines = create_pipelines;
  real->api.vkGetPipelineExecutablePropertiesKHR = get_executables;
  real->api.vkGetPipelineExecutableStatisticsKHR = get_statistics;
}

static void test_off(void **state) {
  (void)state;
  DflashError error = {0};
  DflashStageInfo info;
  test_ok(stage_path(DFLASH_STAGE_ATTN_MIX, &info, &error), &error);
  assert_false(has_statistics(&info));
  assert_int_equal(contexts.model->pipelines.count, 0);
}

/* Every call fails in turn, and nothing is left behind. */
static void test_failing_calls(void **state) {
  (void)state;
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  DflashStageInfo info;
  uint64_t n = 0;
  plant_driver();
  while (status) {
    DflashError error = {0};
    contexts.model->device.api.fault = (VulkanFault){.at = ++n, .result = VK_ERROR_OUT_OF_HOST_MEMORY};
    status = stage_path(DFLASH_STAGE_MLP_GATE, &info, &error);
    assert_int_equal(error.status, status);
    assert_int_equal(has_statistics(&info), status == DFLASH_OK);
    if (status) assert_int_equal(status, DFLASH_OUT_OF_MEMORY);
    vulkan_pipelines_close(&contexts.model->device, &contexts.model->pipelines);
  }
  contexts.model->device.api.fault = (VulkanFault){0};
  assert_int_equal(n, 9); /* cache, two layouts, module, pipeline, executables, count of statistics, statistics */
}

/* Of every stage, and the same when asked again. */
static void test_paths(void **state) {
  (void)state;
  DflashError error = {0};
  DflashStageInfo info;
  for (int turn = 0; turn < 2; turn++)
    for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
      test_ok(stage_path(stage, &info, &error), &error);
      if (!has_statistics(&info)) fail_msg("stage %d: %s", (int)stage, info.path);
    }
  assert_int_equal(driver.flags, VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR);
}

static void run_block(void) {
  float h[4 * HIDDEN] = {0};
  int32_t chosen[3], plain[3];
  DflashError error = {0};
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = chosen, .plain = plain};
  DflashSequence *s = open_sequence(0);
  push_ok(s, 0, 4, 1);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = 4,
                                .rows = 4,
                                .n_draft = 3,
                                .head_width = contexts.drawn.geometry.vocab,
                                .h = h,
                                .tokens = &tokens};
  test_ok(vulkan_block(s, &call, &error), &error);
  vulkan_sequence_close(s);
}

/* They are told of the kernels that a push and a block have made: no other is made for them. */
static void test_kernels_of_a_block(void **state) {
  (void)state;
  DflashError error = {0};
  DflashStageInfo info;
  vulkan_pipelines_close(&contexts.model->device, &contexts.model->pipelines);
  run_block();
  const uint32_t made = contexts.model->pipelines.count;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    test_ok(stage_path(stage, &info, &error), &error);
    if (contexts.model->pipelines.count != made) fail_msg("stage %d: another kernel", (int)stage);
  }
}

/* The option, on a device as it is. */
static void test_option(void **state) {
  (void)state;
  const DflashOption option = {"statistics", "on"};
  const DflashModelDesc desc = drawn_desc(&contexts.drawn, DFLASH_PROFILE_EXACT, &option, 1);
  DflashError error = {0};
  DflashModel *model;
  DflashStageInfo info = {.struct_size = sizeof info};
  const DflashStatus status = vulkan_model_open(&desc, &model, &error);
  assert_int_equal(vulkan_supports(&desc, NULL), status);
  if (contexts.model->device.traits.statistics) {
    test_ok(status, &error);
    test_ok(vulkan_stage_info(model, DFLASH_STAGE_ATTN_MIX, 0, 4, &info, &error), &error);
    vulkan_model_close(model);
  } else {
    assert_int_equal(status, DFLASH_UNSUPPORTED);
    assert_non_null(strstr(error.message, "statistics"));
    assert_non_null(strstr(error.message, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME));
  }
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_traits),
      cmocka_unit_test(test_features),
      cmocka_unit_test(test_drivers),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_option),
      cmocka_unit_test(test_off),
      cmocka_unit_test(test_failing_calls),
      cmocka_unit_test(test_paths),
      cmocka_unit_test(test_kernels_of_a_block),
      cmocka_unit_test(test_traits_of_addresses),
      cmocka_unit_test(test_features_of_addresses),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
