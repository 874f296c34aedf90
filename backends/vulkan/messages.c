#include <stdio.h>
#include <string.h>

#include "instance.h"

/* Advice of best practices that is not about this backend, by its name; older layers have "UNASSIGNED-" before it.
 * Nothing else is left out. */
static const char *const not_about_us[] = {
    /* The extensions of the validation itself are for debugging, which is what is being done; new layers have another
       one for the choice of checks, and take this one still. */
    "BestPractices-vkCreateInstance-specialuse-extension-debugging",
    "BestPractices-specialuse-extension",
    "BestPractices-deprecated-extension",
    /* The few command buffers are recorded again one by one, seldom, and never while a block is timed. */
    "BestPractices-vkCreateCommandPool-command-buffer-reset",
    /* Weights lie in large blocks. A sequence has a few buffers of its own, which are small when its model is. */
    "BestPractices-vkAllocateMemory-small-allocation",
    "BestPractices-vkBindMemory-small-dedicated-allocation",
    "BestPractices-vkBindBufferMemory-small-dedicated-allocation",
    /* The compiler notes a workgroup's size in this way, too; modules are SPIR-V 1.5, which knows no other for
       constants. */
    "BestPractices-SpirvDeprecated_WorkgroupSize",
};

static bool is_about_us(const char *id) {
  static const char older[] = "UNASSIGNED-";
  if (strncmp(id, older, sizeof older - 1) == 0) id += sizeof older - 1;
  for (size_t i = 0; i < sizeof not_about_us / sizeof *not_about_us; i++)
    if (strcmp(id, not_about_us[i]) == 0) return false;
  return true;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL note_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  (void)severity;
  (void)types;
  VulkanMessages *messages = user;
  const char *id = data->pMessageIdName ? data->pMessageIdName : "";
  if (is_about_us(id) && messages->count++ == 0)
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
