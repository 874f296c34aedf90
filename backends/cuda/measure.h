/* What a device can do, measured through its stream, and its state. */
#ifndef DFLASH_CUDA_MEASURE_H
#define DFLASH_CUDA_MEASURE_H

#include "model.h"

DflashStatus cuda_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error);
DflashStatus cuda_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error);
DflashStatus cuda_evict_caches(DflashModel *model, DflashError *error);
DflashStatus cuda_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error);
/* The coarser step of the clocks that give a block's time and its stamps, at least 1; measured once. */
DflashStatus cuda_measure_step(DflashModel *model, uint64_t *ns, DflashError *error);

#endif
