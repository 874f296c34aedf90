/* Encoders of the packed storages. Private to this module: values are finite, sizes fit, `out` is large enough. */
#ifndef DFLASH_MODEL_STORAGE_ENCODE_H
#define DFLASH_MODEL_STORAGE_ENCODE_H

#include "model/storage_layout.h"

DflashStatus dflash_encode_q4tp(const float *values, int64_t rows, int64_t cols, unsigned char *out,
                                DflashError *error);
DflashStatus dflash_encode_q8(const float *values, int64_t rows, int64_t cols, unsigned char *out, DflashError *error);

static inline void dflash_store_u16(unsigned char *at, uint16_t bits) { memcpy(at, &bits, sizeof bits); }

/* The smallest f16 that is not below a value >= 0; infinity past 65504. */
static inline uint16_t dflash_f16_round_up(double value) {
  uint16_t bits = dflash_f16_round((float)value);
  return (double)dflash_f16_decode(bits) < value ? (uint16_t)(bits + 1) : bits;
}

#endif
