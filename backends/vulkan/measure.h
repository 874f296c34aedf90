#ifndef DFLASH_VULKAN_MEASURE_H
#define DFLASH_VULKAN_MEASURE_H

#include "model.h"

/* clock.c: nanoseconds from one time stamp to the next that can differ, at least 1; measured when first asked for.
 * DFLASH_UNSUPPORTED without stamps. */
DflashStatus vulkan_measure_step(DflashModel *model, uint64_t *ns, DflashError *error);

/* The interface's optional measurements. */
DflashStatus vulkan_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error);
DflashStatus vulkan_evict_caches(DflashModel *model, DflashError *error);
DflashStatus vulkan_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error);

#endif
