/* The stages of a block: the vocabulary of goldens, parity and timing.
 *
 * DFLASH_STAGES is the one table. Everything else about a stage (its shape for
 * given sizes, its bytes, its operations, its label in reports) is derived from
 * a row of it in model/stage_table.h. Rows stand in data-flow order.
 *
 * X(id, name, scope, group, rows, width, input0, input1, input2, input3, input4)
 *   scope   ONCE or LAYER: one value, or one per layer ("attn.norm/3")
 *   group   the column in which reports sum it (DFLASH_GROUPS)
 *   rows    CONTEXT (rows of the last push), BLOCK (rows of the block), DRAFT (n_draft)
 *   width   elements of a row, see DFLASH_WIDTH_*
 *   inputs  what the stage reads beside weights, in the order in which a backend's
 *           stage() receives them: the name of a stage of the same layer, or
 *           TAPS           [rows, tap_width], what the target hands over
 *           RESIDUAL       [rows, hidden], the residual stream that enters the layer:
 *                          the block's embeddings at layer 0, else mlp.out of the layer before
 *           LAST           [rows, hidden], mlp.out of the last layer
 *           HELD_K, HELD_V [context_len, kv_heads, head_dim], the context of the layer
 */
#ifndef DFLASH_STAGES_H
#define DFLASH_STAGES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DFLASH_STAGES(X)                                                                                        \
  X(CONTEXT_FC, "context.fc", ONCE, CONTEXT, CONTEXT, HIDDEN, TAPS, NONE, NONE, NONE, NONE)                     \
  X(CONTEXT_NORM, "context.norm", ONCE, CONTEXT, CONTEXT, HIDDEN, CONTEXT_FC, NONE, NONE, NONE, NONE)           \
  X(CONTEXT_K_PROJ, "context.k_proj", LAYER, CONTEXT, CONTEXT, KV, CONTEXT_NORM, NONE, NONE, NONE, NONE)        \
  X(CONTEXT_V_PROJ, "context.v_proj", LAYER, CONTEXT, CONTEXT, KV, CONTEXT_NORM, NONE, NONE, NONE, NONE)        \
  X(CONTEXT_K, "context.k", LAYER, CONTEXT, CONTEXT, KV, CONTEXT_K_PROJ, NONE, NONE, NONE, NONE)                \
  X(ATTN_NORM, "attn.norm", LAYER, ATTN_CONV_IN, BLOCK, HIDDEN, RESIDUAL, NONE, NONE, NONE, NONE)               \
  X(ATTN_KERNEL, "attn.kernel", LAYER, ATTN_CONV_IN, BLOCK, KERNEL, ATTN_NORM, NONE, NONE, NONE, NONE)          \
  X(ATTN_CONV_IN, "attn.conv_in", LAYER, ATTN_CONV_IN, BLOCK, HIDDEN, ATTN_NORM, ATTN_KERNEL, NONE, NONE, NONE) \
  X(ATTN_Q_PROJ, "attn.q_proj", LAYER, QKV, BLOCK, Q, ATTN_CONV_IN, NONE, NONE, NONE, NONE)                     \
  X(ATTN_K_PROJ, "attn.k_proj", LAYER, QKV, BLOCK, KV, ATTN_CONV_IN, NONE, NONE, NONE, NONE)                    \
  X(ATTN_V_PROJ, "attn.v_proj", LAYER, QKV, BLOCK, KV, ATTN_CONV_IN, NONE, NONE, NONE, NONE)                    \
  X(ATTN_Q, "attn.q", LAYER, QK_NORM_ROPE, BLOCK, Q, ATTN_Q_PROJ, NONE, NONE, NONE, NONE)                       \
  X(ATTN_K, "attn.k", LAYER, QK_NORM_ROPE, BLOCK, KV, ATTN_K_PROJ, NONE, NONE, NONE, NONE)                      \
  X(ATTN_MIX, "attn.mix", LAYER, ATTENTION, BLOCK, Q, ATTN_Q, ATTN_K, ATTN_V_PROJ, HELD_K, HELD_V)              \
  X(ATTN_O_PROJ, "attn.o_proj", LAYER, O_CONV, BLOCK, HIDDEN, ATTN_MIX, NONE, NONE, NONE, NONE)                 \
  X(ATTN_OUT, "attn.out", LAYER, O_CONV, BLOCK, HIDDEN, RESIDUAL, ATTN_O_PROJ, ATTN_KERNEL, NONE, NONE)         \
  X(MLP_NORM, "mlp.norm", LAYER, MLP_CONV_IN, BLOCK, HIDDEN, ATTN_OUT, NONE, NONE, NONE, NONE)                  \
  X(MLP_KERNEL, "mlp.kernel", LAYER, MLP_CONV_IN, BLOCK, KERNEL, MLP_NORM, NONE, NONE, NONE, NONE)              \
  X(MLP_CONV_IN, "mlp.conv_in", LAYER, MLP_CONV_IN, BLOCK, HIDDEN, MLP_NORM, MLP_KERNEL, NONE, NONE, NONE)      \
  X(MLP_GATE, "mlp.gate", LAYER, GATE_UP, BLOCK, INTERMEDIATE, MLP_CONV_IN, NONE, NONE, NONE, NONE)             \
  X(MLP_UP, "mlp.up", LAYER, GATE_UP, BLOCK, INTERMEDIATE, MLP_CONV_IN, NONE, NONE, NONE, NONE)                 \
  X(MLP_ACT, "mlp.act", LAYER, GATE_UP, BLOCK, INTERMEDIATE, MLP_GATE, MLP_UP, NONE, NONE, NONE)                \
  X(MLP_DOWN, "mlp.down", LAYER, DOWN_CONV, BLOCK, HIDDEN, MLP_ACT, NONE, NONE, NONE, NONE)                     \
  X(MLP_OUT, "mlp.out", LAYER, DOWN_CONV, BLOCK, HIDDEN, ATTN_OUT, MLP_DOWN, MLP_KERNEL, NONE, NONE)            \
  X(FINAL_NORM, "final.norm", ONCE, FINAL, BLOCK, HIDDEN, LAST, NONE, NONE, NONE, NONE)                         \
  X(HEAD_LOGITS, "head.logits", ONCE, HEAD, DRAFT, HEAD, FINAL_NORM, NONE, NONE, NONE, NONE)                    \
  X(SELECTOR_HIDDEN, "selector.hidden", ONCE, FINAL, DRAFT, RANK, FINAL_NORM, NONE, NONE, NONE, NONE)           \
  X(SELECT, "select", ONCE, SELECT, DRAFT, TOP, HEAD_LOGITS, SELECTOR_HIDDEN, NONE, NONE, NONE)

