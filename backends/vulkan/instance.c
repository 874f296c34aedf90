#include "instance.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LAYER "VK_LAYER_KHRONOS_validation"

static DflashStatus check_layer(VulkanApi *api, DflashError *error) {
  uint32_t count = 0;
  VkResult result = VULKAN_CALL(api, vkEnumerateInstanceLayerProperties, &count, NULL);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "listing the layers");
  VkLayerProperties *layers = calloc(count + 1, sizeof *layers);
  if (!layers) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of %u layers", count);
  result = VULKAN_CALL(api, vkEnumerateInstanceLayerProperties, &count, layers);
  bool found = false;
  for (uint32_t i = 0; result == VK_SUCCESS && i < count; i++) found |= strcmp(layers[i].layerName, LAYER) == 0;
  free(layers);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "listing the layers");
  if (found) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNAVAILABLE,
                          "vulkan: validation was asked for, and " LAYER
                          " is not installed (package vulkan-validationlayers)");
}

static DflashStatus check_version(VulkanApi *api, DflashError *error) {
  uint32_t version = 0;
  VkResult result = VULKAN_CALL(api, vkEnumerateInstanceVersion, &version);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "asking the loader's version");
  if (version >= VK_API_VERSION_1_2) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "vulkan: the loader is of version %u.%u; 1.2 is needed",
                          VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
}

static DflashStatus create_instance(VulkanDevice *device, bool validation, DflashError *error) {
  static const char *const layers[] = {LAYER};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                           VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  static const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                         VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messenger = vulkan_messenger_info(&device->messages);
  const VkValidationFeaturesEXT features = {
      .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
      .pNext = &messenger,
      .enabledValidationFeatureCount = sizeof enabled / sizeof *enabled,
      .pEnabledValidationFeatures = enabled,
  };
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pApplicationName = "dflash-harness",
                                         .apiVersion = VK_API_VERSION_1_3};
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pNext = validation ? &features : NULL,
      .pApplicationInfo = &application,
      .enabledLayerCount = validation ? 1 : 0,
      .ppEnabledLayerNames = layers,
      .enabledExtensionCount = validation ? 2 : 0,
      .ppEnabledExtensionNames = extensions,
  };
  VkResult result = VULKAN_CALL(&device->api, vkCreateInstance, &info, NULL, &device->instance);
  if (result == VK_SUCCESS) return DFLASH_OK;
  device->instance = VK_NULL_HANDLE;
  return vulkan_result(result, error, "opening the loader's instance");
}

static DflashStatus open_messenger(VulkanDevice *device, DflashError *error) {
  VulkanApi *api = &device->api;
  api->vkCreateDebugUtilsMessengerEXT = (PFN_vkCreateDebugUtilsMessengerEXT)api->vkGetInstanceProcAddr(
      device->instance, "vkCreateDebugUtilsMessengerEXT");
  api->vkDestroyDebugUtilsMessengerEXT = (PFN_vkDestroyDebugUtilsMessengerEXT)api->vkGetInstanceProcAddr(
      device->instance, "vkDestroyDebugUtilsMessengerEXT");
  if (!api->vkCreateDebugUtilsMessengerEXT || !api->vkDestroyDebugUtilsMessengerEXT)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "vulkan: the loader has no functions of VK_EXT_debug_utils");
  const VkDebugUtilsMessengerCreateInfoEXT info = vulkan_messenger_info(&device->messages);
  VkResult result = VULKAN_CALL(api, vkCreateDebugUtilsMessengerEXT, device->instance, &info, NULL, &device->messenger);
  if (result == VK_SUCCESS) return DFLASH_OK;
  device->messenger = VK_NULL_HANDLE;
  return vulkan_result(result, error, "asking for the validation layers' messages");
}

DflashStatus vulkan_instance_open(VulkanDevice *device, bool validation, DflashError *error) {
  DflashStatus status = vulkan_api_open(&device->api, error);
  if (status == DFLASH_OK) status = check_version(&device->api, error);
  if (status == DFLASH_OK && validation) status = check_layer(&device->api, error);
  if (status == DFLASH_OK) status = create_instance(device, validation, error);
  if (status == DFLASH_OK) status = vulkan_api_instance(&device->api, device->instance, error);
  if (status == DFLASH_OK && validation) status = open_messenger(device, error);
  return status;
}

void vulkan_instance_close(VulkanDevice *device) {
  VulkanApi *api = &device->api;
  if (device->messenger) api->vkDestroyDebugUtilsMessengerEXT(device->instance, device->messenger, NULL);
  if (device->instance && api->vkDestroyInstance) api->vkDestroyInstance(device->instance, NULL);
  device->messenger = VK_NULL_HANDLE;
  device->instance = VK_NULL_HANDLE;
  vulkan_api_close(api);
}
