/* The state of a device by NVIDIA's management library, whose functions are found by name: what is missing there leaves
 * out what it would tell. */
#ifndef DFLASH_CUDA_NVML_H
#define DFLASH_CUDA_NVML_H

#include <stdbool.h>

#include "dflash/backend.h"

typedef struct CudaNvml {
  void *library;
  void *device; /* NULL: not open */
} CudaNvml;

/* The device at a PCI address. Without the library, or a device that it knows, nothing is open. */
void cuda_nvml_open(CudaNvml *nvml, const char *pci);
void cuda_nvml_close(CudaNvml *nvml); /* zeroed or closed: fine */
/* Sets what can be read now, with its bits of state->valid. */
void cuda_nvml_read(const CudaNvml *nvml, DflashDeviceState *state);

#endif
