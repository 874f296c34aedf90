/* The kernels by their names. */
#ifndef DFLASH_CUDA_EMULATED_KERNELS_H
#define DFLASH_CUDA_EMULATED_KERNELS_H

#include <cstddef>

struct EmulatedKernel {
  const char *name;
  size_t bytes;                        /* of its arguments */
  void (*call)(const void *arguments); /* one thread of it */
  bool whole;                          /* or all of them at once */
};
extern const EmulatedKernel emulated_kernels[]; /* ends with a NULL name */

#endif
