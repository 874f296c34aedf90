#include "workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SUMS = BATCH_TILES * TILE_PANELS_MAX * PRODUCT_ROWS * PANEL, OPENED = TILE_PANELS_MAX * BLOCK_COLUMNS * PANEL };

static size_t turn_floats(int64_t head_dim) { return (size_t)(head_dim + PANEL - 1) / PANEL * PANEL * 2; }

static size_t query_floats(int64_t head_dim) { return (size_t)head_dim * GROUP_MAX * BATCH_GROUPS; }

static size_t mixed_floats(int64_t head_dim) {
  return (size_t)((head_dim + PANEL - 1) / PANEL + 1) * GROUP_MAX * PANEL;
}

bool dflash_workspace_open(DflashWorkspace *w, int threads, int64_t head_dim) {
  *w = (DflashWorkspace){.threads = threads, .head_dim = head_dim};
  w->fixed_stride = SUMS + OPENED + turn_floats(head_dim) + query_floats(head_dim);
  w->fixed_stride += BATCH_GROUPS * mixed_floats(head_dim);
  w->fixed = dflash_alloc((size_t)threads, w->fixed_stride * sizeof(float));
  return w->fixed != NULL;
}

void dflash_workspace_close(DflashWorkspace *w) {
  free(w->packed);
  free(w->fixed);
  free(w->attention);
  *w = (DflashWorkspace){0};
}

bool dflash_workspace_reserve_product(DflashWorkspace *w, int64_t rows, int64_t columns) {
  const size_t count = (size_t)(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS);
  if ((uint64_t)columns > SIZE_MAX / sizeof(float) / PRODUCT_ROWS) return false;
  if (count * (size_t)columns <= w->packed_capacity) return true;
  float *packed = dflash_alloc(count * (size_t)columns, sizeof(float));
  if (!packed) return false;
  free(w->packed);
  w->packed = packed;
  w->packed_capacity = count * (size_t)columns;
  return true;
}

bool dflash_workspace_reserve_attention(DflashWorkspace *w, int64_t lanes) {
  if (lanes <= w->attention_lanes) return true;
  if (lanes > INT64_MAX / 4) return false;
  const int64_t capacity = (lanes + lanes / 4 + PANEL) / PANEL * PANEL;
  size_t floats;
  if (__builtin_mul_overflow((size_t)capacity, (size_t)BATCH_GROUPS * GROUP_MAX, &floats)) return false;
  float *attention = dflash_alloc((size_t)w->threads, floats > SIZE_MAX / sizeof(float) ? 0 : floats * sizeof(float));
  if (!attention) return false;
  free(w->attention);
  w->attention = attention;
  w->attention_lanes = capacity;
  return true;
}

DflashWorkerScratch dflash_workspace_worker(const DflashWorkspace *w, int worker) {
  float *fixed = w->fixed + (size_t)worker * w->fixed_stride;
  DflashWorkerScratch scratch = {.sums = fixed, .opened = fixed + SUMS, .turns = (double *)(fixed + SUMS + OPENED)};
  scratch.query = fixed + SUMS + OPENED + turn_floats(w->head_dim);
  scratch.mixed = scratch.query + query_floats(w->head_dim);
  scratch.mixed_stride = mixed_floats(w->head_dim);
  if (w->attention)
    scratch.scores = w->attention + (size_t)worker * BATCH_GROUPS * GROUP_MAX * (size_t)w->attention_lanes;
  return scratch;
}

void dflash_fill_pattern(float *data, size_t count, uint32_t pattern) {
  for (size_t i = 0; i < count; i++) memcpy(data + i, &pattern, sizeof pattern);
}

void dflash_workspace_poison(DflashWorkspace *w, uint32_t pattern) {
  dflash_fill_pattern(w->fixed, (size_t)w->threads * w->fixed_stride, pattern);
  if (w->packed) dflash_fill_pattern(w->packed, w->packed_capacity, pattern);
  if (w->attention)
    dflash_fill_pattern(w->attention, (size_t)w->threads * BATCH_GROUPS * GROUP_MAX * (size_t)w->attention_lanes,
                        pattern);
}
