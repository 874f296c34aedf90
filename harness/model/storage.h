/* The five storages: sizes, exact decoding, encoding. Used by loaders and by the golden generator; a
 * backend decodes by its own code. */
#ifndef DFLASH_MODEL_STORAGE_H
#define DFLASH_MODEL_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include "dflash/status.h"
#include "dflash/tensor.h"

const char *dflash_storage_name(int32_t storage); /* "q4tp"; NULL when unknown */
int32_t dflash_storage_find(const char *name);    /* -1 when unknown */

/* Bytes of rows x cols (a vector is 1 x n; rank 3 folds its leading dimensions into rows). Fails on overflow
 * and on cols that the storage cannot take. */
DflashStatus dflash_storage_bytes(int32_t storage, int64_t rows, int64_t cols, uint64_t *bytes, DflashError *error);

float dflash_f16_value(uint16_t bits);
float dflash_bf16_value(uint16_t bits);
uint16_t dflash_f16_round(float value);  /* nearest even; overflow gives infinity */
uint16_t dflash_bf16_round(float value); /* nearest even */
float dflash_exp2_f32(float x);          /* correctly rounded for every finite f16 argument */

/* Rows and columns of a tensor seen as a matrix. */
int64_t dflash_tensor_rows(const DflashTensor *tensor);
int64_t dflash_tensor_cols(const DflashTensor *tensor);

/* Checks rank, shape, bytes and, in a pass over all data, that every value that enters arithmetic is finite:
 * elements of F32, F16, BF16; scales, lo, step and every rung of the others. */
DflashStatus dflash_tensor_check(const DflashTensor *tensor, const char *name, DflashError *error);

/* Exact values of row `row`, columns begin .. begin + count, as f64. */
void dflash_tensor_row(const DflashTensor *tensor, int64_t row, int64_t begin, int64_t count, double *out);
double dflash_tensor_at(const DflashTensor *tensor, int64_t row, int64_t col);

/* A q4tp row taken apart: nibble - 8 of every column, and the scale of every group of 32. */
void dflash_q4tp_row(const DflashTensor *tensor, int64_t row, int16_t *codes, float *scales);

/* A q4tp row's 32 rungs. */
void dflash_q4tp_ladder(uint16_t lo, uint16_t step, float rungs[32]);

/* Encodes rows x cols f32 values into `out` (dflash_storage_bytes long). q4tp: lo and step are rounded to f16
 * before codes are chosen, and values are quantised against the reconstructed scale. Non-finite input is
 * DFLASH_NONFINITE. */
DflashStatus dflash_storage_encode(int32_t storage, const float *values, int64_t rows, int64_t cols, void *out,
                                   DflashError *error);

#endif
