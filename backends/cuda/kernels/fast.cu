/* The fast path: one kernel for a whole block of the published geometry, and the one that packs its weights. */
#include "fast/pack.cuh"

#define FAST_PARTS 3
#define FAST_X_ROWS FAST_ROWS
#define FAST_KERNEL dflash_block
#define FAST_MULTIPLY dflash_fast_multiply
#include "fast/kernel.cuh"
#include "fast/measure.cuh"
