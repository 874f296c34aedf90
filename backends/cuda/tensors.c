#include "tensors.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"

enum { ONE, HIDDEN, QUERY, KV, INTERMEDIATE, KERNEL, BASE, HEAD_DIM, TAPS, RANK, VOCAB };

static int64_t size_of(const DflashGeometry *g, int which) {
  switch (which) {
  case HIDDEN:
    return g->hidden;
  case QUERY:
    return g->heads * g->head_dim;
  case KV:
    return g->kv_heads * g->head_dim;
  case INTERMEDIATE:
    return g->intermediate;
  case KERNEL:
    return dflash_geometry_kernel_width(g);
  case BASE:
    return 2 * g->conv_kernel;
  case HEAD_DIM:
    return g->head_dim;
  case TAPS:
    return dflash_geometry_tap_width(g);
  case RANK:
    return g->selector_rank;
  case VOCAB:
    return g->vocab;
  default:
    return 1;
  }
}

typedef struct Row {
  const char *name;
  int kind, rows, cols;
  size_t from, to; /* offsets of the members */
} Row;

#define WHOLE(member) offsetof(DflashWeights, member)
#define LAYER(member) offsetof(DflashLayerWeights, member)
#define TO_MODEL(member) offsetof(DflashModel, member)
#define TO_LAYER(member) offsetof(CudaLayer, member)

static const Row whole_rows[] = {
    {"fc", CUDA_MATRIX, HIDDEN, TAPS, WHOLE(fc), TO_MODEL(fc)},
    {"hidden_norm", CUDA_VECTOR, ONE, HIDDEN, WHOLE(hidden_norm), TO_MODEL(hidden_norm)},
    {"norm", CUDA_VECTOR, ONE, HIDDEN, WHOLE(norm), TO_MODEL(norm)},
    {"candidate_selector.hidden_projection", CUDA_MATRIX, RANK, HIDDEN, WHOLE(selector_hidden), TO_MODEL(selector)},
    {"candidate_selector.predecessor_codebook", CUDA_CODEBOOK, VOCAB, RANK, WHOLE(predecessor), TO_MODEL(predecessor)},
    {"candidate_selector.successor_codebook", CUDA_CODEBOOK, VOCAB, RANK, WHOLE(successor), TO_MODEL(successor)},
    {"head", CUDA_MATRIX, VOCAB, HIDDEN, WHOLE(head), TO_MODEL(head)},
};

static const Row layer_rows[] = {
    {"input_layernorm", CUDA_VECTOR, ONE, HIDDEN, LAYER(input_layernorm), TO_LAYER(input_norm)},
    {"post_attention_layernorm", CUDA_VECTOR, ONE, HIDDEN, LAYER(post_attention_layernorm), TO_LAYER(post_norm)},
    {"q_norm", CUDA_VECTOR, ONE, HEAD_DIM, LAYER(q_norm), TO_LAYER(q_norm)},
    {"k_norm", CUDA_VECTOR, ONE, HEAD_DIM, LAYER(k_norm), TO_LAYER(k_norm)},
    {"attention_conv.base_kernel", CUDA_VECTOR, BASE, HIDDEN, LAYER(attention_conv_base), TO_LAYER(attn_base)},
    {"mlp_conv.base_kernel", CUDA_VECTOR, BASE, HIDDEN, LAYER(mlp_conv_base), TO_LAYER(mlp_base)},
    {"attention_conv.kernel_projection", CUDA_MATRIX, KERNEL, HIDDEN, LAYER(attention_conv_kernel),
     TO_LAYER(attn_kernel)},
    {"q_proj", CUDA_MATRIX, QUERY, HIDDEN, LAYER(q_proj), TO_LAYER(q)},
    {"k_proj", CUDA_MATRIX, KV, HIDDEN, LAYER(k_proj), TO_LAYER(k)},
    {"v_proj", CUDA_MATRIX, KV, HIDDEN, LAYER(v_proj), TO_LAYER(v)},
    {"o_proj", CUDA_MATRIX, HIDDEN, QUERY, LAYER(o_proj), TO_LAYER(o)},
    {"mlp_conv.kernel_projection", CUDA_MATRIX, KERNEL, HIDDEN, LAYER(mlp_conv_kernel), TO_LAYER(mlp_kernel)},
    {"gate_proj", CUDA_MATRIX, INTERMEDIATE, HIDDEN, LAYER(gate_proj), TO_LAYER(gate)},
    {"up_proj", CUDA_MATRIX, INTERMEDIATE, HIDDEN, LAYER(up_proj), TO_LAYER(up)},
    {"down_proj", CUDA_MATRIX, HIDDEN, INTERMEDIATE, LAYER(down_proj), TO_LAYER(down)},
};

