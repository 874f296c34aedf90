#include <stdio.h>
#include <string.h>

#include "instance.h"

/* Advice of best practices that is not about this backend. Nothing else is left out. */
static const char *const not_about_us[] = {
    /* The extensions of the validation itself are for debugging, which is what is being done. */
    "UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
    /* The few command buffers are recorded again one by one, seldom, and never while a block is timed. */
    "UNASSIGNED-BestPractices-vkCreateCommandPool-command-buffer-reset",
    /* Weights lie in large blocks. A sequence has a few buffers of its own, which are small when its model is. */
    "UNASSIGNED-BestPractices-vkAllocateMemory-small-allocation",
    "UNASSIGNED-BestPractices-vkBindMemory-small-dedicated-allocation",
    /* The compiler notes a workgroup's size in this way, too; modules are SPIR-V 1.5, which knows no other for
       constants. */
    "UNASSIGNED-BestPractices-SpirvDeprecated_WorkgroupSize",
};

static VKAPI_ATTR VkBool32 VKAPI_CALL note_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  (void)severity;
  (void)types;
  VulkanMessages *messages = user;
  const char *id = data->pMessageIdName ? data->pMessageIdName : "";
  for (size_t i = 0; i < sizeof not_about_us / sizeof *not_about_us; i++)
    if (strcmp(id, not_about_us[i]) == 0) return VK_FALSE;
  if (messages->count++ == 0)
    snprintf(messages->first, sizeof messages->first, "%s", data->pMessage ? data->pMessage : id);
  return VK_FALSE;
}

/* Messages of the loader itself (type "general") are not asked for: they are about how drivers are installed. */
VkDebugUtilsMessengerCreateInfoEXT vulkan_messenger_info(VulkanMessages *messages) {
  return (VkDebugUtilsMessengerCreateInfoEXT){
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = note_message,
      .pUserData = messages,
  };
}
