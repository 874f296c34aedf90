#include "coop_device.h"

#include <stdlib.h>

#include "base/error.h"

enum { LANES = 32 };

/* The features and sizes that the kernels build on. */
typedef struct Needs {
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
  VkPhysicalDeviceVulkan12Features core;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes;
  VkPhysicalDeviceSubgroupProperties subgroup;
} Needs;

static void read_needs(VulkanApi *api, VkPhysicalDevice physical, Needs *needs) {
  *needs = (Needs){
      .matrix = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, .pNext = &needs->core},
      .core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
      .sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, .pNext = &needs->subgroup},
      .subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES}};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &needs->matrix};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                            .pNext = &needs->sizes};
  api->vkGetPhysicalDeviceFeatures2(physical, &features);
  api->vkGetPhysicalDeviceProperties2(physical, &properties);
}

static bool met(const Needs *needs) {
  const VkSubgroupFeatureFlags operations = VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT;
  return needs->matrix.cooperativeMatrix && needs->core.vulkanMemoryModel && needs->sizes.minSubgroupSize == LANES &&
         needs->sizes.maxSubgroupSize == LANES && (needs->subgroup.supportedOperations & operations) == operations;
}

/* 16 x 16 times 16 x N in f16, into 16 x N in f32. */
static bool has_shape(const VkCooperativeMatrixPropertiesKHR *p) {
  return p->scope == VK_SCOPE_SUBGROUP_KHR && p->MSize == 16 && (p->NSize == 8 || p->NSize == 16) && p->KSize == 16 &&
         p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p->BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         !p->saturatingAccumulation;
}

static void fill_widths(const VkCooperativeMatrixPropertiesKHR *list, uint32_t count, const Needs *needs,
                        VulkanTraits *traits) {
  for (uint32_t i = 0; i < count; i++) {
    if (needs->core.shaderFloat16 && has_shape(&list[i])) traits->coop_f16 |= list[i].NSize;
  }
}

DflashStatus vulkan_coop_read(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error) {
  static const char what[] = "listing the shapes of matrix units";
  Needs needs;
  uint32_t count = 0;
  if (traits->api_version < VK_API_VERSION_1_3 || !api->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
    return DFLASH_OK;
  read_needs(api, physical, &needs);
  if (!met(&needs)) return DFLASH_OK;
  VkResult result = VULKAN_CALL(api, vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, physical, &count, NULL);
  if (result != VK_SUCCESS) return vulkan_result(result, error, what);
  VkCooperativeMatrixPropertiesKHR *list = calloc(count + 1, sizeof *list);
  if (!list) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of %u shapes", count);
  for (uint32_t i = 0; i < count; i++) list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  result = VULKAN_CALL(api, vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, physical, &count, list);
  if (result == VK_SUCCESS) fill_widths(list, count, &needs, traits);
  free(list);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_result(result, error, what);
}

void *vulkan_coop_chain(VulkanCoopFeatures *features, const VulkanTraits *traits, void *next) {
  *features =
      (VulkanCoopFeatures){.matrix = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                                      .pNext = &features->core,
                                      .cooperativeMatrix = VK_TRUE},
                           .core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                    .pNext = next,
                                    .shaderFloat16 = traits->coop_f16 != 0,
                                    .vulkanMemoryModel = VK_TRUE}};
  return &features->matrix;
}
