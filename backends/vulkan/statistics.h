/* What the driver says of a compiled kernel, where the device was opened with statistics. */
#ifndef DFLASH_VULKAN_STATISTICS_H
#define DFLASH_VULKAN_STATISTICS_H

#include "kernel.h"

typedef struct VulkanStatistics {
  uint64_t registers;     /* of a thread; 0: the driver does not tell */
  uint64_t spilled_bytes; /* to memory, as the driver counts them: of a thread, or of a subgroup */
} VulkanStatistics;

/* Of several executables of a pipeline (widths of subgroups, say) the largest number counts. */
DflashStatus vulkan_statistics_read(VulkanDevice *device, const VulkanPipeline *pipeline, VulkanStatistics *statistics,
                                    DflashError *error);
/* Appends ", 96 registers, 128 B spilled" to a text in a buffer of `size` bytes, as far as it has room. */
void vulkan_statistics_append(const VulkanStatistics *statistics, char *text, size_t size);

#endif