enum { WHOLE_COUNT = sizeof whole_rows / sizeof *whole_rows, LAYER_COUNT = sizeof layer_rows / sizeof *layer_rows };

int64_t cuda_tensor_count(const DflashGeometry *g) { return WHOLE_COUNT + g->layers * LAYER_COUNT; }

CudaTensor cuda_tensor_at(const DflashGeometry *g, const DflashWeights *weights, DflashModel *model, int64_t index) {
  const bool whole = index < WHOLE_COUNT;
  const int64_t layer = whole ? -1 : (index - WHOLE_COUNT) / LAYER_COUNT;
  const Row *row = whole ? &whole_rows[index] : &layer_rows[(index - WHOLE_COUNT) % LAYER_COUNT];
  CudaTensor t = {.name = row->name, .layer = layer, .kind = row->kind};
  t.rows = size_of(g, row->rows);
  t.cols = size_of(g, row->cols);
  const char *from = whole ? (const char *)weights : (const char *)&weights->layers[layer];
  t.tensor = (const DflashTensor *)(from + row->from);
  if (t.tensor == &weights->head && !t.tensor->data) t.tensor = NULL;
  if (!model) return t;
  char *to = (whole ? (char *)model : (char *)&model->layers[layer]) + row->to;
  if (row->kind == CUDA_VECTOR) t.vector = (CudaAddress *)to;
  if (row->kind != CUDA_VECTOR) t.matrix = (CudaMatrix *)to;
  return t;
}

static bool has_shape(const CudaTensor *t) {
  const DflashTensor *tensor = t->tensor;
  int64_t folded = 1;
  if (tensor->rank < 1 || tensor->rank > 3) return false;
  for (int i = 0; i < tensor->rank - 1; i++)
    if (tensor->shape[i] < 1 || !dflash_mul_i64(folded, tensor->shape[i], &folded)) return false;
  return folded == t->rows && tensor->shape[tensor->rank - 1] == t->cols;
}

static bool storage_allowed(const CudaTensor *t) {
  const int32_t storage = t->tensor->storage;
  if (t->kind == CUDA_VECTOR) return storage == DFLASH_STORAGE_F32;
  if (t->kind == CUDA_CODEBOOK && (storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP)) return false;
  return cuda_stored_bytes(storage, t->rows, t->cols) > 0;
}

DflashStatus cuda_tensor_check(const CudaTensor *t, DflashError *error) {
  char name[96];
  const DflashTensor *tensor = t->tensor;
  snprintf(name, sizeof name, "%s", t->name);
  if (t->layer >= 0) snprintf(name, sizeof name, "%s of layer %lld", t->name, (long long)t->layer);
  if (!tensor->data) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: no data", name);
  if (!has_shape(t))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: the shape is not %lld x %lld", name,
                            (long long)t->rows, (long long)t->cols);
  if (!storage_allowed(t))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: storage %d cannot hold %lld x %lld here", name,
                            (int)tensor->storage, (long long)t->rows, (long long)t->cols);
  const uint64_t bytes = cuda_stored_bytes(tensor->storage, t->rows, t->cols);
  if (tensor->bytes >= bytes) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: %llu bytes, expected %llu", name,
                          (unsigned long long)tensor->bytes, (unsigned long long)bytes);
}
