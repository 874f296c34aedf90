#include "model/stage_table_work.h"

#define IN_MODEL(work, member) \
  { DFLASH_WORK_##work, DFLASH_WEIGHT_MODEL, offsetof(DflashWeights, member) }
#define IN_LAYER(work, member) \
  { DFLASH_WORK_##work, DFLASH_WEIGHT_LAYER, offsetof(DflashLayerWeights, member) }
#define NO_WEIGHT(work) \
  { DFLASH_WORK_##work, DFLASH_WEIGHT_NONE, 0 }

static const DflashStageWork works[DFLASH_STAGE_COUNT] = {
    [DFLASH_STAGE_CONTEXT_FC] = IN_MODEL(MATRIX, fc),
    [DFLASH_STAGE_CONTEXT_NORM] = IN_MODEL(NORM, hidden_norm),
    [DFLASH_STAGE_CONTEXT_K_PROJ] = IN_LAYER(MATRIX, k_proj),
    [DFLASH_STAGE_CONTEXT_V_PROJ] = IN_LAYER(MATRIX, v_proj),
    [DFLASH_STAGE_CONTEXT_K] = IN_LAYER(HEAD_NORM, k_norm),
    [DFLASH_STAGE_ATTN_NORM] = IN_LAYER(NORM, input_layernorm),
    [DFLASH_STAGE_ATTN_KERNEL] = IN_LAYER(MATRIX, attention_conv_kernel),
    [DFLASH_STAGE_ATTN_CONV_IN] = IN_LAYER(CONV_IN, attention_conv_base),
    [DFLASH_STAGE_ATTN_Q_PROJ] = IN_LAYER(MATRIX, q_proj),
    [DFLASH_STAGE_ATTN_K_PROJ] = IN_LAYER(MATRIX, k_proj),
    [DFLASH_STAGE_ATTN_V_PROJ] = IN_LAYER(MATRIX, v_proj),
    [DFLASH_STAGE_ATTN_Q] = IN_LAYER(HEAD_NORM, q_norm),
    [DFLASH_STAGE_ATTN_K] = IN_LAYER(HEAD_NORM, k_norm),
    [DFLASH_STAGE_ATTN_MIX] = NO_WEIGHT(ATTENTION),
    [DFLASH_STAGE_ATTN_O_PROJ] = IN_LAYER(MATRIX, o_proj),
    [DFLASH_STAGE_ATTN_OUT] = IN_LAYER(CONV_OUT, attention_conv_base),
    [DFLASH_STAGE_MLP_NORM] = IN_LAYER(NORM, post_attention_layernorm),
    [DFLASH_STAGE_MLP_KERNEL] = IN_LAYER(MATRIX, mlp_conv_kernel),
    [DFLASH_STAGE_MLP_CONV_IN] = IN_LAYER(CONV_IN, mlp_conv_base),
    [DFLASH_STAGE_MLP_GATE] = IN_LAYER(MATRIX, gate_proj),
    [DFLASH_STAGE_MLP_UP] = IN_LAYER(MATRIX, up_proj),
    [DFLASH_STAGE_MLP_ACT] = NO_WEIGHT(ACT),
    [DFLASH_STAGE_MLP_DOWN] = IN_LAYER(MATRIX, down_proj),
    [DFLASH_STAGE_MLP_OUT] = IN_LAYER(CONV_OUT, mlp_conv_base),
    [DFLASH_STAGE_FINAL_NORM] = IN_MODEL(NORM, norm),
    [DFLASH_STAGE_HEAD_LOGITS] = IN_MODEL(MATRIX, head),
    [DFLASH_STAGE_SELECTOR_HIDDEN] = IN_MODEL(MATRIX, selector_hidden),
    [DFLASH_STAGE_SELECT] = IN_MODEL(SELECT, predecessor),
};

const DflashStageWork *dflash_stage_work(int32_t stage) {
  return stage >= 0 && stage < DFLASH_STAGE_COUNT ? &works[stage] : NULL;
}

int dflash_stage_is_matrix(int32_t stage) {
  const DflashStageWork *work = dflash_stage_work(stage);
  return work && work->work == DFLASH_WORK_MATRIX;
}

const DflashTensor *dflash_stage_weight(const DflashWeights *weights, int32_t stage, int64_t layer) {
  const DflashStageWork *work = dflash_stage_work(stage);
  if (!work || work->owner == DFLASH_WEIGHT_NONE) return NULL;
  const char *base = work->owner == DFLASH_WEIGHT_MODEL ? (const char *)weights : (const char *)&weights->layers[layer];
  return (const DflashTensor *)(const void *)(base + work->offset);
}
