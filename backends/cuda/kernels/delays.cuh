/* Waiting for the threads of a block. Built with DFLASH_DELAYS=SEED, as tests on a device are, some warps come late,
 * each time others: what is right only because nobody is late shows. */
#ifndef DFLASH_CUDA_DELAYS_CUH
#define DFLASH_CUDA_DELAYS_CUH

#include <stdint.h>

/* By a thread. A quarter of the warps loses up to 8191 cycles, some microseconds. */
__device__ __forceinline__ void delay_thread() {
#if defined(DFLASH_DELAYS) && defined(__CUDACC__)
  const uint32_t begin = (uint32_t)clock64();
  uint32_t draw = begin + DFLASH_DELAYS * 0x9e3779b9u + (blockIdx.x + blockIdx.y * 977u) * 0x85ebca6bu;
  draw = (draw + threadIdx.x / 32 * 0xc2b2ae35u) * 0x2c1b3c6du;
  draw = (draw ^ draw >> 15) * 0x297a2d39u;
  if (draw >> 30 == 0)
    while ((uint32_t)clock64() - begin < (draw >> 17 & 8191u)) {
    }
#endif
}

/* The same by a whole warp, which stays together. */
__device__ __forceinline__ void delay() {
#ifdef DFLASH_DELAYS
  delay_thread();
  __syncwarp();
#endif
}

/* Late before it, a warp still reads what others would overwrite; late behind it, it has yet to write what they read.
 */
__device__ __forceinline__ void sync_block() {
  delay();
  __syncthreads();
  delay();
}

#endif
