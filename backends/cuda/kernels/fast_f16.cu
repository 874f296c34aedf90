/* The fast path of the profile f16. */
#define FAST_PARTS 1
#define FAST_X_ROWS FAST_ROWS
#define FAST_KERNEL dflash_block_f16
#define FAST_MULTIPLY dflash_fast_multiply_f16
#include "fast/kernel.cuh"
#include "fast/measure.cuh"
