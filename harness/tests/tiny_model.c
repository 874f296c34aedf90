#include "tiny_model.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"

DflashGeometry tiny_geometry(void) {
  return (DflashGeometry){.hidden = 64,
                          .intermediate = 96,
                          .layers = 3,
                          .heads = 6,
                          .kv_heads = 2,
                          .head_dim = 10,
                          .vocab = 97,
                          .block = 5,
                          .mask_token = 3,
                          .conv_group = 8,
                          .conv_kernel = 3,
                          .selector_rank = 13,
                          .selector_top = 5,
                          .target_layers = 9,
                          .rope_theta = 1e4,
                          .eps = 1e-5,
                          .taps = {.count = 3, .at = {7, 0, 4}},
                          .windows = {.count = 3, .at = {0, 4, 9}},
                          .no_rope = {.count = 1, .at = {1}}};
}

DflashGeometry tiny_geometry_minimal(void) {
  return (DflashGeometry){.hidden = 4,
                          .intermediate = 4,
                          .layers = 2,
                          .heads = 1,
                          .kv_heads = 1,
                          .head_dim = 2,
                          .vocab = 4,
                          .block = 2,
                          .conv_group = 4,
                          .conv_kernel = 1,
                          .selector_rank = 1,
                          .selector_top = 1,
                          .target_layers = 1,
                          .rope_theta = 100,
                          .eps = 1e-5,
                          .taps = {.count = 1, .at = {0}}};
}

static float unit(uint32_t word) { return (float)((int32_t)(word >> 8) - (1 << 23)) / (float)(1 << 23); }

float *tiny_draw(const char *name, int64_t count) {
  const DflashRandom random = dflash_random_stream(7, name);
  float *values = malloc((size_t)(count > 0 ? count : 1) * sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = unit(dflash_random_u32(random, (uint64_t)i));
  return values;
}

/* ---- weights ---- */

static void put16(unsigned char *bytes, uint32_t bits) {
  bytes[0] = (unsigned char)bits;
  bytes[1] = (unsigned char)(bits >> 8);
}

/* Sign, an exponent of the given range, any fraction. */
static uint32_t f16_bits(uint32_t word, uint32_t low, uint32_t count) {
  return (word & 0x8000) | (low + (word >> 16) % count) << 10 | (word & 0x3ff);
}

static uint32_t bf16_bits(uint32_t word) { return (word & 0x8000) | (121 + (word >> 16) % 4) << 7 | (word & 0x7f); }

static void fill_q8_2f(unsigned char *bytes, int64_t rows, int64_t cols, DflashRandom random) {
  for (int64_t i = 0; i < rows * cols; i++) bytes[i] = (unsigned char)dflash_random_u32(random, (uint64_t)i);
  bytes[0] = 0x80;                          /* -128 */
  for (int64_t i = 0; i < rows + cols; i++) /* rows about 2^-9, columns about 1 */
    put16(bytes + rows * cols + 2 * i,
          f16_bits(dflash_random_u32(random, (uint64_t)(rows * cols + i)) & ~0x8000u, i < rows ? 5 : 14, 2));
}

static void fill_q4tp(unsigned char *bytes, int64_t rows, int64_t cols, DflashRandom random) {
  const int64_t groups = cols / 32, nibbles = rows * groups * 16, codes = (groups * 5 + 7) / 8;
  for (int64_t i = 0; i < nibbles + rows * (4 + codes); i++)
    bytes[i] = (unsigned char)dflash_random_u32(random, (uint64_t)i);
  for (int64_t row = 0; row < rows; row++) { /* lo in (-8, -4], step in (-0.5, 0.5) about 0.06 */
    put16(bytes + nibbles + 4 * row, 0xc400 | (dflash_random_u32(random, (uint64_t)row) & 0x3ff));
    put16(bytes + nibbles + 4 * row + 2, 0x2c00 | (dflash_random_u32(random, (uint64_t)(row + rows)) & 0x3ff));
  }
}

static uint64_t stored_bytes(int32_t storage, int64_t rows, int64_t cols) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return (uint64_t)(rows * cols * 4);
  case DFLASH_STORAGE_Q8_2F:
    return (uint64_t)(rows * cols + 2 * (rows + cols));
  case DFLASH_STORAGE_Q4TP:
    return (uint64_t)(rows * (cols / 2 + 4 + (cols / 32 * 5 + 7) / 8));
  default:
    return (uint64_t)(rows * cols * 2);
  }
}

