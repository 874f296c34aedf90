/* The fast path of the profile f16 for blocks of more rows. */
#define FAST_PARTS 1
#define FAST_X_ROWS FAST_TALL_ROWS
#define FAST_KERNEL dflash_block_f16_tall
#define FAST_MULTIPLY dflash_fast_multiply_f16_tall
#include "fast/kernel.cuh"
#include "fast/measure.cuh"
