/* The Vulkan API as a table of functions, found at run time: nothing links libvulkan. Every call that can fail goes
 * through VULKAN_CALL, which can make the n-th one fail. */
#ifndef DFLASH_VULKAN_API_H
#define DFLASH_VULKAN_API_H

#include <stdbool.h>
#include <stdint.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "dflash/status.h"

#include "ids.h"

/* X(name): functions that need no instance, an instance, a device. */
#define VULKAN_GLOBAL_FUNCTIONS(X)          \
  X(vkEnumerateInstanceVersion)             \
  X(vkEnumerateInstanceLayerProperties)     \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkCreateInstance)

#define VULKAN_INSTANCE_FUNCTIONS(X)          \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

#define VULKAN_DEVICE_FUNCTIONS(X)  \
  X(vkDestroyDevice)                \
  X(vkDeviceWaitIdle)               \
  X(vkGetDeviceQueue)               \
  X(vkCreateBuffer)                 \
  X(vkDestroyBuffer)                \
  X(vkGetBufferMemoryRequirements)  \
  X(vkGetBufferDeviceAddress)       \
  X(vkAllocateMemory)               \
  X(vkFreeMemory)                   \
  X(vkBindBufferMemory)             \
  X(vkMapMemory)                    \
  X(vkFlushMappedMemoryRanges)      \
  X(vkInvalidateMappedMemoryRanges) \
  X(vkCreateShaderModule)           \
  X(vkDestroyShaderModule)          \
  X(vkCreateDescriptorSetLayout)    \
  X(vkDestroyDescriptorSetLayout)   \
  X(vkCreatePipelineLayout)         \
  X(vkDestroyPipelineLayout)        \
  X(vkCreatePipelineCache)          \
  X(vkDestroyPipelineCache)         \
  X(vkCreateComputePipelines)       \
  X(vkDestroyPipeline)              \
  X(vkCreateDescriptorPool)         \
  X(vkDestroyDescriptorPool)        \
  X(vkAllocateDescriptorSets)       \
  X(vkUpdateDescriptorSets)         \
  X(vkCreateCommandPool)            \
  X(vkDestroyCommandPool)           \
  X(vkAllocateCommandBuffers)       \
  X(vkFreeCommandBuffers)           \
  X(vkBeginCommandBuffer)           \
  X(vkEndCommandBuffer)             \
  X(vkCmdBindPipeline)              \
  X(vkCmdBindDescriptorSets)        \
  X(vkCmdPushConstants)             \
  X(vkCmdDispatch)                  \
  X(vkCmdCopyBuffer)                \
  X(vkCmdFillBuffer)                \
  X(vkCmdPipelineBarrier)           \
  X(vkCmdResetQueryPool)            \
  X(vkCmdWriteTimestamp)            \
  X(vkCreateQueryPool)              \
  X(vkDestroyQueryPool)             \
  X(vkGetQueryPoolResults)          \
  X(vkCreateFence)                  \
  X(vkDestroyFence)                 \
  X(vkResetFences)                  \
  X(vkWaitForFences)                \
  X(vkQueueSubmit)

/* Which call is made to fail: none, or the `at`-th from the opening of the device on. */
typedef struct VulkanFault {
  uint64_t at;    /* 0: none */
  uint64_t calls; /* made so far */
  VkResult result;
} VulkanFault;

typedef struct VulkanApi {
  void *library;
  VulkanFault fault;
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
  /* of VK_EXT_debug_utils; NULL without validation */
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT;
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT;
  /* of VK_KHR_pipeline_executable_properties; NULL without statistics */
  PFN_vkGetPipelineExecutablePropertiesKHR vkGetPipelineExecutablePropertiesKHR;
  PFN_vkGetPipelineExecutableStatisticsKHR vkGetPipelineExecutableStatisticsKHR;
  /* of VK_KHR_cooperative_matrix; NULL where nothing is known of it */
  PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
#define VULKAN_MEMBER(name) PFN_##name name;
  VULKAN_GLOBAL_FUNCTIONS(VULKAN_MEMBER)
  VULKAN_INSTANCE_FUNCTIONS(VULKAN_MEMBER)
  VULKAN_DEVICE_FUNCTIONS(VULKAN_MEMBER)
#undef VULKAN_MEMBER
} VulkanApi;

/* True when this call is the one to fail. */
static inline bool vulkan_fault_due(VulkanFault *fault) { return ++fault->calls == fault->at; }

/* The result of api->function(...), or the planted one without making the call. */
#define VULKAN_CALL(api, function, ...) \
  (vulkan_fault_due(&(api)->fault) ? (api)->fault.result : (api)->function(__VA_ARGS__))

/* Opens the loader and the global functions. DFLASH_UNAVAILABLE, with the reason, where there is none. */
DflashStatus vulkan_api_open(VulkanApi *api, DflashError *error);
/* Fills the instance's functions, the device's, those of its statistics. A missing one is DFLASH_UNAVAILABLE, naming
 * it. */
DflashStatus vulkan_api_instance(VulkanApi *api, VkInstance instance, DflashError *error);
DflashStatus vulkan_api_device(VulkanApi *api, VkDevice device, DflashError *error);
DflashStatus vulkan_api_statistics(VulkanApi *api, VkDevice device, DflashError *error);
void vulkan_api_close(VulkanApi *api);

/* The status of a result that is not VK_SUCCESS; error says "vulkan: WHAT: the result's name and meaning". */
DflashStatus vulkan_result(VkResult result, DflashError *error, const char *what);

#endif