/* The columns of timing reports, in order: X(id, label). */
#define DFLASH_GROUPS(X)                 \
  X(CONTEXT, "context")                  \
  X(ATTN_CONV_IN, "norm+kernel+conv")    \
  X(QKV, "qkv")                          \
  X(QK_NORM_ROPE, "qk norm+rope")        \
  X(ATTENTION, "attention")              \
  X(O_CONV, "o+conv")                    \
  X(MLP_CONV_IN, "mlp norm+kernel+conv") \
  X(GATE_UP, "gate-up+silu")             \
  X(DOWN_CONV, "down+conv")              \
  X(FINAL, "final norm+selector")        \
  X(HEAD, "head")                        \
  X(SELECT, "select")

enum {
#define DFLASH_STAGE_ENUM(id, ...) DFLASH_STAGE_##id,
  DFLASH_STAGES(DFLASH_STAGE_ENUM)
#undef DFLASH_STAGE_ENUM
      DFLASH_STAGE_COUNT,
  /* sources that are no stage */
  DFLASH_STAGE_TAPS = 64,
  DFLASH_STAGE_RESIDUAL,
  DFLASH_STAGE_LAST,
  DFLASH_STAGE_HELD_K,
  DFLASH_STAGE_HELD_V,
  DFLASH_STAGE_NONE = -1
};

enum {
#define DFLASH_GROUP_ENUM(id, label) DFLASH_GROUP_##id,
  DFLASH_GROUPS(DFLASH_GROUP_ENUM)
#undef DFLASH_GROUP_ENUM
      DFLASH_GROUP_COUNT
};

enum { DFLASH_SCOPE_ONCE, DFLASH_SCOPE_LAYER };
enum { DFLASH_ROWS_CONTEXT, DFLASH_ROWS_BLOCK, DFLASH_ROWS_DRAFT };
enum {
  DFLASH_WIDTH_HIDDEN,       /* hidden */
  DFLASH_WIDTH_Q,            /* heads * head_dim */
  DFLASH_WIDTH_KV,           /* kv_heads * head_dim */
  DFLASH_WIDTH_KERNEL,       /* 2 * conv_kernel * groups: [side][tap][group] */
  DFLASH_WIDTH_INTERMEDIATE, /* intermediate */
  DFLASH_WIDTH_HEAD,         /* head_width */
  DFLASH_WIDTH_RANK,         /* selector_rank */
  DFLASH_WIDTH_TOP           /* selector_top */
};

/* Inputs that a stage can have at most. */
#define DFLASH_STAGE_INPUTS 5

#ifdef __cplusplus
}
#endif
#endif
