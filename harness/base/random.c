#include "base/random.h"

#include <string.h>

/* Philox 4x32-10. The mapping below is part of the format of every drawn golden and must not change:
 * key     = { low, high word of seed }
 * counter = { low, high word of block, low, high word of stream } */
enum { ROUNDS = 10 };

static void philox_round(uint32_t c[4], const uint32_t key[2]) {
  uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];
  uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ key[1],
                      (uint32_t)a};
  memcpy(c, next, sizeof next);
}

void dflash_random_block(DflashRandom random, uint64_t block, uint32_t out[4]) {
  uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)random.stream, (uint32_t)(random.stream >> 32)};
  uint32_t key[2] = {(uint32_t)random.seed, (uint32_t)(random.seed >> 32)};
  for (int round = 0; round < ROUNDS; round++) {
    philox_round(c, key);
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  memcpy(out, c, sizeof c);
}

/* FNV-1a, 64 bits, then the finaliser of SplitMix64: names that differ in their last letter get streams that differ
 * in every bit. */
DflashRandom dflash_random_stream(uint64_t seed, const char *name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) h = (h ^ *c) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return (DflashRandom){.seed = seed, .stream = h ^ (h >> 31)};
}

uint32_t dflash_random_u32(DflashRandom random, uint64_t index) {
  uint32_t words[4];
  dflash_random_block(random, index / 4, words);
  return words[index % 4];
}

void dflash_random_fill(DflashRandom random, uint64_t begin, size_t count, uint32_t *out) {
  while (count > 0) {
    uint32_t words[4];
    dflash_random_block(random, begin / 4, words);
    size_t skip = begin % 4, take = 4 - skip < count ? 4 - skip : count;
    memcpy(out, words + skip, take * sizeof *out);
    begin += take;
    out += take;
    count -= take;
  }
}

uint32_t dflash_random_below(DflashRandom random, uint64_t index, uint32_t bound) {
  return (uint32_t)(((uint64_t)dflash_random_u32(random, index) * bound) >> 32);
}
