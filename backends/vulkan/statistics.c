#include "statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char what[] = "asking for a kernel's statistics";

/* The names that drivers give: NVIDIA's, RADV's, ANV's. */
static const struct {
  const char *name;
  bool spilled; /* bytes; else registers */
} names[] = {{"Register Count", false},
             {"VGPRs", false},
             {"Local Memory Size", true},
             {"Scratch size", true},
             {"Scratch Memory Size", true}};

static uint64_t value_of(const VkPipelineExecutableStatisticKHR *statistic) {
  switch (statistic->format) {
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
    return statistic->value.u64;
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
    return statistic->value.i64 > 0 ? (uint64_t)statistic->value.i64 : 0;
  default:
    return 0;
  }
}

/* All of them are below 2^32. NVIDIA's driver 580 has something else in the upper half of its local memory. */
static void take(const VkPipelineExecutableStatisticKHR *statistic, VulkanStatistics *statistics) {
  const uint64_t value = value_of(statistic) & UINT32_MAX;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strncmp(statistic->name, names[i].name, sizeof statistic->name) != 0) continue;
    uint64_t *member = names[i].spilled ? &statistics->spilled_bytes : &statistics->registers;
    if (value > *member) *member = value;
  }
}

static DflashStatus read_executable(VulkanDevice *device, const VkPipelineExecutableInfoKHR *info,
                                    VulkanStatistics *statistics, DflashError *error) {
  VulkanApi *api = &device->api;
  uint32_t count = 0;
  VkResult result = VULKAN_CALL(api, vkGetPipelineExecutableStatisticsKHR, device->device, info, &count, NULL);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, what);
  VkPipelineExecutableStatisticKHR *list = calloc(count + 1, sizeof *list);
  if (!list) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for statistics");
  for (uint32_t i = 0; i < count; i++) list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
  result = VULKAN_CALL(api, vkGetPipelineExecutableStatisticsKHR, device->device, info, &count, list);
  for (uint32_t i = 0; result == VK_SUCCESS && i < count; i++) take(&list[i], statistics);
  free(list);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, what);
}

DflashStatus vulkan_statistics_read(VulkanDevice *device, const VulkanPipeline *pipeline, VulkanStatistics *statistics,
                                    DflashError *error) {
  const VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline->pipeline};
  uint32_t count = 0;
  *statistics = (VulkanStatistics){0};
  const VkResult result =
      VULKAN_CALL(&device->api, vkGetPipelineExecutablePropertiesKHR, device->device, &info, &count, NULL);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, what);
  DflashStatus status = DFLASH_OK;
  for (uint32_t i = 0; i < count && !status; i++) {
    const VkPipelineExecutableInfoKHR executable = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline->pipeline, .executableIndex = i};
    status = read_executable(device, &executable, statistics, error);
  }
  return status;
}

void vulkan_statistics_append(const VulkanStatistics *statistics, char *text, size_t size) {
  size_t used = strlen(text);
  if (statistics->registers > 0)
    snprintf(text + used, size - used, ", %llu registers", (unsigned long long)statistics->registers);
  used = strlen(text);
  if (statistics->spilled_bytes > 0)
    snprintf(text + used, size - used, ", %llu B spilled", (unsigned long long)statistics->spilled_bytes);
}
