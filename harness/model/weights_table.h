/* The one list of a drafter's tensors, and the sizes that their shapes are made of. Private to this module. */
#ifndef DFLASH_MODEL_WEIGHTS_TABLE_H
#define DFLASH_MODEL_WEIGHTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/weights.h"

/* Sizes: X(id, text in messages). */
#define DFLASH_SIZES(X)                                    \
  X(NONE, "1")                                             \
  X(HIDDEN, "hidden")                                      \
  X(INTERMEDIATE, "intermediate")                          \
  X(TAP_WIDTH, "taps * hidden")                            \
  X(Q_WIDTH, "heads * head_dim")                           \
  X(KV_WIDTH, "kv_heads * head_dim")                       \
  X(HEAD_DIM, "head_dim")                                  \
  X(SIDES, "2")                                            \
  X(CONV_KERNEL, "conv_kernel")                            \
  X(KERNEL_WIDTH, "2 * conv_kernel * hidden / conv_group") \
  X(RANK, "selector_rank")                                 \
  X(TOP, "selector_top")                                   \
  X(VOCAB, "vocab")

enum {
#define DFLASH_SIZE_ENUM(id, text) DFLASH_SIZE_##id,
  DFLASH_SIZES(DFLASH_SIZE_ENUM)
#undef DFLASH_SIZE_ENUM
      DFLASH_SIZE_COUNT
};

/* *value; false when the product overflows. Fields must be positive and conv_group divide hidden. */
bool dflash_size_value(const DflashGeometry *geometry, int size, int64_t *value);
const char *dflash_size_text(int size);

/* X(member, name, kind, storage in a sidecar, sizes of its dimensions, NONE past the last) */
#define DFLASH_MODEL_WEIGHTS(X)                                                                        \
  X(fc, "fc.weight", MATRIX, Q8_2F, HIDDEN, TAP_WIDTH, NONE)                                           \
  X(hidden_norm, "hidden_norm.weight", VECTOR, F32, HIDDEN, NONE, NONE)                                \
  X(norm, "norm.weight", VECTOR, F32, HIDDEN, NONE, NONE)                                              \
  X(selector_hidden, "candidate_selector.hidden_projection.weight", MATRIX, Q8_2F, RANK, HIDDEN, NONE) \
  X(predecessor, "candidate_selector.predecessor_codebook", CODEBOOK, F16, VOCAB, RANK, NONE)          \
  X(successor, "candidate_selector.successor_codebook", CODEBOOK, F16, VOCAB, RANK, NONE)

#define DFLASH_LAYER_WEIGHTS(X)                                                                                  \
  X(input_layernorm, "input_layernorm.weight", VECTOR, F32, HIDDEN, NONE, NONE)                                  \
  X(post_attention_layernorm, "post_attention_layernorm.weight", VECTOR, F32, HIDDEN, NONE, NONE)                \
  X(q_proj, "self_attn.q_proj.weight", MATRIX, Q4TP, Q_WIDTH, HIDDEN, NONE)                                      \
  X(k_proj, "self_attn.k_proj.weight", MATRIX, Q4TP, KV_WIDTH, HIDDEN, NONE)                                     \
  X(v_proj, "self_attn.v_proj.weight", MATRIX, Q4TP, KV_WIDTH, HIDDEN, NONE)                                     \
  X(o_proj, "self_attn.o_proj.weight", MATRIX, Q4TP, HIDDEN, Q_WIDTH, NONE)                                      \
  X(q_norm, "self_attn.q_norm.weight", VECTOR, F32, HEAD_DIM, NONE, NONE)                                        \
  X(k_norm, "self_attn.k_norm.weight", VECTOR, F32, HEAD_DIM, NONE, NONE)                                        \
  X(gate_proj, "mlp.gate_proj.weight", MATRIX, Q4TP, INTERMEDIATE, HIDDEN, NONE)                                 \
  X(up_proj, "mlp.up_proj.weight", MATRIX, Q4TP, INTERMEDIATE, HIDDEN, NONE)                                     \
  X(down_proj, "mlp.down_proj.weight", MATRIX, Q4TP, HIDDEN, INTERMEDIATE, NONE)                                 \
  X(attention_conv_base, "attention_conv.base_kernel", BASE, F32, SIDES, CONV_KERNEL, HIDDEN)                    \
  X(attention_conv_kernel, "attention_conv.kernel_projection.weight", MATRIX, Q8_2F, KERNEL_WIDTH, HIDDEN, NONE) \
  X(mlp_conv_base, "mlp_conv.base_kernel", BASE, F32, SIDES, CONV_KERNEL, HIDDEN)                                \
  X(mlp_conv_kernel, "mlp_conv.kernel_projection.weight", MATRIX, Q8_2F, KERNEL_WIDTH, HIDDEN, NONE)

typedef struct DflashWeightRow {
  size_t offset; /* into DflashWeights, or DflashLayerWeights */
  const char *name;
  int32_t kind, storage;
  int32_t sizes[3]; /* DFLASH_SIZE_* */
} DflashWeightRow;

enum {
#define DFLASH_COUNT_ONE(...) +1
  DFLASH_MODEL_WEIGHT_COUNT = 0 DFLASH_MODEL_WEIGHTS(DFLASH_COUNT_ONE),
  DFLASH_LAYER_WEIGHT_COUNT = 0 DFLASH_LAYER_WEIGHTS(DFLASH_COUNT_ONE)
#undef DFLASH_COUNT_ONE
};

/* Row of tensor `index` of a model with any number of layers; *layer is -1 for those of the whole model. */
const DflashWeightRow *dflash_weight_row(int64_t index, int64_t *layer);
const DflashWeightRow *dflash_weight_head_row(void);

#endif
