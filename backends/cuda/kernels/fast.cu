/* The fast path: one kernel for a whole block of the published geometry, and the one that packs its weights. */
#include "fast/pack.cuh"

#define FAST_PARTS 3
#define FAST_KERNEL dflash_block
#include "fast/kernel.cuh"
