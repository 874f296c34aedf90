/* libcuda.so.1 without a device: memory is the host's, kernels run on the host. What a test sets and reads of it lies
 * in the exported struct emulated_driver. */
#ifndef DFLASH_CUDA_EMULATED_DRIVER_H
#define DFLASH_CUDA_EMULATED_DRIVER_H

#include <stdint.h>

typedef struct EmulatedDriver {
  uint64_t fail_at;    /* the call of that number fails, counted from 1; 0: none */
  int32_t fail_with;   /* with this result; one of a lost device is every later call's, too */
  uint64_t calls;      /* that can fail, so far */
  int64_t devices;     /* 1 at first */
  int64_t memory_left; /* bytes of device memory */
  int32_t compute_major;
  int32_t backwards;     /* threads run in the opposite order; 1 at first where DFLASH_EMULATED_BACKWARDS is set */
  int32_t fast;          /* the device is one for the fast path; 1 at first where DFLASH_EMULATED_FAST is set */
  int32_t skips_kernels; /* they do nothing */
  int32_t version;       /* of the driver, 13000 at first */
  uint64_t crash_at;     /* the kernel of that number, counted from 1, ends with an illegal address; 0: none */
  uint64_t kernels;      /* run so far */

  /* what is open now */
  int64_t allocations, pinned, contexts, pushed, modules, streams, events, graphs, execs;
  uint64_t allocations_made; /* so far */
} EmulatedDriver;

#endif
