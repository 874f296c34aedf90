#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, BAND = 256 /* elements at each end; keeps data aligned */ };

bool dflash_mul_i64(int64_t a, int64_t b, int64_t *out) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool dflash_add_i64(int64_t a, int64_t b, int64_t *out) {
  return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

void *dflash_alloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  if (bytes > PTRDIFF_MAX - ALIGNMENT) return NULL;
  bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* at least one byte, so that NULL always means failure */
  void *memory = aligned_alloc(ALIGNMENT, bytes);
  if (memory) memset(memory, 0, bytes);
  return memory;
}

/* Band words are NaN too, and differ from place to place, so that a shifted copy of them shows. */
static uint32_t band_bits(size_t index) { return 0x7fdb0000u + (uint32_t)index; }

/* Through memcpy: a backend stores floats here. */
static void store_bits(float *at, uint32_t bits) { memcpy(at, &bits, sizeof bits); }

static uint32_t load_bits(const float *at) {
  uint32_t bits;
  memcpy(&bits, at, sizeof bits);
  return bits;
}

bool dflash_guarded_open(DflashGuarded *guarded, size_t count) {
  *guarded = (DflashGuarded){0};
  size_t total;
  if (__builtin_add_overflow(count, (size_t)2 * BAND, &total)) return false;
  float *base = dflash_alloc(total, sizeof(float));
  if (!base) return false;
  *guarded = (DflashGuarded){.data = base + BAND, .count = count, .base = base};
  dflash_guarded_poison(guarded);
  return true;
}

void dflash_guarded_poison(DflashGuarded *guarded) {
  if (!guarded->base) return;
  for (size_t i = 0; i < guarded->count; i++) store_bits(guarded->data + i, DFLASH_POISON_BITS);
  float *before = guarded->data - BAND, *after = guarded->data + guarded->count;
  for (size_t i = 0; i < BAND; i++) {
    store_bits(before + i, band_bits(i));
    store_bits(after + i, band_bits(BAND + i));
  }
}

int64_t dflash_guarded_damage(const DflashGuarded *guarded) {
  if (!guarded->base) return 0;
  const float *before = guarded->data - BAND, *after = guarded->data + guarded->count;
  for (size_t i = 0; i < BAND; i++) {
    if (load_bits(after + i) != band_bits(BAND + i)) return (int64_t)i + 1;
    if (load_bits(before + BAND - 1 - i) != band_bits(BAND - 1 - i)) return -(int64_t)i - 1;
  }
  return 0;
}

size_t dflash_guarded_unwritten(const DflashGuarded *guarded) {
  size_t unwritten = 0;
  for (size_t i = 0; i < guarded->count; i++) unwritten += load_bits(guarded->data + i) == DFLASH_POISON_BITS;
  return unwritten;
}

void dflash_guarded_close(DflashGuarded *guarded) {
  free(guarded->base);
  *guarded = (DflashGuarded){0};
}
