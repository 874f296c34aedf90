#include "tensors.h"

#include "base/error.h"
#include "base/memory.h"
#include "pack.h"

enum { ONE, HIDDEN, QUERY, KV, INTERMEDIATE, KERNEL, BASE, HEAD_DIM, TAPS, RANK, VOCAB };

static int64_t size_of(const DflashGeometry *g, int which) {
  const int64_t sizes[] = {[ONE] = 1,
                           [HIDDEN] = g->hidden,
                           [QUERY] = g->heads * g->head_dim,
                           [KV] = g->kv_heads * g->head_dim,
                           [INTERMEDIATE] = g->intermediate,
                           [KERNEL] = dflash_geometry_kernel_width(g),
                           [BASE] = 2 * g->conv_kernel,
                           [HEAD_DIM] = g->head_dim,
                           [TAPS] = dflash_geometry_tap_width(g),
                           [RANK] = g->selector_rank,
                           [VOCAB] = g->vocab};
  return sizes[which];
}

/* X(name, kind, rows, cols, member of the weights, member of the model) */
#define WHOLE_TENSORS(X)                                                           \
  X("fc", MATRIX, HIDDEN, TAPS, fc, fc)                                            \
  X("hidden_norm", VECTOR, ONE, HIDDEN, hidden_norm, hidden_norm)                  \
  X("norm", VECTOR, ONE, HIDDEN, norm, norm)                                       \
  X("selector hidden_projection", MATRIX, RANK, HIDDEN, selector_hidden, selector) \
  X("predecessor codebook", CODEBOOK, VOCAB, RANK, predecessor, predecessor)       \
  X("successor codebook", CODEBOOK, VOCAB, RANK, successor, successor)             \
  X("head", MATRIX, VOCAB, HIDDEN, head, head)

#define LAYER_TENSORS(X)                                                                            \
  X("input_layernorm", VECTOR, ONE, HIDDEN, input_layernorm, input_norm)                            \
  X("post_attention_layernorm", VECTOR, ONE, HIDDEN, post_attention_layernorm, post_norm)           \
  X("q_norm", VECTOR, ONE, HEAD_DIM, q_norm, q_norm)                                                \
  X("k_norm", VECTOR, ONE, HEAD_DIM, k_norm, k_norm)                                                \
  X("attention_conv base_kernel", VECTOR, BASE, HIDDEN, attention_conv_base, attn_base)             \
  X("mlp_conv base_kernel", VECTOR, BASE, HIDDEN, mlp_conv_base, mlp_base)                          \
  X("attention_conv kernel_projection", MATRIX, KERNEL, HIDDEN, attention_conv_kernel, attn_kernel) \
  X("q_proj", MATRIX, QUERY, HIDDEN, q_proj, q)                                                     \
  X("k_proj", MATRIX, KV, HIDDEN, k_proj, k)                                                        \
  X("v_proj", MATRIX, KV, HIDDEN, v_proj, v)                                                        \
  X("o_proj", MATRIX, HIDDEN, QUERY, o_proj, o)                                                     \
  X("mlp_conv kernel_projection", MATRIX, KERNEL, HIDDEN, mlp_conv_kernel, mlp_kernel)              \
  X("gate_proj", MATRIX, INTERMEDIATE, HIDDEN, gate_proj, gate)                                     \
  X("up_proj", MATRIX, INTERMEDIATE, HIDDEN, up_proj, up)                                           \
  X("down_proj", MATRIX, HIDDEN, INTERMEDIATE, down_proj, down)

typedef struct Row {
  const char *name;
  int kind, rows, cols;
  size_t from, to; /* offsets of the members */
} Row;

