/* The model's own copy of its weights. Each tensor is checked against the geometry before a byte is read. */
#include "reference.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { ALIGNMENT = 64 };
enum { VECTOR, BASE, MATRIX, CODEBOOK };
enum { ONE, HIDDEN, TAP_WIDTH, Q, KV, HEAD_DIM, INTERMEDIATE, KERNEL, BASE_ROWS, RANK, VOCAB };

typedef struct Plan {
  const char *name;
  size_t offset; /* in DflashWeights or DflashLayerWeights */
  int kind, rows, cols;
} Plan;

#define SHARED(member) #member, offsetof(DflashWeights, member)
static const Plan shared_plan[] = {
    {SHARED(fc), MATRIX, HIDDEN, TAP_WIDTH},      {SHARED(hidden_norm), VECTOR, ONE, HIDDEN},
    {SHARED(norm), VECTOR, ONE, HIDDEN},          {SHARED(selector_hidden), MATRIX, RANK, HIDDEN},
    {SHARED(predecessor), CODEBOOK, VOCAB, RANK}, {SHARED(successor), CODEBOOK, VOCAB, RANK},
    {SHARED(head), MATRIX, VOCAB, HIDDEN},
};

#define LAYER(member) #member, offsetof(DflashLayerWeights, member)
static const Plan layer_plan[] = {
    {LAYER(input_layernorm), VECTOR, ONE, HIDDEN},
    {LAYER(post_attention_layernorm), VECTOR, ONE, HIDDEN},
    {LAYER(q_proj), MATRIX, Q, HIDDEN},
    {LAYER(k_proj), MATRIX, KV, HIDDEN},
    {LAYER(v_proj), MATRIX, KV, HIDDEN},
    {LAYER(o_proj), MATRIX, HIDDEN, Q},
    {LAYER(q_norm), VECTOR, ONE, HEAD_DIM},
    {LAYER(k_norm), VECTOR, ONE, HEAD_DIM},
    {LAYER(gate_proj), MATRIX, INTERMEDIATE, HIDDEN},
    {LAYER(up_proj), MATRIX, INTERMEDIATE, HIDDEN},
    {LAYER(down_proj), MATRIX, HIDDEN, INTERMEDIATE},
    {LAYER(attention_conv_base), BASE, BASE_ROWS, HIDDEN},
    {LAYER(attention_conv_kernel), MATRIX, KERNEL, HIDDEN},
    {LAYER(mlp_conv_base), BASE, BASE_ROWS, HIDDEN},
    {LAYER(mlp_conv_kernel), MATRIX, KERNEL, HIDDEN},
};

static int64_t extent(const DflashGeometry *g, int which) {
  switch (which) {
  case HIDDEN:
    return g->hidden;
  case TAP_WIDTH:
    return dflash_geometry_tap_width(g);
  case Q:
    return g->heads * g->head_dim;
  case KV:
    return g->kv_heads * g->head_dim;
  case HEAD_DIM:
    return g->head_dim;
  case INTERMEDIATE:
    return g->intermediate;
  case KERNEL:
    return dflash_geometry_kernel_width(g);
  case BASE_ROWS:
    return 2 * g->conv_kernel;
  case RANK:
    return g->selector_rank;
  case VOCAB:
    return g->vocab;
  default:
    return 1;
  }
}

static bool shape_fits(const DflashTensor *tensor, int kind, int64_t rows, int64_t cols) {
  if (kind == VECTOR) return tensor->rank == 1 && tensor->shape[0] == cols;
  if (kind == BASE)
    return tensor->rank == 3 && tensor->shape[0] == 2 && 2 * tensor->shape[1] == rows && tensor->shape[2] == cols;
  return tensor->rank == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
}

static bool storage_fits(int32_t storage, int kind) {
  if (kind == VECTOR || kind == BASE) return storage == DFLASH_STORAGE_F32;
  if (kind == CODEBOOK && (storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP)) return false;
  return true;
}

