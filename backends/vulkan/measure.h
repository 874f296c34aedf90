#ifndef DFLASH_VULKAN_MEASURE_H
#define DFLASH_VULKAN_MEASURE_H

#include "model.h"

/* The interface's optional measurements. */
DflashStatus vulkan_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error);
DflashStatus vulkan_evict_caches(DflashModel *model, DflashError *error);
DflashStatus vulkan_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error);

#endif
