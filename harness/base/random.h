/* Reproducible numbers: a counter-based integer generator (Philox 4x32, 10 rounds; Salmon et al.,
 * SC 2011). The same (seed, stream, index) gives the same bits on every machine, in any order,
 * from any thread. No floating point and no libm inside. */
#ifndef DFLASH_BASE_RANDOM_H
#define DFLASH_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct DflashRandom {
  uint64_t seed, stream;
} DflashRandom;

/* A stream named by text ("weights/fc.weight"): FNV-1a of the name, mixed. */
DflashRandom dflash_random_stream(uint64_t seed, const char *name);

/* Four words of counter `block`. */
void dflash_random_block(DflashRandom random, uint64_t block, uint32_t out[4]);

/* Word `index` (word index % 4 of block index / 4). */
uint32_t dflash_random_u32(DflashRandom random, uint64_t index);

/* Words begin .. begin + count into out. */
void dflash_random_fill(DflashRandom random, uint64_t begin, size_t count, uint32_t *out);

/* Uniform in [0, bound), bound >= 1, by multiplication and shift (bias below 2^-32). */
uint32_t dflash_random_below(DflashRandom random, uint64_t index, uint32_t bound);

#endif
