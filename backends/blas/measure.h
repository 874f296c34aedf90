/* What this host can do, and what the vendor's library does. */
#ifndef DFLASH_BLAS_MEASURE_H
#define DFLASH_BLAS_MEASURE_H

#include "model.h"

DflashStatus dflash_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);
DflashStatus dflash_evict_caches(DflashModel *model, DflashError *error);
DflashStatus dflash_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error);
DflashStatus dflash_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error);
DflashStatus dflash_library_time(DflashModel *model, int32_t stage, int64_t layer, int64_t rows, uint64_t *ns,
                                 DflashError *error);
DflashStatus dflash_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error);

#endif
