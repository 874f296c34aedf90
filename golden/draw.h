/* Drawn numbers and weights. Everything comes from counters (base/random.h) by integer arithmetic and single IEEE
 * operations (conversion, multiplication, addition, division), so that every machine gets the same bits. */
#ifndef DFLASH_GOLDEN_DRAW_H
#define DFLASH_GOLDEN_DRAW_H

#include <stddef.h>

#include "base/pool.h"
#include "base/random.h"
#include "model/weights.h"

/* The stream of a part of a tensor: "weights/<name><part>". */
DflashRandom dflash_draw_stream(uint64_t seed, const char *name, const char *part);
int dflash_draw_ends_with(const char *name, const char *suffix);

/* Largest r with r * r <= n. */
uint64_t dflash_draw_root(uint64_t n);
/* 1 / sqrt(n) to 20 bits or better, n >= 1. */
float dflash_draw_inverse_root(uint64_t n);
/* log2(x) in units of 2^-8, rounded down; x positive and normal. */
int dflash_draw_log2(float x);

/* Elements begin .. begin + count of a stream: the sum of four uniform words about its mean, which is normal to
 * within 3.4 deviations and never further out. Element e uses block e of the stream. */
void dflash_draw_normal(DflashRandom stream, uint64_t begin, size_t count, float deviation, float *out);

/* The storage of an entry under a recipe's storage ("sidecar": the entry's own): vectors and base kernels are f32,
 * codebooks f16 where matrices are quantised. -1 when the name is not one of sidecar, f32, f16, bf16, q8_2f. */
int32_t dflash_draw_storage(const DflashWeightEntry *entry, const char *storage);

/* Shape and zeroed data of an entry in `storage`; free((void *)tensor->data) releases. */
DflashStatus dflash_draw_open(const DflashWeightEntry *entry, int32_t storage, DflashTensor *tensor,
                              DflashError *error);

/* Draws an entry of a geometry, from streams named by the entry and its parts. stress: DFLASH_STRESS_* flags. */
DflashStatus dflash_draw_weight(const DflashGeometry *geometry, const DflashWeightEntry *entry, int32_t storage,
                                uint64_t seed, int stress, DflashPool *pool, DflashTensor *tensor, DflashError *error);

/* Makes rows of a matrix equal: row i becomes row i % period, for period <= i < rows. */
void dflash_draw_repeat_rows(const DflashTensor *tensor, int64_t period, int64_t rows);

#endif
