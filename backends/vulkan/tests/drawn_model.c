#include "drawn_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "fixture.h"
#include "model/geometry.h"
#include "model/storage.h"

static DflashTensor store(DrawnModel *drawn, int32_t storage, const float *values, int64_t rows, int64_t cols) {
  DflashError error = {0};
  DflashTensor tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}};
  test_ok(dflash_storage_bytes(storage, rows, cols, &tensor.bytes, &error), &error);
  void *data = test_memory((size_t)tensor.bytes, 1);
  test_ok(dflash_storage_encode(storage, values, rows, cols, data, &error), &error);
  assert_true(drawn->owned_count < DRAWN_TENSORS_MAX);
  drawn->owned[drawn->owned_count++] = data;
  tensor.data = data;
  return tensor;
}

/* offset + scale * values in [-1, 1) */
static DflashTensor draw(DrawnModel *drawn, int32_t storage, int64_t rows, int64_t cols, float offset, float scale,
                         uint64_t seed) {
  const DflashRandom random = {seed, (uint64_t)drawn->owned_count};
  float *values = test_memory((size_t)(rows * cols), sizeof *values);
  for (int64_t i = 0; i < rows * cols; i++) values[i] = offset + scale * test_draw(random, (uint64_t)i);
  const DflashTensor tensor = store(drawn, storage, values, rows, cols);
  free(values);
  return tensor;
}

DflashTensor drawn_tensor(DrawnModel *drawn, int32_t storage, int64_t rows, int64_t cols, uint64_t seed) {
  static const int32_t in_turn[] = {DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_F32,
                                    DFLASH_STORAGE_Q4TP};
  if (storage == DRAWN_IN_TURN) storage = in_turn[drawn->owned_count % 5];
  if (storage == DFLASH_STORAGE_Q4TP && cols % 32) storage = DFLASH_STORAGE_Q8_2F;
  return draw(drawn, storage, rows, cols, 0, 16.0f / (float)(16 + cols), seed);
}

static DflashTensor draw_gain(DrawnModel *drawn, int64_t rows, int64_t cols, uint64_t seed) {
  DflashTensor tensor = draw(drawn, DFLASH_STORAGE_F32, rows, cols, 1, 0.5f, seed);
  if (rows > 1) return tensor;
  tensor.rank = 1;
  tensor.shape[0] = cols;
  return tensor;
}

static DflashTensor draw_base(DrawnModel *drawn, uint64_t seed) {
  const DflashGeometry *g = &drawn->geometry;
  DflashTensor tensor = draw_gain(drawn, 2 * g->conv_kernel, g->hidden, seed);
  tensor.rank = 3;
  tensor.shape[0] = 2;
  tensor.shape[1] = g->conv_kernel;
  tensor.shape[2] = g->hidden;
  return tensor;
}

static void draw_layer(DrawnModel *d, DflashLayerWeights *l, int32_t storage, uint64_t seed) {
  const DflashGeometry *g = &d->geometry;
  const int64_t q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim, kernel = dflash_geometry_kernel_width(g);
  l->input_layernorm = draw_gain(d, 1, g->hidden, seed);
  l->post_attention_layernorm = draw_gain(d, 1, g->hidden, seed);
  l->q_norm = draw_gain(d, 1, g->head_dim, seed);
  l->k_norm = draw_gain(d, 1, g->head_dim, seed);
  l->attention_conv_base = draw_base(d, seed);
  l->mlp_conv_base = draw_base(d, seed);
  l->q_proj = drawn_tensor(d, storage, q, g->hidden, seed);
  l->k_proj = drawn_tensor(d, storage, kv, g->hidden, seed);
  l->v_proj = drawn_tensor(d, storage, kv, g->hidden, seed);
  l->o_proj = drawn_tensor(d, storage, g->hidden, q, seed);
  l->gate_proj = drawn_tensor(d, storage, g->intermediate, g->hidden, seed);
  l->up_proj = drawn_tensor(d, storage, g->intermediate, g->hidden, seed);
  l->down_proj = drawn_tensor(d, storage, g->hidden, g->intermediate, seed);
  l->attention_conv_kernel = drawn_tensor(d, storage, kernel, g->hidden, seed);
  l->mlp_conv_kernel = drawn_tensor(d, storage, kernel, g->hidden, seed);
}

