/* What this backend and a device can take. */
#ifndef DFLASH_VULKAN_LIMITS_H
#define DFLASH_VULKAN_LIMITS_H

#include "model.h"

/* What can be said without a device: the description, its options, the profile, sizes. Fills *options. */
DflashStatus vulkan_check_desc(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error);
/* Bindings, dispatches and memory of a device. Weights that are not known are taken as a published sidecar's. */
DflashStatus vulkan_check_device(const DflashModelDesc *desc, const VulkanOptions *options, const VulkanTraits *traits,
                                 DflashError *error);

#endif
