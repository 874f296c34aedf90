/* Finding a device by its id. */
#ifndef DFLASH_CUDA_DEVICES_H
#define DFLASH_CUDA_DEVICES_H

#include "device.h"

/* Fills the device's number and traits; its driver is open. */
DflashStatus cuda_devices_find(CudaDevice *device, const char *id, DflashError *error);

#endif
