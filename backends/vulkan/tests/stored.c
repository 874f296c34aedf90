#include "stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "model/storage.h"
#include "pack.h"

enum { GROUP = 32, CODE_BITS = 5 };

static int64_t rows_of(const Stored *s) { return s->tensor.shape[0]; }
static int64_t cols_of(const Stored *s) { return s->tensor.shape[1]; }

static void put16(Stored *s, int64_t at, uint16_t bits) { memcpy(s->bytes + at, &bits, sizeof bits); }

static uint16_t get16(const Stored *s, int64_t at) {
  uint16_t bits;
  memcpy(&bits, s->bytes + at, sizeof bits);
  return bits;
}

/* Where the scales of rows stand: behind the elements; q8_2f's columns are behind them, q4tp's codes. */
static int64_t scales_at(const Stored *s) {
  return s->tensor.storage == DFLASH_STORAGE_Q4TP ? rows_of(s) * cols_of(s) / 2 : rows_of(s) * cols_of(s);
}

static int64_t code_bit(const Stored *s, int64_t row, int64_t col) {
  const int64_t codes = scales_at(s) + 4 * rows_of(s), bytes = (cols_of(s) / GROUP * CODE_BITS + 7) / 8;
  return (codes + row * bytes) * 8 + col / GROUP * CODE_BITS;
}

/* The lowest 8, 4 or 16 bits of an element. */
static void set_bits(Stored *s, int64_t row, int64_t col, uint32_t bits) {
  const int64_t i = row * cols_of(s) + col;
  unsigned char *byte = s->bytes + i / 2;
  switch (s->tensor.storage) {
  case DFLASH_STORAGE_Q4TP:
    *byte = (unsigned char)(i % 2 ? (*byte & 0x0f) | (bits & 15) << 4 : (*byte & 0xf0) | (bits & 15));
    break;
  case DFLASH_STORAGE_Q8_2F:
    s->bytes[i] = (unsigned char)bits;
    break;
  default:
    put16(s, 2 * i, (uint16_t)bits);
  }
}

void stored_set(Stored *s, int64_t row, int64_t col, int value) {
  if (s->tensor.storage == DFLASH_STORAGE_Q4TP) value += 8;
  set_bits(s, row, col, s->tensor.storage == DFLASH_STORAGE_F16 ? dflash_f16_round((float)value) : (uint32_t)value);
}

float stored_column(const Stored *s, int64_t col) {
  return s->tensor.storage == DFLASH_STORAGE_Q8_2F ? dflash_f16_value(get16(s, scales_at(s) + 2 * rows_of(s) + 2 * col))
                                                   : 1;
}

int stored_nibble(const Stored *s, int64_t row, int64_t col) {
  const int64_t i = row * cols_of(s) + col;
  return (s->bytes[i / 2] >> i % 2 * 4 & 15) - 8;
}

float stored_rung(const Stored *s, int64_t row, int64_t col) {
  const int64_t at = scales_at(s) + 4 * row, first = code_bit(s, row, col);
  volatile float rung = (float)exp2((double)dflash_f16_value(get16(s, at)));
  const float step = (float)exp2((double)dflash_f16_value(get16(s, at + 2)));
  int code = 0;
  for (int i = 0; i < CODE_BITS; i++) code |= (s->bytes[(first + i) / 8] >> (first + i) % 8 & 1) << i;
  for (int c = 0; c < code; c++) rung *= step;
  return rung;
}

static void draw_ladder(Stored *s, DflashRandom random, int64_t row) {
  const int64_t at = scales_at(s) + 4 * row;
  put16(s, at, dflash_f16_round(-6 + test_draw(random, (uint64_t)(2 * row))));
  put16(s, at + 2, dflash_f16_round(0.15f + 0.1f * test_draw(random, (uint64_t)(2 * row + 1))));
  for (int64_t col = 0; col < cols_of(s); col += GROUP)
    for (int64_t i = 0, bit = code_bit(s, row, col); i < CODE_BITS; i++, bit++)
      s->bytes[bit / 8] |=
          (unsigned char)((dflash_random_u32(random, (uint64_t)(row * cols_of(s) + col) << 8) >> i & 1) << bit % 8);
}

/* Rows of q8_2f have 0.5, columns 2: as good as 1 each. */
static void draw_scales(Stored *s, DflashRandom random, bool integers) {
  const int64_t at = scales_at(s), rows = rows_of(s);
  if (s->tensor.storage == DFLASH_STORAGE_Q4TP)
    for (int64_t row = 0; row < rows && !integers; row++) draw_ladder(s, random, row);
  if (s->tensor.storage != DFLASH_STORAGE_Q8_2F) return;
  for (int64_t i = 0; i < rows + cols_of(s); i++) {
    const float drawn = test_draw(random, (uint64_t)i);
    const float scale = i < rows ? (integers ? 0.5f : 0x1p-8f * drawn) : (integers ? 2 : 1 + 0.5f * drawn);
    put16(s, at + 2 * i, dflash_f16_round(scale));
  }
}

Stored stored_draw(DflashRandom random, int32_t storage, int64_t rows, int64_t cols, bool integers) {
  const DflashRandom scales = {random.seed, random.stream + 1};
  const uint64_t bytes = vulkan_stored_bytes(storage, rows, cols);
  Stored s = {.tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}, .bytes = bytes}};
  s.bytes = test_memory((size_t)bytes, 1);
  s.tensor.data = s.bytes;
  for (int64_t i = 0; i < rows * cols; i++) {
    const uint32_t word = dflash_random_u32(random, (uint64_t)i);
    const bool half = storage == DFLASH_STORAGE_F16;
    if (integers)
      stored_set(&s, i / cols, i % cols, (int)(word % 15) - 7);
    else
      set_bits(&s, i / cols, i % cols, half ? dflash_f16_round(test_draw(random, (uint64_t)i)) : word);
  }
  draw_scales(&s, scales, integers);
  return s;
}

void stored_close(Stored *stored) { free(stored->bytes); }
