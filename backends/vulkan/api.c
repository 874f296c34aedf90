#include "api.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/error.h"

static DflashStatus missing(DflashError *error, const char *where, const char *name) {
  return dflash_error_set(error, DFLASH_UNAVAILABLE, "vulkan: the %s has no %s", where, name);
}

#define LOAD(get, handle, where, name)                        \
  api->name = (PFN_##name)(void (*)(void))get(handle, #name); \
  if (!api->name) return missing(error, where, #name);

static DflashStatus load_global(VulkanApi *api, DflashError *error) {
#define LOAD_GLOBAL(name) LOAD(api->vkGetInstanceProcAddr, NULL, "loader", name)
  VULKAN_GLOBAL_FUNCTIONS(LOAD_GLOBAL)
#undef LOAD_GLOBAL
  return DFLASH_OK;
}

DflashStatus vulkan_api_open(VulkanApi *api, DflashError *error) {
  api->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!api->library)
    return dflash_error_set(error, DFLASH_UNAVAILABLE, "vulkan: no loader (package libvulkan1): %s", dlerror());
  *(void **)&api->vkGetInstanceProcAddr = dlsym(api->library, "vkGetInstanceProcAddr");
  DflashStatus status =
      api->vkGetInstanceProcAddr ? load_global(api, error) : missing(error, "loader", "vkGetInstanceProcAddr");
  if (status != DFLASH_OK) vulkan_api_close(api);
  return status;
}

DflashStatus vulkan_api_instance(VulkanApi *api, VkInstance instance, DflashError *error) {
#define LOAD_INSTANCE(name) LOAD(api->vkGetInstanceProcAddr, instance, "instance", name)
  VULKAN_INSTANCE_FUNCTIONS(LOAD_INSTANCE)
#undef LOAD_INSTANCE
  api->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)api->vkGetInstanceProcAddr(
          instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  return DFLASH_OK;
}

DflashStatus vulkan_api_device(VulkanApi *api, VkDevice device, DflashError *error) {
#define LOAD_DEVICE(name) LOAD(api->vkGetDeviceProcAddr, device, "device", name)
  VULKAN_DEVICE_FUNCTIONS(LOAD_DEVICE)
#undef LOAD_DEVICE
  return DFLASH_OK;
}

DflashStatus vulkan_api_statistics(VulkanApi *api, VkDevice device, DflashError *error) {
  LOAD(api->vkGetDeviceProcAddr, device, "device", vkGetPipelineExecutablePropertiesKHR)
  LOAD(api->vkGetDeviceProcAddr, device, "device", vkGetPipelineExecutableStatisticsKHR)
  return DFLASH_OK;
}

void vulkan_api_close(VulkanApi *api) {
  if (api->library) dlclose(api->library);
  api->library = NULL;
}

typedef struct ResultText {
  VkResult result;
  DflashStatus status;
  const char *name, *text;
} ResultText;

#define ROW(result, status, text) {result, status, #result, text},
static const ResultText result_texts[] = {
    ROW(VK_NOT_READY, DFLASH_INTERNAL,
        "asked for a result before it was there") ROW(VK_TIMEOUT, DFLASH_TIMED_OUT, "the device did not finish in time")
        ROW(VK_INCOMPLETE, DFLASH_INTERNAL, "a list was longer than its count") ROW(
            VK_ERROR_OUT_OF_HOST_MEMORY, DFLASH_OUT_OF_MEMORY,
            "no memory on the host") ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY, DFLASH_OUT_OF_MEMORY, "no memory on the device")
            ROW(VK_ERROR_INITIALIZATION_FAILED, DFLASH_UNAVAILABLE,
                "the driver could not be started") ROW(VK_ERROR_DEVICE_LOST, DFLASH_DEVICE_LOST, "the device was lost")
                ROW(VK_ERROR_MEMORY_MAP_FAILED, DFLASH_OUT_OF_MEMORY, "device memory could not be mapped") ROW(
                    VK_ERROR_LAYER_NOT_PRESENT, DFLASH_UNAVAILABLE, "a layer is not installed")
                    ROW(VK_ERROR_EXTENSION_NOT_PRESENT, DFLASH_UNSUPPORTED, "an extension is not there") ROW(
                        VK_ERROR_FEATURE_NOT_PRESENT, DFLASH_UNSUPPORTED,
                        "a feature is not there") ROW(VK_ERROR_INCOMPATIBLE_DRIVER, DFLASH_UNAVAILABLE,
                                                      "no driver is installed that the loader can use")
                        ROW(VK_ERROR_TOO_MANY_OBJECTS, DFLASH_OUT_OF_MEMORY,
                            "the device has no room for another object of this type")
                            ROW(VK_ERROR_FRAGMENTED_POOL, DFLASH_OUT_OF_MEMORY, "a descriptor pool is fragmented")
                                ROW(VK_ERROR_OUT_OF_POOL_MEMORY, DFLASH_OUT_OF_MEMORY, "a descriptor pool is full")
                                    ROW(VK_ERROR_FRAGMENTATION, DFLASH_OUT_OF_MEMORY, "a descriptor pool is fragmented")
                                        ROW(VK_ERROR_INVALID_EXTERNAL_HANDLE, DFLASH_INTERNAL, "a handle is not valid")
                                            ROW(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, DFLASH_INTERNAL,
                                                "an address is not valid")
                                                ROW(VK_ERROR_VALIDATION_FAILED_EXT, DFLASH_INTERNAL,
                                                    "the validation layers refused the call")
                                                    ROW(VK_ERROR_INVALID_SHADER_NV, DFLASH_INTERNAL,
                                                        "the driver could not compile a shader")
                                                        ROW(VK_ERROR_UNKNOWN, DFLASH_INTERNAL,
                                                            "the driver failed and does not say why")};
#undef ROW

DflashStatus vulkan_result(VkResult result, DflashError *error, const char *what) {
  for (size_t i = 0; i < sizeof result_texts / sizeof *result_texts; i++) {
    const ResultText *row = &result_texts[i];
    if (row->result == result)
      return dflash_error_set(error, row->status, "vulkan: %s: %s: %s", what, row->name, row->text);
  }
  return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: %s: result %d, which has no meaning here", what,
                          (int)result);
}