static DflashGeometry geometry_of(const DrawnPlan *p) {
  DflashGeometry g = {.hidden = p->hidden,
                      .intermediate = p->intermediate,
                      .layers = p->layers,
                      .heads = p->heads,
                      .kv_heads = p->kv_heads,
                      .head_dim = p->head_dim,
                      .vocab = p->vocab,
                      .block = p->block,
                      .mask_token = p->vocab - 1,
                      .conv_group = p->conv_group,
                      .conv_kernel = p->conv_kernel,
                      .selector_rank = p->rank,
                      .selector_top = p->top,
                      .target_layers = 8,
                      .window = p->window,
                      .rope_theta = 10000.0,
                      .eps = 1e-6};
  g.taps.count = p->taps;
  for (int64_t i = 0; i < p->taps; i++) g.taps.at[i] = (i * 5 + 3) % 8;
  if (p->layers < 2) return g;
  g.windows.count = p->layers;
  for (int64_t i = 1; i < p->layers; i++) g.windows.at[i] = p->window;
  g.no_rope.count = 1;
  g.no_rope.at[0] = p->layers - 1;
  return g;
}

void drawn_model_open(DrawnModel *d, const DrawnPlan *plan, uint64_t seed) {
  DflashError error = {0};
  *d = (DrawnModel){.geometry = geometry_of(plan)};
  const DflashGeometry *g = &d->geometry;
  test_ok(dflash_geometry_check(g, &error), &error);
  dflash_geometry_inv_freq(g, d->inv_freq);
  d->weights = (DflashWeights){.inv_freq = d->inv_freq, .layers = d->layers};
  d->weights.fc = drawn_tensor(d, plan->storage, g->hidden, dflash_geometry_tap_width(g), seed);
  d->weights.hidden_norm = draw_gain(d, 1, g->hidden, seed);
  d->weights.norm = draw_gain(d, 1, g->hidden, seed);
  d->weights.selector_hidden = drawn_tensor(d, plan->storage, g->selector_rank, g->hidden, seed);
  d->weights.predecessor = drawn_tensor(d, DFLASH_STORAGE_F16, g->vocab, g->selector_rank, seed);
  d->weights.successor = drawn_tensor(d, DFLASH_STORAGE_BF16, g->vocab, g->selector_rank, seed);
  d->weights.head = drawn_tensor(d, plan->storage, g->vocab, g->hidden, seed);
  for (int64_t layer = 0; layer < g->layers; layer++) draw_layer(d, &d->layers[layer], plan->storage, seed);
}

void drawn_model_close(DrawnModel *drawn) {
  for (int i = 0; i < drawn->owned_count; i++) free(drawn->owned[i]);
  drawn->owned_count = 0;
}

void drawn_taps(const DrawnModel *drawn, int64_t position, int64_t rows, uint64_t seed, float *taps) {
  const int64_t width = dflash_geometry_tap_width(&drawn->geometry);
  for (int64_t row = 0; row < rows; row++) {
    const DflashRandom random = {seed, (uint64_t)(position + row)};
    for (int64_t i = 0; i < width; i++) taps[row * width + i] = test_draw(random, (uint64_t)i);
  }
}

DflashModelDesc drawn_desc(const DrawnModel *drawn, int32_t profile, const DflashOption *options, uint32_t count) {
  return (DflashModelDesc){.struct_size = sizeof(DflashModelDesc),
                           .profile = profile,
                           .geometry = &drawn->geometry,
                           .weights = &drawn->weights,
                           .options = options,
                           .option_count = count};
}

DflashModel *drawn_open(const DrawnModel *drawn, int32_t profile, const DflashOption *options, uint32_t count) {
  DflashError error = {0};
  DflashOption all[8] = {{"validation", "on"}};
  assert_true(count < 8);
  if (count > 0) memcpy(all + 1, options, count * sizeof *options);
  const DflashModelDesc desc = drawn_desc(drawn, profile, all, count + 1);
  DflashModel *model;
  const DflashStatus status = vulkan_model_open(&desc, &model, &error);
  if (status == DFLASH_OK) return model;
  fprintf(stderr, "%s\n", error.message);
  exit(status == DFLASH_UNAVAILABLE ? TEST_SKIPPED : EXIT_FAILURE);
}