static void fill(unsigned char *bytes, int32_t storage, int64_t rows, int64_t cols, DflashRandom random) {
  if (storage == DFLASH_STORAGE_Q8_2F) fill_q8_2f(bytes, rows, cols, random);
  if (storage == DFLASH_STORAGE_Q4TP) fill_q4tp(bytes, rows, cols, random);
  for (int64_t i = 0; i < rows * cols; i++) {
    const uint32_t word = dflash_random_u32(random, (uint64_t)i);
    const float value = unit(word) / 4;
    if (storage == DFLASH_STORAGE_F32) memcpy(bytes + 4 * i, &value, 4);
    if (storage == DFLASH_STORAGE_F16) put16(bytes + 2 * i, f16_bits(word, 9, 4));
    if (storage == DFLASH_STORAGE_BF16) put16(bytes + 2 * i, bf16_bits(word));
  }
}

static DflashTensor stored(const char *name, unsigned seed, int32_t storage, int64_t rows, int64_t cols) {
  DflashTensor tensor = {.storage = storage, .rank = 2, .shape = {rows, cols}};
  tensor.bytes = stored_bytes(storage, rows, cols);
  unsigned char *bytes = dflash_alloc(tensor.bytes, 1);
  assert_non_null(bytes);
  fill(bytes, storage, rows, cols, dflash_random_stream(seed, name));
  tensor.data = bytes;
  return tensor;
}

static DflashTensor matrix(const char *name, unsigned seed, int64_t rows, int64_t cols, unsigned turn) {
  static const int32_t storages[] = {DFLASH_STORAGE_Q4TP, DFLASH_STORAGE_F16, DFLASH_STORAGE_Q8_2F, DFLASH_STORAGE_BF16,
                                     DFLASH_STORAGE_F32};
  const int32_t storage = storages[turn % 5];
  const bool fits = storage != DFLASH_STORAGE_Q4TP || cols % 32 == 0;
  return stored(name, seed, fits ? storage : DFLASH_STORAGE_F32, rows, cols);
}

static DflashTensor vector(const char *name, unsigned seed, int64_t count) {
  DflashTensor tensor = stored(name, seed, DFLASH_STORAGE_F32, 1, count);
  float *gain = (float *)tensor.data;
  for (int64_t i = 0; i < count; i++) gain[i] += 1;
  tensor.rank = 1;
  tensor.shape[0] = count;
  tensor.shape[1] = 0;
  return tensor;
}

static DflashTensor base(const char *name, unsigned seed, const DflashGeometry *g) {
  DflashTensor tensor = stored(name, seed, DFLASH_STORAGE_F32, 2 * g->conv_kernel, g->hidden);
  tensor.rank = 3;
  tensor.shape[0] = 2;
  tensor.shape[1] = g->conv_kernel;
  tensor.shape[2] = g->hidden;
  return tensor;
}

static void fill_layer(DflashLayerWeights *layer, const DflashGeometry *g, unsigned seed, unsigned turn) {
  const int64_t q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim, kernel = dflash_geometry_kernel_width(g);
  layer->input_layernorm = vector("a", seed, g->hidden);
  layer->post_attention_layernorm = vector("b", seed, g->hidden);
  layer->q_proj = matrix("q", seed, q, g->hidden, turn);
  layer->k_proj = matrix("k", seed, kv, g->hidden, turn + 1);
  layer->v_proj = matrix("v", seed, kv, g->hidden, turn + 2);
  layer->o_proj = matrix("o", seed, g->hidden, q, turn + 3);
  layer->q_norm = vector("c", seed, g->head_dim);
  layer->k_norm = vector("d", seed, g->head_dim);
  layer->gate_proj = matrix("g", seed, g->intermediate, g->hidden, turn + 4);
  layer->up_proj = matrix("u", seed, g->intermediate, g->hidden, turn + 5);
  layer->down_proj = matrix("w", seed, g->hidden, g->intermediate, turn);
  layer->attention_conv_base = base("e", seed, g);
  layer->attention_conv_kernel = matrix("f", seed, kernel, g->hidden, turn + 2);
  layer->mlp_conv_base = base("h", seed, g);
  layer->mlp_conv_kernel = matrix("i", seed, kernel, g->hidden, turn + 1);
}