#define WHOLE_ROW(name, kind, rows, cols, from, to) \
  {name, VULKAN_##kind, rows, cols, offsetof(DflashWeights, from), offsetof(DflashModel, to)},
#define LAYER_ROW(name, kind, rows, cols, from, to) \
  {name, VULKAN_##kind, rows, cols, offsetof(DflashLayerWeights, from), offsetof(VulkanLayer, to)},

static const Row whole_rows[] = {WHOLE_TENSORS(WHOLE_ROW)};
static const Row layer_rows[] = {LAYER_TENSORS(LAYER_ROW)};

enum { WHOLE_COUNT = sizeof whole_rows / sizeof whole_rows[0], LAYER_COUNT = sizeof layer_rows / sizeof layer_rows[0] };

int64_t vulkan_tensor_count(const DflashGeometry *geometry) { return WHOLE_COUNT + geometry->layers * LAYER_COUNT; }

VulkanTensor vulkan_tensor_at(const DflashGeometry *geometry, const DflashWeights *weights, DflashModel *model,
                              int64_t index) {
  const bool whole = index < WHOLE_COUNT;
  const int64_t layer = whole ? -1 : (index - WHOLE_COUNT) / LAYER_COUNT;
  const Row *row = whole ? &whole_rows[index] : &layer_rows[(index - WHOLE_COUNT) % LAYER_COUNT];
  VulkanTensor t = {.name = row->name,
                    .layer = layer,
                    .kind = row->kind,
                    .rows = size_of(geometry, row->rows),
                    .cols = size_of(geometry, row->cols)};
  if (weights) {
    const char *from = whole ? (const char *)weights : (const char *)&weights->layers[layer];
    t.tensor = (const DflashTensor *)(from + row->from);
    if (t.tensor == &weights->head && !t.tensor->data) t.tensor = NULL;
  }
  if (model) {
    char *to = (whole ? (char *)model : (char *)&model->layers[layer]) + row->to;
    if (row->kind == VULKAN_VECTOR) t.vector = (VulkanRange *)to;
    if (row->kind != VULKAN_VECTOR) t.matrix = (VulkanMatrix *)to;
  }
  return t;
}

DflashStatus vulkan_tensor_error(const VulkanTensor *tensor, DflashError *error, DflashStatus status) {
  if (!status) return status;
  if (tensor->layer < 0) return dflash_error_prefix(error, "vulkan: %s", tensor->name), status;
  return dflash_error_prefix(error, "vulkan: %s of layer %lld", tensor->name, (long long)tensor->layer), status;
}

static bool has_shape(const VulkanTensor *t) {
  const DflashTensor *tensor = t->tensor;
  int64_t folded = 1;
  if (tensor->rank < 1 || tensor->rank > 3) return false;
  for (int i = 0; i < tensor->rank - 1; i++)
    if (tensor->shape[i] < 1 || !dflash_mul_i64(folded, tensor->shape[i], &folded)) return false;
  return folded == t->rows && tensor->shape[tensor->rank - 1] == t->cols;
}

static bool storage_allowed(const VulkanTensor *t) {
  const int32_t storage = t->tensor->storage;
  if (t->kind == VULKAN_VECTOR) return storage == DFLASH_STORAGE_F32;
  if (t->kind == VULKAN_CODEBOOK && (storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP)) return false;
  return vulkan_stored_bytes(storage, t->rows, t->cols) > 0;
}

DflashStatus vulkan_tensor_check(const VulkanTensor *t, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (!t->tensor->data)
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "no data");
  else if (!has_shape(t))
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "the shape is not %lld x %lld", (long long)t->rows,
                              (long long)t->cols);
  else if (!storage_allowed(t))
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "storage %d cannot hold %lld x %lld here",
                              (int)t->tensor->storage, (long long)t->rows, (long long)t->cols);
  else if (t->tensor->bytes < vulkan_stored_bytes(t->tensor->storage, t->rows, t->cols))
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%llu bytes, expected %llu",
                              (unsigned long long)t->tensor->bytes,
                              (unsigned long long)vulkan_stored_bytes(t->tensor->storage, t->rows, t->cols));
  return vulkan_tensor_error(t, error, status);
}
