/* What is made of a device's answers about its matrix units. The answers are the test's own: no device is needed. */
#include "fixture.h"

#include "coop_device.h"

#define F16 VK_COMPONENT_TYPE_FLOAT16_KHR
#define F32 VK_COMPONENT_TYPE_FLOAT32_KHR
#define S8 VK_COMPONENT_TYPE_SINT8_KHR
#define S32 VK_COMPONENT_TYPE_SINT32_KHR
#define SUBGROUP VK_SCOPE_SUBGROUP_KHR

/* The answers. */
static struct {
  VkBool32 matrix, model, f16, shuffles, votes;
  uint32_t smallest, largest;
  const VkCooperativeMatrixPropertiesKHR *shapes;
  uint32_t shape_count;
  VkResult result;
} device;

static void fill_features(VkBaseOutStructure *at) {
  for (; at; at = at->pNext) {
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR)
      ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)at)->cooperativeMatrix = device.matrix;
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      VkPhysicalDeviceVulkan12Features *core = (VkPhysicalDeviceVulkan12Features *)at;
      core->vulkanMemoryModel = device.model;
      core->shaderFloat16 = device.f16;
    }
  }
}

static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *features) {
  (void)physical;
  fill_features(features->pNext);
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *properties) {
  (void)physical;
  VkPhysicalDeviceSubgroupSizeControlProperties *sizes = properties->pNext;
  assert_int_equal(sizes->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  sizes->minSubgroupSize = device.smallest;
  sizes->maxSubgroupSize = device.largest;
  VkPhysicalDeviceSubgroupProperties *subgroup = sizes->pNext;
  assert_int_equal(subgroup->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  subgroup->supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                  (device.shuffles ? VK_SUBGROUP_FEATURE_SHUFFLE_BIT : 0) |
                                  (device.votes ? VK_SUBGROUP_FEATURE_VOTE_BIT : 0);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_shapes(VkPhysicalDevice physical, uint32_t *count,
                                                 VkCooperativeMatrixPropertiesKHR *shapes) {
  (void)physical;
  if (!shapes) {
    *count = device.shape_count;
    return VK_SUCCESS;
  }
  for (uint32_t i = 0; i < *count; i++) {
    assert_int_equal(shapes[i].sType, VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    shapes[i] = device.shapes[i];
  }
  return device.result;
}

static VulkanTraits read_traits(DflashStatus expected) {
  VulkanApi api = {.vkGetPhysicalDeviceFeatures2 = get_features,
                   .vkGetPhysicalDeviceProperties2 = get_properties,
                   .vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = get_shapes};
  VulkanTraits traits = {.api_version = VK_API_VERSION_1_3};
  DflashError error = {0};
  assert_int_equal(vulkan_coop_read(&api, VK_NULL_HANDLE, &traits, &error), expected);
  return traits;
}

static VkCooperativeMatrixPropertiesKHR shape(uint32_t m, uint32_t n, uint32_t k, VkComponentTypeKHR type,
                                              VkComponentTypeKHR sum) {
  return (VkCooperativeMatrixPropertiesKHR){.MSize = m,
                                            .NSize = n,
                                            .KSize = k,
                                            .AType = type,
                                            .BType = type,
                                            .CType = sum,
                                            .ResultType = sum,
                                            .scope = SUBGROUP};
}

static void offer(const VkCooperativeMatrixPropertiesKHR *shapes, uint32_t count) {
  device.matrix = device.model = device.f16 = device.shuffles = device.votes = VK_TRUE;
  device.smallest = device.largest = 32;
  device.shapes = shapes;
  device.shape_count = count;
  device.result = VK_SUCCESS;
}

static void check(uint32_t f16) {
  const VulkanTraits traits = read_traits(DFLASH_OK);
  assert_int_equal(traits.coop_f16, f16);
}

static void test_shapes_that_kernels_use_are_found(void **state) {
  (void)state;
  const VkCooperativeMatrixPropertiesKHR all[] = {shape(16, 16, 16, F16, F32), shape(16, 8, 16, F16, F32)};
  for (uint32_t count = 0; count <= 2; count++) {
    offer(all, count);
    check((count > 0 ? 16 : 0) | (count > 1 ? 8 : 0));
  }
}

static void test_other_shapes_are_passed_over(void **state) {
  (void)state;
  VkCooperativeMatrixPropertiesKHR others[] = {
      shape(8, 16, 16, F16, F32), shape(16, 32, 16, F16, F32), shape(16, 8, 8, F16, F32),
      shape(16, 8, 16, F16, F16), shape(16, 8, 16, F32, F32),  shape(16, 8, 32, S8, S32),
      shape(16, 8, 16, F16, F32), shape(16, 8, 16, F16, F32),  shape(16, 16, 16, F16, F32),
  };
  others[6].scope = VK_SCOPE_MAX_ENUM_KHR;
  others[7].saturatingAccumulation = VK_TRUE;
  others[8].BType = S8;
  offer(others, sizeof others / sizeof *others);
  check(0);
}

static void test_what_the_kernels_need_besides(void **state) {
  (void)state;
  const VkCooperativeMatrixPropertiesKHR one[] = {shape(16, 8, 16, F16, F32)};
  offer(one, 1);
  check(8);
  device.f16 = VK_FALSE;
  check(0);
  offer(one, 1);
  device.matrix = VK_FALSE;
  check(0);
  offer(one, 1);
  device.model = VK_FALSE;
  check(0);
  offer(one, 1);
  device.largest = 64;
  check(0);
  offer(one, 1);
  device.smallest = 16;
  check(0);
  offer(one, 1);
  device.shuffles = VK_FALSE;
  check(0);
  offer(one, 1);
  device.votes = VK_FALSE;
  check(0);
}

static void test_a_failed_list_is_an_error(void **state) {
  (void)state;
  const VkCooperativeMatrixPropertiesKHR one[] = {shape(16, 8, 16, F16, F32)};
  offer(one, 1);
  device.result = VK_ERROR_OUT_OF_HOST_MEMORY;
  const VulkanTraits traits = read_traits(DFLASH_OUT_OF_MEMORY);
  assert_int_equal(traits.coop_f16, 0);
}

/* Only what the kernels of the device's shapes need is switched on, and the chain goes on. */
static void test_features_are_switched_on(void **state) {
  (void)state;
  VkBaseOutStructure next = {0};
  VulkanCoopFeatures features;
  const VulkanTraits traits = {.coop_f16 = 8};
  assert_ptr_equal(vulkan_coop_chain(&features, &traits, &next), &features.matrix);
  assert_ptr_equal(features.matrix.pNext, &features.core);
  assert_ptr_equal(features.core.pNext, &next);
  assert_true(features.matrix.cooperativeMatrix && features.core.vulkanMemoryModel && features.core.shaderFloat16);
  assert_false(features.core.shaderInt8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes_that_kernels_use_are_found), cmocka_unit_test(test_other_shapes_are_passed_over),
      cmocka_unit_test(test_what_the_kernels_need_besides),     cmocka_unit_test(test_a_failed_list_is_an_error),
      cmocka_unit_test(test_features_are_switched_on),
  };
  return cmocka_run_group_tests_name("coop_traits", tests, NULL, NULL);
}
