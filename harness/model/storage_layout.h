/* Where the parts of a packed tensor lie. Private to this module. Reads go through memcpy: parts follow one
 * another without padding, so a scale may stand at an odd address. */
#ifndef DFLASH_MODEL_STORAGE_LAYOUT_H
#define DFLASH_MODEL_STORAGE_LAYOUT_H

#include <stdint.h>
#include <string.h>

#include "model/storage.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored tensors are little-endian and read in place"
#endif

enum { DFLASH_Q4TP_GROUP = 32, DFLASH_Q4TP_RUNGS = 32 };

static inline uint16_t dflash_load_u16(const unsigned char *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return bits;
}

static inline float dflash_float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float dflash_f16_decode(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return dflash_float_from_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return dflash_float_from_bits(sign | ((magnitude << 13) + (112u << 23)));
  float denormal = (float)magnitude * 0x1p-24f;
  return sign ? -denormal : denormal;
}

static inline float dflash_bf16_decode(uint16_t bits) { return dflash_float_from_bits((uint32_t)bits << 16); }

/* 4-bit codes of 32 columns in 16 bytes, then a ladder a row, then a 5-bit rung number a group. */
typedef struct DflashQ4tp {
  const unsigned char *nibbles; /* [rows, groups, 16] */
  const unsigned char *ladders; /* [rows, 2] of f16: lo, step */
  const unsigned char *codes;   /* [rows, code_bytes] */
  int64_t rows, groups, code_bytes;
} DflashQ4tp;

static inline DflashQ4tp dflash_q4tp_view(const void *data, int64_t rows, int64_t cols) {
  int64_t groups = cols / DFLASH_Q4TP_GROUP;
  const unsigned char *nibbles = data;
  const unsigned char *ladders = nibbles + rows * groups * 16;
  return (DflashQ4tp){nibbles, ladders, ladders + rows * 4, rows, groups, (groups * 5 + 7) / 8};
}

/* The rung number of a group. A code that ends within its byte must not touch the next one: it may be the row's
 * (and the tensor's) last. */
static inline int dflash_q4tp_code(const DflashQ4tp *view, int64_t row, int64_t group) {
  const unsigned char *at = view->codes + row * view->code_bytes + group * 5 / 8;
  int shift = (int)(group * 5 % 8);
  int bits = at[0];
  if (shift > 3) bits |= at[1] << 8;
  return bits >> shift & 31;
}

static inline void dflash_q4tp_row_ladder(const DflashQ4tp *view, int64_t row, float rungs[DFLASH_Q4TP_RUNGS]) {
  const unsigned char *at = view->ladders + row * 4;
  dflash_q4tp_ladder(dflash_load_u16(at), dflash_load_u16(at + 2), rungs);
}

/* int8 codes, then an f16 scale a row, then an f16 field a column. */
typedef struct DflashQ8 {
  const int8_t *codes;         /* [rows, cols] */
  const unsigned char *rows;   /* [rows] of f16 */
  const unsigned char *fields; /* [cols] of f16 */
} DflashQ8;

static inline DflashQ8 dflash_q8_view(const void *data, int64_t rows, int64_t cols) {
  const unsigned char *scales = (const unsigned char *)data + rows * cols;
  return (DflashQ8){data, scales, scales + rows * 2};
}

#endif
