/* Matrices as they are stored, element by element. */
#ifndef DFLASH_VULKAN_TESTS_STORED_H
#define DFLASH_VULKAN_TESTS_STORED_H

#include <stdbool.h>

#include "base/random.h"
#include "dflash/tensor.h"

typedef struct Stored {
  DflashTensor tensor;
  unsigned char *bytes; /* owned */
} Stored;

/* Of q4tp, q8_2f or f16. Integers: small ones, all scales 1; else elements, ladders, codes, scales and the column field
 * are drawn. */
Stored stored_draw(DflashRandom random, int32_t storage, int64_t rows, int64_t cols, bool integers);
void stored_close(Stored *stored);

/* An integer from -7 to 7. */
void stored_set(Stored *stored, int64_t row, int64_t col, int value);
/* f32 as the device has it: the column field of q8_2f, else 1. */
float stored_column(const Stored *stored, int64_t col);
/* q4tp: the element, and its scale, every product of the ladder rounded to f32. */
int stored_nibble(const Stored *stored, int64_t row, int64_t col);
float stored_rung(const Stored *stored, int64_t row, int64_t col);

#endif
