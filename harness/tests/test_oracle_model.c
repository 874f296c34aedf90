#include "test_oracle_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/geometry.h"
#include "model/storage.h"

DflashGeometry oracle_geometry(void) {
  return (DflashGeometry){.hidden = 96,
                          .intermediate = 160,
                          .layers = 2,
                          .heads = 6,
                          .kv_heads = 3,
                          .head_dim = 20,
                          .vocab = 131,
                          .block = 7,
                          .mask_token = 130,
                          .conv_group = 12,
                          .conv_kernel = 3,
                          .selector_rank = 11,
                          .selector_top = 5,
                          .target_layers = 9,
                          .window = 0,
                          .rope_theta = 1e4,
                          .eps = 1e-6,
                          .taps = {3, {7, 2, 4}},
                          .windows = {2, {0, 5}},
                          .no_rope = {1, {1}}};
}

float *oracle_draw(uint64_t seed, const char *name, int64_t count, double deviation) {
  DflashRandom random = dflash_random_stream(seed, name);
  float *out = dflash_alloc((size_t)count, sizeof *out);
  assert_non_null(out);
  for (int64_t i = 0; i < count; i++) {
    uint32_t words[12];
    double sum = -6;
    dflash_random_fill(random, (uint64_t)i * 12, 12, words);
    for (int k = 0; k < 12; k++) sum += ldexp((double)words[k], -32);
    out[i] = (float)(sum * deviation);
  }
  return out;
}

void oracle_tensor_set(DflashTensor *tensor, int32_t storage, const float *values) {
  DflashError error = {0};
  int64_t rows = dflash_tensor_rows(tensor), cols = dflash_tensor_cols(tensor);
  assert_int_equal(dflash_storage_bytes(storage, rows, cols, &tensor->bytes, &error), DFLASH_OK);
  free((void *)(uintptr_t)tensor->data);
  void *data = dflash_alloc((size_t)tensor->bytes, 1);
  assert_non_null(data);
  assert_int_equal(dflash_storage_encode(storage, values, rows, cols, data, &error), DFLASH_OK);
  tensor->storage = storage;
  tensor->data = data;
}

static int32_t storage_for(int kind, int32_t storage, int64_t cols, int64_t index) {
  static const int32_t matrix[] = {DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_BF16, DFLASH_STORAGE_F32,
                                   DFLASH_STORAGE_F16};
  if (kind == DFLASH_KIND_VECTOR || kind == DFLASH_KIND_BASE) return DFLASH_STORAGE_F32;
  if (kind == DFLASH_KIND_CODEBOOK) return DFLASH_STORAGE_F16;
  if (storage == ORACLE_MIXED) storage = matrix[index % 5];
  return storage == DFLASH_STORAGE_Q4TP && cols % 32 ? DFLASH_STORAGE_Q8_2F : storage;
}

static void draw_tensor(const DflashWeightEntry *entry, int32_t storage, uint64_t seed, int64_t index,
                        DflashTensor *tensor) {
  tensor->rank = entry->rank;
  memcpy(tensor->shape, entry->shape, sizeof entry->shape);
  int64_t cols = dflash_tensor_cols(tensor), count = dflash_tensor_rows(tensor) * cols;
  bool gain = entry->kind == DFLASH_KIND_VECTOR;
  float *values = oracle_draw(seed, entry->name, count, gain ? 0.2 : 1 / sqrt((double)cols));
  for (int64_t i = 0; i < count && gain; i++) values[i] += 1;
  for (int64_t i = 0; i < count && entry->kind == DFLASH_KIND_BASE; i++) values[i] *= (float)sqrt((double)cols) / 2;
  oracle_tensor_set(tensor, storage_for(entry->kind, storage, cols, index), values);
  free(values);
}

void oracle_model_open(OracleModel *m, const DflashGeometry *geometry, int32_t storage, uint64_t seed) {
  DflashError error = {0};
  *m = (OracleModel){.geometry = *geometry};
  assert_int_equal(dflash_geometry_check(geometry, &error), DFLASH_OK);
  assert_int_equal(dflash_weight_set_open(geometry, &m->set, &error), DFLASH_OK);
  DflashWeightEntry entry;
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++) {
    dflash_weight_entry(geometry, i, &entry);
    draw_tensor(&entry, storage, seed, i, dflash_weight_at(geometry, &m->set, i));
  }
  dflash_weight_head_entry(geometry, &entry);
  draw_tensor(&entry, storage, seed, 1, &m->set.weights.head);
}

void oracle_model_close(OracleModel *m) {
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++)
    free((void *)(uintptr_t)dflash_weight_at(&m->geometry, &m->set, i)->data);
  free((void *)(uintptr_t)m->set.weights.head.data);
  dflash_weight_set_close(&m->set);
}

void oracle_case_open(DflashCase *c, const DflashGeometry *g, int64_t first, int64_t context, int64_t anchor_pos,
                      uint64_t seed) {
  DflashError error = {0};
  assert_int_equal(dflash_case_open(c, g, "drawn", &error), DFLASH_OK);
  c->anchor_pos = anchor_pos;
  c->anchor_token = 3;
  c->sizes = (DflashRunSizes){.rows = g->block, .n_draft = g->block - 1, .head_width = g->vocab};
  c->tap_rows = context;
  c->taps = oracle_draw(seed, "taps", context * dflash_geometry_tap_width(g), 1);
  c->h = oracle_draw(seed, "h", g->block * g->hidden, 1);
  c->taps_owned = c->h_owned = true;
  if (context == 0) return;
  c->ops = dflash_alloc(1, sizeof *c->ops);
  assert_non_null(c->ops);
  c->ops[0] = (DflashContextOp){DFLASH_OP_PUSH, first, 0, context};
  c->op_count = 1;
}
