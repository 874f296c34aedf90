/* Tensors as the caller hands them over: checks, and decoding of pieces of rows. */
#ifndef DFLASH_BLAS_SOURCE_H
#define DFLASH_BLAS_SOURCE_H

#include <stdbool.h>

#include "dflash/backend.h"

enum { Q4_RUNGS = 32 };

float dflash_source_f16(uint16_t bits);

/* Is it [rows, cols] (leading dimensions folded into rows) in a storage known here, with all its bytes?
 * vector: it must be F32. */
DflashStatus dflash_source_check(const DflashTensor *tensor, const char *name, int64_t layer, int64_t rows,
                                 int64_t cols, int vector, DflashError *error);

/* The pointers into a q8_2f or q4tp tensor of rows x cols. */
typedef struct DflashSourceQ8 {
  const int8_t *values;
  const unsigned char *row_scales, *columns; /* f16, at any address */
} DflashSourceQ8;

typedef struct DflashSourceQ4 {
  const unsigned char *nibbles, *ladders, *codes;
  int64_t groups, code_bytes; /* of a row */
} DflashSourceQ4;

DflashSourceQ8 dflash_source_q8(const DflashTensor *tensor, int64_t rows, int64_t cols);
DflashSourceQ4 dflash_source_q4(const DflashTensor *tensor, int64_t rows, int64_t cols);

float dflash_source_f16_at(const unsigned char *data, int64_t index);
/* The rungs of a q4tp row's ladder, and which of them scales a group of 32 columns. */
void dflash_source_q4_rungs(const DflashSourceQ4 *source, int64_t row, float rungs[Q4_RUNGS]);
int dflash_source_q4_code(const DflashSourceQ4 *source, int64_t row, int64_t group);

/* Values of columns begin .. begin + count of a row, each rounded to f32 once. begin is a multiple of 32;
 * rungs are that row's (q4tp only, else not read). */
void dflash_source_values(const DflashTensor *tensor, int64_t rows, int64_t cols, int64_t row, int64_t begin,
                          int64_t count, const float rungs[Q4_RUNGS], float *out);

#endif
