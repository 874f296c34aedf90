#include "blas_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/geometry.h"
#include "model/storage.h"

const DflashBackend *load_blas(void) {
  void *module = dlopen(DFLASH_BACKEND_FOLDER "/dflash-backend-blas.so", RTLD_NOW | RTLD_LOCAL);
  if (!module) fail_msg("%s", dlerror());
  DflashBackendEntry entry;
  void *symbol = dlsym(module, DFLASH_BACKEND_SYMBOL);
  assert_non_null(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  return entry();
}

void draw_floats(float *out, int64_t count, uint64_t seed) {
  const DflashRandom random = dflash_random_stream(seed, "values");
  for (int64_t i = 0; i < count; i++) {
    const int32_t centred = (int32_t)(dflash_random_u32(random, (uint64_t)i) >> 8) - (1 << 23);
    out[i] = (float)centred * 0x1.8p-23f;
  }
}

void draw_taps(const TestModel *model, int64_t position, int64_t rows, uint64_t seed, float *out) {
  const int64_t width = dflash_geometry_tap_width(&model->geometry);
  for (int64_t r = 0; r < rows; r++) draw_floats(out + r * width, width, seed * 1000003 + (uint64_t)(position + r));
}

static void *own(TestModel *model, void *data) {
  assert_non_null(data);
  assert_true(model->owned_count < MODEL_TENSORS_MAX);
  return model->owned[model->owned_count++] = data;
}

static DflashTensor draw_tensor(TestModel *model, int32_t storage, int64_t rows, int64_t cols, float scale,
                                float offset, uint64_t seed) {
  static const int32_t IN_TURN[] = {DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_F32,
                                    DFLASH_STORAGE_Q4TP};
  DflashTensor tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}};
  if (storage < 0) tensor.storage = IN_TURN[model->owned_count % 5];
  if (tensor.storage == DFLASH_STORAGE_Q4TP && cols % 32) tensor.storage = DFLASH_STORAGE_Q8_2F;
  float *values = dflash_alloc((size_t)(rows * cols), sizeof(float));
  assert_non_null(values);
  draw_floats(values, rows * cols, seed + (uint64_t)model->owned_count);
  for (int64_t i = 0; i < rows * cols; i++) values[i] = offset + scale * values[i];
  assert_int_equal(dflash_storage_bytes(tensor.storage, rows, cols, &tensor.bytes, NULL), DFLASH_OK);
  void *data = own(model, dflash_alloc((size_t)tensor.bytes, 1));
  assert_int_equal(dflash_storage_encode(tensor.storage, values, rows, cols, data, NULL), DFLASH_OK);
  free(values);
  tensor.data = data;
  return tensor;
}

static DflashTensor draw_matrix(TestModel *m, int32_t storage, int64_t rows, int64_t cols, uint64_t seed) {
  return draw_tensor(m, storage, rows, cols, 16.0f / (float)(16 + cols), 0, seed);
}

static DflashTensor draw_gain(TestModel *m, int64_t rows, int64_t cols, uint64_t seed) {
  DflashTensor tensor = draw_tensor(m, DFLASH_STORAGE_F32, rows, cols, 0.5f, 1, seed);
  if (rows == 1) {
    tensor.rank = 1;
    tensor.shape[0] = cols;
  }
  return tensor;
}

static void draw_layer(TestModel *m, DflashLayerWeights *l, int32_t storage, uint64_t seed) {
  const DflashGeometry *g = &m->geometry;
  const int64_t q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim;
  const int64_t kernel = dflash_geometry_kernel_width(g), base = 2 * g->conv_kernel;
  l->input_layernorm = draw_gain(m, 1, g->hidden, seed);
  l->post_attention_layernorm = draw_gain(m, 1, g->hidden, seed);
  l->q_norm = draw_gain(m, 1, g->head_dim, seed);
  l->k_norm = draw_gain(m, 1, g->head_dim, seed);
  l->attention_conv_base = draw_gain(m, base, g->hidden, seed);
  l->mlp_conv_base = draw_gain(m, base, g->hidden, seed);
  l->q_proj = draw_matrix(m, storage, q, g->hidden, seed);
  l->k_proj = draw_matrix(m, storage, kv, g->hidden, seed);
  l->v_proj = draw_matrix(m, storage, kv, g->hidden, seed);
  l->o_proj = draw_matrix(m, storage, g->hidden, q, seed);
  l->gate_proj = draw_matrix(m, storage, g->intermediate, g->hidden, seed);
  l->up_proj = draw_matrix(m, storage, g->intermediate, g->hidden, seed);
  l->down_proj = draw_matrix(m, storage, g->hidden, g->intermediate, seed);
  l->attention_conv_kernel = draw_matrix(m, storage, kernel, g->hidden, seed);
  l->mlp_conv_kernel = draw_matrix(m, storage, kernel, g->hidden, seed);
}

