#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static const VulkanPipeline *find(const VulkanPipelines *pipelines, int kernel, const uint32_t *constants,
                                  uint32_t count) {
  for (uint32_t i = 0; i < pipelines->count; i++) {
    const VulkanPipeline *p = pipelines->made[i];
    if (p->kernel != kernel || p->constant_count != count) continue;
    if (count == 0 || memcmp(p->constants, constants, count * sizeof *constants) == 0) return p;
  }
  return NULL;
}

static DflashStatus make_set_layout(VulkanDevice *device, uint32_t bindings, VkDescriptorSetLayout *layout,
                                    DflashError *error) {
  VkDescriptorSetLayoutBinding at[VULKAN_MAX_BINDINGS];
  for (uint32_t i = 0; i < bindings; i++)
    at[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  const VkDescriptorSetLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = bindings, .pBindings = at};
  VkDescriptorSetLayout made = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreateDescriptorSetLayout, device->device, &info, NULL, &made);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a descriptor set layout");
  *layout = made;
  return DFLASH_OK;
}

static DflashStatus make_pipeline_layout(VulkanDevice *device, VkDescriptorSetLayout set, VkPipelineLayout *layout,
                                         DflashError *error) {
  const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = VULKAN_PUSH_BYTES};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .setLayoutCount = 1,
                                           .pSetLayouts = &set,
                                           .pushConstantRangeCount = 1,
                                           .pPushConstantRanges = &push};
  VkPipelineLayout made = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreatePipelineLayout, device->device, &info, NULL, &made);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a pipeline layout");
  *layout = made;
  return DFLASH_OK;
}

static DflashStatus make_cache(VulkanDevice *device, VkPipelineCache *cache, DflashError *error) {
  const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache made = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreatePipelineCache, device->device, &info, NULL, &made);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a pipeline cache");
  *cache = made;
  return DFLASH_OK;
}

/* What pipelines share: the cache, and the layouts of this number of bindings. */
static DflashStatus make_shared(VulkanDevice *device, VulkanPipelines *pipelines, uint32_t bindings,
                                DflashError *error) {
  VkDescriptorSetLayout *set = &pipelines->sets[bindings];
  VkPipelineLayout *layout = &pipelines->layouts[bindings];
  DflashStatus status = DFLASH_OK;
  if (!pipelines->cache) status = make_cache(device, &pipelines->cache, error);
  if (!status && !*set) status = make_set_layout(device, bindings, set, error);
  if (!status && !*layout) status = make_pipeline_layout(device, *set, layout, error);
  return status;
}

static VkResult create_module(VulkanDevice *device, const VulkanModule *module, VkShaderModule *made) {
  const VkShaderModuleCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = module->bytes, .pCode = module->words};
  return VULKAN_CALL(&device->api, vkCreateShaderModule, device->device, &info, NULL, made);
}

static VkResult create_pipeline(VulkanDevice *device, VkPipelineCache cache, VkShaderModule module,
                                VulkanPipeline *pipeline) {
  VkSpecializationMapEntry entries[VULKAN_MAX_CONSTANTS];
  for (uint32_t i = 0; i < pipeline->constant_count; i++)
    entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
  const VkSpecializationInfo constants = {.mapEntryCount = pipeline->constant_count,
                                          .pMapEntries = entries,
                                          .dataSize = pipeline->constant_count * sizeof(uint32_t),
                                          .pData = pipeline->constants};
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .flags =
                                                device->statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main",
                                                      .pSpecializationInfo = &constants},
                                            .layout = pipeline->layout};
  return VULKAN_CALL(&device->api, vkCreateComputePipelines, device->device, cache, 1, &info, NULL,
                     &pipeline->pipeline);
}

/* With a module that lives only here. */
static DflashStatus make_pipeline(VulkanDevice *device, VkPipelineCache cache, VulkanPipeline *pipeline,
                                  DflashError *error) {
  const VulkanModule *module = &vulkan_modules[pipeline->kernel];
  if (!module->words) return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: kernel %s has no code", module->name);
  VkShaderModule made = VK_NULL_HANDLE;
  VkResult result = create_module(device, module, &made);
  if (result == VK_SUCCESS) {
    result = create_pipeline(device, cache, made, pipeline);
    device->api.vkDestroyShaderModule(device->device, made, NULL);
  }
  if (result == VK_SUCCESS) return DFLASH_OK;
  char what[64];
  snprintf(what, sizeof what, "making kernel %s", module->name);
  return vulkan_device_result(device, result, error, what);
}

static bool reserve(VulkanPipelines *pipelines) {
  if (pipelines->count < pipelines->capacity) return true;
  const uint32_t capacity = pipelines->capacity ? 2 * pipelines->capacity : 16;
  VulkanPipeline **made = realloc(pipelines->made, capacity * sizeof(VulkanPipeline *));
  if (!made) return false;
  pipelines->made = made;
  pipelines->capacity = capacity;
  return true;
}

static DflashStatus add(VulkanDevice *device, VulkanPipelines *pipelines, const VulkanPipeline *wanted,
                        const VulkanPipeline **pipeline, DflashError *error) {
  VulkanPipeline *p = reserve(pipelines) ? dflash_alloc(1, sizeof *p) : NULL;
  if (!p) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for a pipeline");
  *p = *wanted;
  const DflashStatus status = make_pipeline(device, pipelines->cache, p, error);
  if (status) {
    free(p);
    return status;
  }
  pipelines->made[pipelines->count++] = p;
  *pipeline = p;
  return DFLASH_OK;
}

DflashStatus vulkan_pipeline_get(VulkanDevice *device, VulkanPipelines *pipelines, int kernel,
                                 const uint32_t *constants, uint32_t count, const VulkanPipeline **pipeline,
                                 DflashError *error) {
  const VulkanKernelInfo *info = vulkan_kernel_info(kernel);
  if (!info || count > VULKAN_MAX_CONSTANTS)
    return dflash_error_set(error, DFLASH_INTERNAL,
                            "vulkan: kernel %d with %u constants: kernels are 0 to %d, constants up to %d", kernel,
                            count, VULKAN_KERNEL_COUNT - 1, VULKAN_MAX_CONSTANTS);
  *pipeline = find(pipelines, kernel, constants, count);
  if (*pipeline) return DFLASH_OK;
  const DflashStatus status = make_shared(device, pipelines, info->bindings, error);
  if (status) return status;
  VulkanPipeline wanted = {.kernel = kernel,
                           .constant_count = count,
                           .layout = pipelines->layouts[info->bindings],
                           .set = pipelines->sets[info->bindings]};
  if (count) memcpy(wanted.constants, constants, count * sizeof *constants);
  return add(device, pipelines, &wanted, pipeline, error);
}

void vulkan_pipelines_close(VulkanDevice *device, VulkanPipelines *pipelines) {
  const VulkanApi *api = &device->api;
  for (uint32_t i = 0; i < pipelines->count; i++) {
    api->vkDestroyPipeline(device->device, pipelines->made[i]->pipeline, NULL);
    free(pipelines->made[i]);
  }
  for (uint32_t i = 0; i <= VULKAN_MAX_BINDINGS; i++) {
    if (pipelines->layouts[i]) api->vkDestroyPipelineLayout(device->device, pipelines->layouts[i], NULL);
    if (pipelines->sets[i]) api->vkDestroyDescriptorSetLayout(device->device, pipelines->sets[i], NULL);
  }
  if (pipelines->cache) api->vkDestroyPipelineCache(device->device, pipelines->cache, NULL);
  free(pipelines->made);
  *pipelines = (VulkanPipelines){0};
}
