#include "parts.h"

#include <stddef.h>

enum { ONE, HIDDEN, QUERY, KV, INTERMEDIATE, KERNEL, BASE, HEAD_DIM, TAPS, RANK, VOCAB };

static int64_t dimension(const DflashGeometry *g, int which) {
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

typedef struct PartRow {
  const char *name;
  int kind, rows, cols;
  size_t tensor, member; /* in the weights, in the model; of a layer or of the whole */
} PartRow;

#define WHOLE(name, kind, rows, cols, member) \
  { name, kind, rows, cols, offsetof(DflashWeights, member), offsetof(DflashModel, member) }
#define LAYER(name, kind, rows, cols, tensor, member) \
  { name, kind, rows, cols, offsetof(DflashLayerWeights, tensor), offsetof(DflashLayer, member) }

static const PartRow WHOLE_PARTS[] = {
    WHOLE("fc", PART_MATRIX, HIDDEN, TAPS, fc),
    WHOLE("hidden_norm", PART_VECTOR, ONE, HIDDEN, hidden_norm),
    WHOLE("norm", PART_VECTOR, ONE, HIDDEN, norm),
    WHOLE("selector hidden_projection", PART_MATRIX, RANK, HIDDEN, selector_hidden),
    WHOLE("predecessor codebook", PART_CODEBOOK, VOCAB, RANK, predecessor),
    WHOLE("successor codebook", PART_CODEBOOK, VOCAB, RANK, successor),
    WHOLE("head", PART_MATRIX, VOCAB, HIDDEN, head),
};

static const PartRow LAYER_PARTS[] = {
    LAYER("input_layernorm", PART_VECTOR, ONE, HIDDEN, input_layernorm, input_norm),
    LAYER("post_attention_layernorm", PART_VECTOR, ONE, HIDDEN, post_attention_layernorm, post_norm),
    LAYER("q_norm", PART_VECTOR, ONE, HEAD_DIM, q_norm, q_norm),
    LAYER("k_norm", PART_VECTOR, ONE, HEAD_DIM, k_norm, k_norm),
    LAYER("attention_conv base_kernel", PART_VECTOR, BASE, HIDDEN, attention_conv_base, attention_base),
    LAYER("mlp_conv base_kernel", PART_VECTOR, BASE, HIDDEN, mlp_conv_base, mlp_base),
    LAYER("q_proj", PART_MATRIX, QUERY, HIDDEN, q_proj, q),
    LAYER("k_proj", PART_MATRIX, KV, HIDDEN, k_proj, k),
    LAYER("v_proj", PART_MATRIX, KV, HIDDEN, v_proj, v),
    LAYER("o_proj", PART_MATRIX, HIDDEN, QUERY, o_proj, o),
    LAYER("gate_proj", PART_MATRIX, INTERMEDIATE, HIDDEN, gate_proj, gate),
    LAYER("up_proj", PART_MATRIX, INTERMEDIATE, HIDDEN, up_proj, up),
    LAYER("down_proj", PART_MATRIX, HIDDEN, INTERMEDIATE, down_proj, down),
    LAYER("attention_conv kernel_projection", PART_MATRIX, KERNEL, HIDDEN, attention_conv_kernel, attention_kernel),
    LAYER("mlp_conv kernel_projection", PART_MATRIX, KERNEL, HIDDEN, mlp_conv_kernel, mlp_kernel),
};

enum {
  WHOLE_COUNT = sizeof WHOLE_PARTS / sizeof WHOLE_PARTS[0],
  LAYER_COUNT = sizeof LAYER_PARTS / sizeof LAYER_PARTS[0]
};

int64_t dflash_part_count(const DflashGeometry *geometry) { return WHOLE_COUNT + geometry->layers * LAYER_COUNT; }

DflashPart dflash_part_at(const DflashGeometry *geometry, const DflashWeights *weights, DflashModel *model,
                          int64_t index) {
  const int whole = index < WHOLE_COUNT;
  const int64_t layer = whole ? 0 : (index - WHOLE_COUNT) / LAYER_COUNT;
  const PartRow *row = whole ? &WHOLE_PARTS[index] : &LAYER_PARTS[(index - WHOLE_COUNT) % LAYER_COUNT];
  DflashPart part = {.name = row->name,
                     .layer = layer,
                     .kind = row->kind,
                     .rows = dimension(geometry, row->rows),
                     .cols = dimension(geometry, row->cols)};
  if (weights) {
    const char *tensors = whole ? (const char *)weights : (const char *)&weights->layers[layer];
    part.tensor = (const DflashTensor *)(tensors + row->tensor);
    if (whole && row->member == offsetof(DflashModel, head) && !part.tensor->data) part.tensor = NULL;
  }
  if (model) {
    char *members = whole ? (char *)model : (char *)&model->layers[layer];
    if (row->kind == PART_MATRIX) part.matrix = (DflashMatrix *)(members + row->member);
    if (row->kind == PART_VECTOR) part.vector = (const float **)(members + row->member);
    if (row->kind == PART_CODEBOOK) part.codebook = (DflashCodebook *)(members + row->member);
  }
  return part;
}
