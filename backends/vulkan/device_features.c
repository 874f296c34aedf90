#include "device_features.h"

static void add_extension(VulkanFeatures *features, const char *name) {
  features->extensions[features->extension_count++] = name;
}

/* The features of 1.2 and a part of them must not stand in one chain. */
static void add_addresses(VulkanFeatures *features, bool coop) {
  features->addresses = (VkPhysicalDeviceBufferDeviceAddressFeatures){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
      .pNext = features->chain,
      .bufferDeviceAddress = VK_TRUE,
  };
  features->coop.core.bufferDeviceAddress = VK_TRUE;
  features->basic = (VkPhysicalDeviceFeatures2){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
      .pNext = coop ? features->chain : &features->addresses,
      .features.shaderInt64 = VK_TRUE,
  };
  features->chain = &features->basic;
}

void vulkan_features_fill(const VulkanTraits *traits, bool statistics, VulkanFeatures *features) {
  *features = (VulkanFeatures){0};
  if (traits->integer_dot) {
    features->dot = (VkPhysicalDeviceShaderIntegerDotProductFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .pNext = features->chain,
        .shaderIntegerDotProduct = VK_TRUE,
    };
    features->chain = &features->dot;
    if (traits->api_version < VK_API_VERSION_1_3)
      add_extension(features, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  if (statistics) {
    features->statistics = (VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pNext = features->chain,
        .pipelineExecutableInfo = VK_TRUE,
    };
    features->chain = &features->statistics;
    add_extension(features, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  }
  if (traits->coop_f16) {
    features->chain = vulkan_coop_chain(&features->coop, traits, features->chain);
    add_extension(features, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  }
  if (traits->addresses) add_addresses(features, traits->coop_f16 != 0);
}
