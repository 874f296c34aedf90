/* Kernels with a fault planted: option plant=NAME chooses one, plant=none is the backend as it is. On a device
 * plant=delays is no fault: kernels whose warps come late (kernels/delays.cuh). */
#ifndef DFLASH_CUDA_TESTS_PLANTED_H
#define DFLASH_CUDA_TESTS_PLANTED_H

#include "device.h"

/* An image whose kernels are found before the product's; made by the build from plants.cmake. A plant may have two. */
extern const CudaModule cuda_plants[]; /* ends with NULLs */

#endif
