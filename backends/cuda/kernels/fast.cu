/* The fast path: one kernel for a whole block of the published geometry, and the one that packs its weights. */
#include "fast/pack.cuh"

#include "fast/kernel.cuh"