void tiny_open(TinyModel *tiny, DflashGeometry geometry, unsigned seed) {
  const DflashGeometry *g = &geometry;
  *tiny = (TinyModel){.geometry = geometry};
  tiny->layers = dflash_alloc((size_t)g->layers, sizeof *tiny->layers);
  tiny->inv_freq = dflash_alloc((size_t)g->head_dim / 2, sizeof(float));
  if (tiny->layers == NULL || tiny->inv_freq == NULL) abort();
  for (int64_t i = 0; i < g->head_dim / 2; i++)
    tiny->inv_freq[i] = (float)pow(g->rope_theta, -2.0 * (double)i / (double)g->head_dim);
  for (int64_t l = 0; l < g->layers; l++) fill_layer(&tiny->layers[l], g, 100 * seed + (unsigned)l, (unsigned)l);
  tiny->weights = (DflashWeights){
      .fc = matrix("fc", seed, g->hidden, dflash_geometry_tap_width(g), 0),
      .hidden_norm = vector("hn", seed, g->hidden),
      .norm = vector("n", seed, g->hidden),
      .selector_hidden = matrix("sh", seed, g->selector_rank, g->hidden, 2),
      .predecessor = stored("p", seed, DFLASH_STORAGE_F16, g->vocab, g->selector_rank),
      .successor = stored("s", seed, DFLASH_STORAGE_BF16, g->vocab, g->selector_rank),
      .head = matrix("head", seed, g->vocab, g->hidden, 2),
      .inv_freq = tiny->inv_freq,
      .layers = tiny->layers,
  };
}

static void release(DflashTensor *tensor) { free((void *)tensor->data); }

void tiny_close(TinyModel *tiny) {
  DflashWeights *w = &tiny->weights;
  DflashTensor *shared[] = {&w->fc,          &w->hidden_norm, &w->norm, &w->selector_hidden,
                            &w->predecessor, &w->successor,   &w->head};
  for (size_t i = 0; i < sizeof shared / sizeof(DflashTensor *); i++) release(shared[i]);
  for (int64_t l = 0; l < tiny->geometry.layers; l++) {
    DflashLayerWeights *y = &tiny->layers[l];
    DflashTensor *own[] = {&y->input_layernorm,
                           &y->post_attention_layernorm,
                           &y->q_proj,
                           &y->k_proj,
                           &y->v_proj,
                           &y->o_proj,
                           &y->q_norm,
                           &y->k_norm,
                           &y->gate_proj,
                           &y->up_proj,
                           &y->down_proj,
                           &y->attention_conv_base,
                           &y->attention_conv_kernel,
                           &y->mlp_conv_base,
                           &y->mlp_conv_kernel};
    for (size_t i = 0; i < sizeof own / sizeof(DflashTensor *); i++) release(own[i]);
  }
  free(tiny->inv_freq);
  free(tiny->layers);
}

/* ---- exact values ---- */

static uint32_t get16(const unsigned char *bytes) { return bytes[0] | (uint32_t)bytes[1] << 8; }

static double f16_value(uint32_t bits) {
  const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 0x3ff);
  const double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

static double q4tp_at(const unsigned char *data, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  const int64_t groups = cols / 32, group = col / 32, codes_row = (groups * 5 + 7) / 8;
  const unsigned char *ladder = data + rows * groups * 16 + 4 * row;
  const unsigned char *codes = data + rows * groups * 16 + 4 * rows + row * codes_row;
  int code = 0;
  for (int b = 0; b < 5; b++) code |= (codes[(group * 5 + b) / 8] >> (group * 5 + b) % 8 & 1) << b;
  float rung = (float)exp2(f16_value(get16(ladder)));
  for (int c = 0; c < code; c++) rung *= (float)exp2(f16_value(get16(ladder + 2)));
  const int byte = data[(row * groups + group) * 16 + col % 32 / 2];
  return (double)((col % 2 ? byte >> 4 : byte & 15) - 8) * rung;
}

double tiny_at(const DflashTensor *tensor, int64_t row, int64_t col) {
  const unsigned char *data = tensor->data;
  const int64_t rows = tensor->shape[0], cols = tensor->shape[1], at = row * cols + col;
  float value;
  switch (tensor->storage) {
  case DFLASH_STORAGE_F32:
    return memcpy(&value, data + 4 * at, 4), value;
  case DFLASH_STORAGE_F16:
    return f16_value(get16(data + 2 * at));
  case DFLASH_STORAGE_BF16: {
    const uint32_t bits = get16(data + 2 * at) << 16;
    return memcpy(&value, &bits, 4), value;
  }
  case DFLASH_STORAGE_Q8_2F:
    return (double)(int8_t)data[at] * f16_value(get16(data + rows * cols + 2 * row)) *
           f16_value(get16(data + rows * cols + 2 * rows + 2 * col));
  default:
    return q4tp_at(data, rows, cols, row, col);
  }
}

/* ---- calls ---- */

const DflashBackend *tiny_backend(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail_msg("%s", dlerror());
  DflashBackendEntry entry;
  *(void **)&entry = dlsym(library, DFLASH_BACKEND_SYMBOL);
  return entry == NULL ? NULL : entry();
}