static DflashGeometry plan_geometry(const ModelPlan *p) {
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
  if (p->layers > 1) { /* mixed: the first layer sees all, the last one is not rotated */
    g.windows.count = p->layers;
    for (int64_t i = 0; i < p->layers; i++) g.windows.at[i] = i == 0 ? 0 : p->window;
    g.no_rope.count = 1;
    g.no_rope.at[0] = p->layers - 1;
  }
  return g;
}

void draw_model(TestModel *m, const ModelPlan *plan, uint64_t seed) {
  DflashError error;
  *m = (TestModel){.geometry = plan_geometry(plan)};
  const DflashGeometry *g = &m->geometry;
  if (dflash_geometry_check(g, &error)) fail_msg("%s", error.message);
  const int32_t codebook =
      plan->storage == DFLASH_STORAGE_F32 || plan->storage == DFLASH_STORAGE_BF16 ? plan->storage : DFLASH_STORAGE_F16;
  dflash_geometry_inv_freq(g, m->inv_freq);
  m->weights = (DflashWeights){.inv_freq = m->inv_freq, .layers = m->layers};
  m->weights.fc = draw_matrix(m, plan->storage, g->hidden, dflash_geometry_tap_width(g), seed);
  m->weights.hidden_norm = draw_gain(m, 1, g->hidden, seed);
  m->weights.norm = draw_gain(m, 1, g->hidden, seed);
  m->weights.selector_hidden = draw_matrix(m, plan->storage, g->selector_rank, g->hidden, seed);
  m->weights.predecessor = draw_tensor(m, codebook, g->vocab, g->selector_rank, 1, 0, seed);
  m->weights.successor = draw_tensor(m, codebook, g->vocab, g->selector_rank, 1, 0, seed);
  m->weights.head = draw_matrix(m, plan->storage, g->vocab, g->hidden, seed);
  for (int64_t layer = 0; layer < g->layers; layer++)
    draw_layer(m, &m->layers[layer], plan->storage, seed + 100 * (uint64_t)(layer + 1));
}

void free_model(TestModel *model) {
  for (int i = 0; i < model->owned_count; i++) free(model->owned[i]);
}

DflashModel *open_model(const DflashBackend *blas, const TestModel *model, const char *const *options) {
  DflashOption list[8];
  uint32_t count = 0;
  for (; options && options[2 * count]; count++)
    list[count] = (DflashOption){options[2 * count], options[2 * count + 1]};
  const DflashModelDesc desc = {.struct_size = sizeof desc,
                                .geometry = &model->geometry,
                                .weights = &model->weights,
                                .options = list,
                                .option_count = count};
  DflashModel *opened;
  DflashError error;
  if (blas->model_open(&desc, &opened, &error)) fail_msg("%s", error.message);
  return opened;
}

DflashSequence *open_sequence(const DflashBackend *blas, DflashModel *model, uint32_t flags) {
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags};
  DflashSequence *sequence;
  DflashError error;
  if (blas->sequence_open(model, &desc, &sequence, &error)) fail_msg("%s", error.message);
  return sequence;
}

void open_output(BlockOutput *output, const DflashGeometry *g) {
  *output = (BlockOutput){0};
  output->logits = dflash_alloc((size_t)((g->block - 1) * g->vocab), sizeof(float));
  output->selector_hidden = dflash_alloc((size_t)((g->block - 1) * g->selector_rank), sizeof(float));
  assert_non_null(output->logits);
  assert_non_null(output->selector_hidden);
  assert_true(g->block <= 64 && (g->block - 1) * g->selector_top <= 4096);
  output->tokens = (DflashTokens){.struct_size = sizeof output->tokens,
                                  .chosen = output->chosen,
                                  .plain = output->plain,
                                  .candidates = output->candidates,
                                  .scores = output->scores};
}

void close_output(BlockOutput *output) {
  free(output->logits);
  free(output->selector_hidden);
}

DflashBlockCall block_call(const DflashGeometry *g, int64_t anchor, int64_t rows, const float *h, BlockOutput *output) {
  output->tokens.chosen = output->chosen;
  output->tokens.plain = output->plain;
  output->tokens.candidates = output->candidates;
  output->tokens.scores = output->scores;
  return (DflashBlockCall){.struct_size = sizeof(DflashBlockCall),
                           .anchor_pos = anchor,
                           .anchor_token = anchor % g->vocab,
                           .rows = rows,
                           .n_draft = rows - 1,
                           .head_width = g->vocab,
                           .h = h,
                           .tokens = &output->tokens,
                           .logits = output->logits,
                           .selector_hidden = output->selector_hidden};
}
