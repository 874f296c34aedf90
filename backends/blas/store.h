/* K and V of one layer at consecutive positions.
 *
 * Slot = position - base, base a multiple of 16. K is held as panels of 16 positions, [head_dim][16] each, so that
 * scores run by the kernel of the matrices; V as rows of head_dim rounded up to 16. Lanes and spare rows that hold no
 * position are never read into a result.
 */
#ifndef DFLASH_BLAS_STORE_H
#define DFLASH_BLAS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"

typedef struct DflashStore {
  int64_t kv_heads, head_dim, value_width;
  int64_t base, kept, end; /* positions kept .. end are held; base <= kept */
  int64_t capacity;        /* positions from base on, a multiple of 16 */
  float *k;                /* [kv_heads][capacity / 16][head_dim][16] */
  float *v;                /* [kv_heads][capacity][value_width] */
} DflashStore;

void dflash_store_open(DflashStore *store, int64_t kv_heads, int64_t head_dim);
void dflash_store_close(DflashStore *store);

/* Holds nothing; the next row appended is that of `position`. */
void dflash_store_restart(DflashStore *store, int64_t position);
/* Forgets positions from `end` on, kept <= end <= store->end. */
void dflash_store_cut(DflashStore *store, int64_t end);
/* Room for `rows` positions from the slot of kept's base on; what is held stays. False: no memory, nothing changed. */
bool dflash_store_reserve(DflashStore *store, int64_t rows);
/* Lets go of positions before `position`, rounded down to a multiple of 16. */
void dflash_store_let_go(DflashStore *store, int64_t position);
/* Appends rows of K and V, each [rows, kv_heads, head_dim]; room is reserved. */
void dflash_store_append(DflashStore *store, const float *k, const float *v, int64_t rows);
void dflash_store_read(const DflashStore *store, int64_t position, int64_t rows, float *k, float *v);
/* Fills what holds no position. */
void dflash_store_poison(DflashStore *store, uint32_t pattern);

static inline const float *dflash_store_keys(const DflashStore *store, int64_t head, int64_t position) {
  return store->k + (head * (store->capacity / PANEL) + (position - store->base) / PANEL) * store->head_dim * PANEL;
}

static inline const float *dflash_store_values(const DflashStore *store, int64_t head, int64_t position) {
  return store->v + (head * store->capacity + position - store->base) * store->value_width;
}

#endif