DflashModel *tiny_model_open_as(const DflashBackend *backend, const TinyModel *tiny, int32_t profile, const char *key,
                                const char *value) {
  const DflashOption option = {key, value};
  const DflashModelDesc desc = {.struct_size = sizeof desc,
                                .profile = profile,
                                .geometry = &tiny->geometry,
                                .weights = &tiny->weights,
                                .options = &option,
                                .option_count = key == NULL ? 0 : 1};
  DflashModel *model;
  DflashError error = {0};
  if (backend->model_open(&desc, &model, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return model;
}

DflashModel *tiny_model_open(const DflashBackend *backend, const TinyModel *tiny, const char *threads) {
  return tiny_model_open_as(backend, tiny, DFLASH_PROFILE_EXACT, threads == NULL ? NULL : "threads", threads);
}

DflashModel *tiny_model_as(const DflashBackend *backend, DflashGeometry geometry, int32_t profile, const char *key,
                           const char *value) {
  TinyModel tiny;
  tiny_open(&tiny, geometry, 1);
  DflashModel *model = tiny_model_open_as(backend, &tiny, profile, key, value);
  tiny_close(&tiny);
  return model;
}

DflashModel *tiny_model(const DflashBackend *backend, DflashGeometry geometry, const char *threads) {
  return tiny_model_as(backend, geometry, DFLASH_PROFILE_EXACT, threads == NULL ? NULL : "threads", threads);
}

DflashSequence *tiny_sequence(const DflashBackend *backend, DflashModel *model, uint32_t flags) {
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags};
  DflashSequence *sequence;
  DflashError error = {0};
  if (backend->sequence_open(model, &desc, &sequence, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return sequence;
}

static TinyAnswer new_answer(const DflashGeometry *g) {
  TinyAnswer answer = {
      .n_draft = g->block - 1, .head_width = g->vocab, .top = g->selector_top, .rank = g->selector_rank};
  const size_t n = (size_t)answer.n_draft;
  answer.chosen = dflash_alloc(n, sizeof(int32_t));
  answer.plain = dflash_alloc(n, sizeof(int32_t));
  answer.candidates = dflash_alloc(n * (size_t)g->selector_top, sizeof(int32_t));
  answer.scores = dflash_alloc(n * (size_t)g->selector_top, sizeof(float));
  answer.logits = dflash_alloc(n * (size_t)g->vocab, sizeof(float));
  answer.selector = dflash_alloc(n * (size_t)g->selector_rank, sizeof(float));
  return answer;
}

TinyAnswer tiny_block(const DflashBackend *backend, const DflashGeometry *geometry, DflashSequence *sequence,
                      int64_t anchor_pos, const char *h_name, uint32_t flags) {
  TinyAnswer answer = new_answer(geometry);
  float *h = tiny_draw(h_name, geometry->block * geometry->hidden);
  DflashTokens tokens = {sizeof tokens, answer.chosen, answer.plain, answer.candidates, answer.scores};
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .flags = flags,
                                .anchor_pos = anchor_pos,
                                .anchor_token = 2,
                                .rows = geometry->block,
                                .n_draft = answer.n_draft,
                                .head_width = geometry->vocab,
                                .h = h,
                                .tokens = &tokens,
                                .logits = answer.logits,
                                .selector_hidden = answer.selector};
  DflashError error = {0};
  if (backend->block(sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
  free(h);
  return answer;
}

bool tiny_answer_same_logits(const TinyAnswer *a, const TinyAnswer *b) {
  return memcmp(a->logits, b->logits, (size_t)(a->n_draft * a->head_width) * sizeof(float)) == 0;
}

void tiny_answer_equal(const TinyAnswer *a, const TinyAnswer *b) {
  const size_t n = (size_t)a->n_draft, top = (size_t)a->top;
  assert_true(tiny_answer_same_logits(a, b));
  assert_memory_equal(a->selector, b->selector, n * (size_t)a->rank * sizeof(float));
  assert_memory_equal(a->candidates, b->candidates, n * top * sizeof(int32_t));
  assert_memory_equal(a->scores, b->scores, n * top * sizeof(float));
  assert_memory_equal(a->chosen, b->chosen, n * sizeof(int32_t));
  assert_memory_equal(a->plain, b->plain, n * sizeof(int32_t));
}

void tiny_answer_close(TinyAnswer *answer) {
  free(answer->chosen);
  free(answer->plain);
  free(answer->candidates);
  free(answer->scores);
  free(answer->logits);
  free(answer->selector);
}