static DflashStatus check(const DflashModel *model, const Plan *plan, const DflashTensor *tensor, DflashError *error) {
  const int64_t rows = extent(&model->geometry, plan->rows), cols = extent(&model->geometry, plan->cols);
  if (tensor->data == NULL || !shape_fits(tensor, plan->kind, rows, cols))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "reference: weight %s is absent or not %" PRId64 " x %" PRId64, plan->name, rows, cols);
  const uint64_t bytes = reference_storage_bytes(tensor->storage, rows, cols);
  if (bytes == 0 || bytes != tensor->bytes || !storage_fits(tensor->storage, plan->kind))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "reference: weight %s has storage %d and %" PRIu64 " bytes, which does not fit %" PRId64
                            " x %" PRId64,
                            plan->name, tensor->storage, tensor->bytes, rows, cols);
  return DFLASH_OK;
}

typedef DflashStatus (*TensorFn)(DflashModel *model, const Plan *plan, DflashTensor *tensor, DflashError *error);

static DflashStatus walk_plan(DflashModel *model, const Plan *plan, size_t count, void *weights, TensorFn visit,
                              DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; status == DFLASH_OK && i < count; i++) {
    DflashTensor *tensor = (DflashTensor *)((char *)weights + plan[i].offset);
    const bool no_head = tensor == &model->weights.head && tensor->data == NULL;
    if (!no_head) status = visit(model, &plan[i], tensor, error);
  }
  return status;
}

/* Every tensor that is there; only the head may be absent. */
static DflashStatus walk(DflashModel *model, TensorFn visit, DflashError *error) {
  DflashStatus status =
      walk_plan(model, shared_plan, sizeof shared_plan / sizeof *shared_plan, &model->weights, visit, error);
  for (int64_t layer = 0; status == DFLASH_OK && layer < model->geometry.layers; layer++)
    status = walk_plan(model, layer_plan, sizeof layer_plan / sizeof *layer_plan, &model->layers[layer], visit, error);
  return status;
}

static bool plan_any(const Plan *plan, size_t count, const void *weights, int32_t storage) {
  for (size_t i = 0; i < count; i++) {
    const DflashTensor *tensor = (const DflashTensor *)((const char *)weights + plan[i].offset);
    if (plan[i].kind == MATRIX && tensor->data != NULL && tensor->storage == storage) return true;
  }
  return false;
}

bool reference_tensors_any(const DflashWeights *weights, int64_t layers, int32_t storage) {
  bool any = plan_any(shared_plan, sizeof shared_plan / sizeof *shared_plan, weights, storage);
  for (int64_t layer = 0; !any && weights->layers != NULL && layer < layers; layer++)
    any = plan_any(layer_plan, sizeof layer_plan / sizeof *layer_plan, &weights->layers[layer], storage);
  return any;
}

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static DflashStatus measure(DflashModel *model, const Plan *plan, DflashTensor *tensor, DflashError *error) {
  DflashStatus status = check(model, plan, tensor, error);
  if (status == DFLASH_OK) model->storage_bytes += aligned(tensor->bytes);
  if (status == DFLASH_OK && plan->kind >= MATRIX && tensor->shape[1] > model->widest) model->widest = tensor->shape[1];
  return status;
}

/* storage_bytes counts again, as the end of what is filled. Gains and base kernels are rounded here, once. */
static DflashStatus take(DflashModel *model, const Plan *plan, DflashTensor *tensor, DflashError *error) {
  (void)error;
  unsigned char *place = model->storage + model->storage_bytes;
  memcpy(place, tensor->data, tensor->bytes);
  if (plan->kind < MATRIX) reference_round_value(model, (float *)place, (int64_t)(tensor->bytes / sizeof(float)));
  tensor->data = place;
  model->storage_bytes += aligned(tensor->bytes);
  return DFLASH_OK;
}

DflashStatus reference_tensors_copy(DflashModel *model, const DflashWeights *weights, DflashError *error) {
  model->weights = *weights;
  memcpy(model->layers, weights->layers, (size_t)model->geometry.layers * sizeof *model->layers);
  model->weights.layers = model->layers;
  DflashStatus status = walk(model, measure, error);
  if (status != DFLASH_OK) return status;
  model->storage = dflash_alloc(model->storage_bytes, 1);
  if (model->storage == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for %" PRIu64 " bytes of weights",
                            model->storage_bytes);
  model->storage_bytes = 0;
  return walk(model, take, error);
}
