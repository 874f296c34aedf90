#include <string.h>

#include "model/sidecar.h"

/* The finaliser of murmur3, 64 bits. */
static inline uint64_t fmix64(uint64_t word) {
  word ^= word >> 33;
  word *= UINT64_C(0xff51afd7ed558ccd);
  word ^= word >> 33;
  word *= UINT64_C(0xc4ceb9fe1a85ec53);
  return word ^ (word >> 33);
}

static inline uint64_t word_term(uint64_t word, uint64_t index) {
  return fmix64(word) ^ (index * UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t dflash_hash64(const void *data, uint64_t bytes) {
  const unsigned char *at = data;
  uint64_t words = bytes / 8, sum = 0, word = 0;
  for (uint64_t i = 0; i < words; i++) {
    memcpy(&word, at + 8 * i, 8);
    sum ^= word_term(word, i);
  }
  if (bytes % 8 != 0) {
    word = 0;
    memcpy(&word, at + 8 * words, bytes % 8);
    sum ^= word_term(word, words);
  }
  return fmix64(sum ^ bytes);
}
