#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "workspace.h"

void dflash_store_open(DflashStore *store, int64_t kv_heads, int64_t head_dim) {
  *store = (DflashStore){.kv_heads = kv_heads, .head_dim = head_dim};
  store->value_width = (head_dim + PANEL - 1) / PANEL * PANEL;
}

void dflash_store_close(DflashStore *store) {
  free(store->k);
  free(store->v);
  store->k = store->v = NULL;
  store->capacity = 0;
}

void dflash_store_restart(DflashStore *store, int64_t position) {
  store->base = position / PANEL * PANEL;
  store->kept = store->end = position;
}

void dflash_store_cut(DflashStore *store, int64_t end) { store->end = end; }

static float *allocate(int64_t heads, int64_t positions, int64_t width) {
  int64_t count;
  if (!dflash_mul_i64(heads, positions, &count) || !dflash_mul_i64(count, width, &count)) return NULL;
  return dflash_alloc((size_t)count, sizeof(float));
}

/* Moves the panels that hold positions from the slot `from` on to the first slot, head by head. */
static void move(const DflashStore *store, float *k, float *v, int64_t capacity, int64_t from) {
  const int64_t slots = (store->end - store->base - from + PANEL - 1) / PANEL * PANEL;
  if (slots <= 0) return;
  const int64_t kw = store->head_dim, vw = store->value_width;
  for (int64_t h = 0; h < store->kv_heads; h++) {
    memmove(k + h * capacity * kw, store->k + (h * store->capacity + from) * kw, (size_t)(slots * kw) * sizeof(float));
    memmove(v + h * capacity * vw, store->v + (h * store->capacity + from) * vw, (size_t)(slots * vw) * sizeof(float));
  }
}

bool dflash_store_reserve(DflashStore *store, int64_t rows) {
  if (rows <= store->capacity) return true;
  if (rows > INT64_MAX / 2) return false;
  const int64_t grown = store->capacity + store->capacity / 2;
  const int64_t capacity = ((rows > grown ? rows : grown) + PANEL - 1) / PANEL * PANEL;
  float *k = allocate(store->kv_heads, capacity, store->head_dim);
  float *v = allocate(store->kv_heads, capacity, store->value_width);
  if (!k || !v) {
    free(k);
    free(v);
    return false;
  }
  if (store->k) move(store, k, v, capacity, 0);
  free(store->k);
  free(store->v);
  store->k = k;
  store->v = v;
  store->capacity = capacity;
  return true;
}

void dflash_store_let_go(DflashStore *store, int64_t position) {
  const int64_t base = position / PANEL * PANEL;
  if (base <= store->base) return;
  move(store, store->k, store->v, store->capacity, base - store->base);
  store->base = base;
  if (store->kept < base) store->kept = base;
}

static float *key_at(const DflashStore *store, int64_t head, int64_t slot) {
  return store->k + (head * store->capacity + slot / PANEL * PANEL) * store->head_dim + slot % PANEL;
}

static float *value_at(const DflashStore *store, int64_t head, int64_t slot) {
  return store->v + (head * store->capacity + slot) * store->value_width;
}

void dflash_store_append(DflashStore *store, const float *k, const float *v, int64_t rows) {
  const int64_t d = store->head_dim;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t h = 0; h < store->kv_heads; h++) {
      const int64_t slot = store->end + r - store->base, from = (r * store->kv_heads + h) * d;
      float *key = key_at(store, h, slot);
      for (int64_t i = 0; i < d; i++) key[i * PANEL] = k[from + i];
      memcpy(value_at(store, h, slot), v + from, (size_t)d * sizeof(float));
    }
  store->end += rows;
}

void dflash_store_read(const DflashStore *store, int64_t position, int64_t rows, float *k, float *v) {
  const int64_t d = store->head_dim;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t h = 0; h < store->kv_heads; h++) {
      const int64_t slot = position + r - store->base, to = (r * store->kv_heads + h) * d;
      const float *key = key_at(store, h, slot);
      for (int64_t i = 0; i < d; i++) k[to + i] = key[i * PANEL];
      memcpy(v + to, value_at(store, h, slot), (size_t)d * sizeof(float));
    }
}

void dflash_store_poison(DflashStore *store, uint32_t pattern) {
  const int64_t d = store->head_dim;
  for (int64_t h = 0; h < store->kv_heads; h++)
    for (int64_t slot = 0; slot < store->capacity; slot++) {
      if (slot >= store->kept - store->base && slot < store->end - store->base) {
        dflash_fill_pattern(value_at(store, h, slot) + d, (size_t)(store->value_width - d), pattern);
        continue;
      }
      for (int64_t i = 0; i < d; i++) dflash_fill_pattern(key_at(store, h, slot) + i * PANEL, 1, pattern);
      dflash_fill_pattern(value_at(store, h, slot), (size_t)store->value_width, pattern);
    }
}
