/* Checked sizes and allocations. */
#ifndef DFLASH_BASE_MEMORY_H
#define DFLASH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a * b (a + b); false when it overflows or an operand is negative. */
bool dflash_mul_i64(int64_t a, int64_t b, int64_t *out);
bool dflash_add_i64(int64_t a, int64_t b, int64_t *out);

/* 64-byte aligned, zeroed, count * size bytes; NULL when that overflows or memory is out. free() releases. */
void *dflash_alloc(size_t count, size_t size);

/* Memory with guard bands at both ends and a poisoned inside, for outputs that a backend writes. */
typedef struct DflashGuarded {
  float *data; /* count elements, 64-byte aligned */
  size_t count;
  void *base;
} DflashGuarded;

#define DFLASH_POISON_BITS 0x7fc0dea1u /* a quiet NaN that arithmetic does not make by itself */

bool dflash_guarded_open(DflashGuarded *guarded, size_t count);
void dflash_guarded_poison(DflashGuarded *guarded); /* inside and bands anew */
/* 0 when both bands are whole, else the signed distance in elements of the first damage found:
 * -1 is the element before data[0], +1 the one after the last. */
int64_t dflash_guarded_damage(const DflashGuarded *guarded);
/* Elements inside that still hold the poison pattern. */
size_t dflash_guarded_unwritten(const DflashGuarded *guarded);
void dflash_guarded_close(DflashGuarded *guarded);

#endif
