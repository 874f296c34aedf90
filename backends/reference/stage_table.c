/* What follows from the rows of DFLASH_STAGES. */
#include "reference.h"

#include "base/error.h"
#include "base/memory.h"

#define ROW(id, name, scope, group, rows, width, a, b, c, d, e) \
  [DFLASH_STAGE_##id] = {name,                                  \
                         DFLASH_SCOPE_##scope,                  \
                         DFLASH_ROWS_##rows,                    \
                         DFLASH_WIDTH_##width,                  \
                         {DFLASH_STAGE_##a, DFLASH_STAGE_##b, DFLASH_STAGE_##c, DFLASH_STAGE_##d, DFLASH_STAGE_##e}},
static const StageRow table[DFLASH_STAGE_COUNT] = {DFLASH_STAGES(ROW)};

const StageRow *reference_stage_row(int32_t stage) {
  return stage >= 0 && stage < DFLASH_STAGE_COUNT ? &table[stage] : NULL;
}

int64_t reference_stage_width(const DflashGeometry *geometry, const Sizes *sizes, int32_t stage) {
  switch (table[stage].width) {
  case DFLASH_WIDTH_HIDDEN:
    return geometry->hidden;
  case DFLASH_WIDTH_Q:
    return geometry->heads * geometry->head_dim;
  case DFLASH_WIDTH_KV:
    return geometry->kv_heads * geometry->head_dim;
  case DFLASH_WIDTH_KERNEL:
    return dflash_geometry_kernel_width(geometry);
  case DFLASH_WIDTH_INTERMEDIATE:
    return geometry->intermediate;
  case DFLASH_WIDTH_HEAD:
    return sizes->head_width;
  case DFLASH_WIDTH_RANK:
    return geometry->selector_rank;
  default:
    return geometry->selector_top;
  }
}

int64_t reference_stage_rows(const Sizes *sizes, int32_t stage) {
  switch (table[stage].rows) {
  case DFLASH_ROWS_CONTEXT:
    return sizes->push_rows;
  case DFLASH_ROWS_BLOCK:
    return sizes->rows;
  default:
    return sizes->n_draft;
  }
}

int64_t reference_stage_layers(const DflashGeometry *geometry, int32_t stage) {
  return table[stage].scope == DFLASH_SCOPE_LAYER ? geometry->layers : 1;
}

static const DflashTensor *layer_weight(const DflashLayerWeights *layer, int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_K_PROJ:
  case DFLASH_STAGE_ATTN_K_PROJ:
    return &layer->k_proj;
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_ATTN_V_PROJ:
    return &layer->v_proj;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_K:
    return &layer->k_norm;
  case DFLASH_STAGE_ATTN_NORM:
    return &layer->input_layernorm;
  case DFLASH_STAGE_ATTN_KERNEL:
    return &layer->attention_conv_kernel;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
    return &layer->attention_conv_base;
  case DFLASH_STAGE_ATTN_Q_PROJ:
    return &layer->q_proj;
  case DFLASH_STAGE_ATTN_Q:
    return &layer->q_norm;
  case DFLASH_STAGE_ATTN_O_PROJ:
    return &layer->o_proj;
  case DFLASH_STAGE_MLP_NORM:
    return &layer->post_attention_layernorm;
  case DFLASH_STAGE_MLP_KERNEL:
    return &layer->mlp_conv_kernel;
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    return &layer->mlp_conv_base;
  case DFLASH_STAGE_MLP_GATE:
    return &layer->gate_proj;
  case DFLASH_STAGE_MLP_UP:
    return &layer->up_proj;
  case DFLASH_STAGE_MLP_DOWN:
    return &layer->down_proj;
  default:
    return NULL;
  }
}

const DflashTensor *reference_stage_weight(const DflashModel *model, int32_t stage, int64_t layer) {
  const DflashWeights *weights = &model->weights;
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_FC:
    return &weights->fc;
  case DFLASH_STAGE_CONTEXT_NORM:
    return &weights->hidden_norm;
  case DFLASH_STAGE_FINAL_NORM:
    return &weights->norm;
  case DFLASH_STAGE_HEAD_LOGITS:
    return &weights->head;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    return &weights->selector_hidden;
  case DFLASH_STAGE_SELECT:
    return &weights->predecessor;
  default:
    return layer_weight(&weights->layers[layer], stage);
  }
}

DflashStatus reference_stage_check(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error) {
  const Range stages[] = {{"stage", stage, 0, DFLASH_STAGE_COUNT - 1}};
  DflashStatus status = reference_check_ranges("stage", stages, 1, error);
  if (status != DFLASH_OK) return status;
  const Range layers[] = {{"layer", layer, 0, reference_stage_layers(&model->geometry, stage) - 1}};
  return reference_check_ranges(table[stage].name, layers, 1, error);
}

/* A stage of the drafts reads block rows 0 to n_draft. */
Sizes reference_call_sizes(const DflashStageCall *call) {
  switch (table[call->stage].rows) {
  case DFLASH_ROWS_CONTEXT:
    return (Sizes){.push_rows = call->rows};
  case DFLASH_ROWS_BLOCK:
    return (Sizes){.rows = call->rows, .context_len = call->stage == DFLASH_STAGE_ATTN_MIX ? call->context_len : 0};
  default:
    return (Sizes){.rows = call->n_draft + 1, .n_draft = call->n_draft, .head_width = call->head_width};
  }
}

bool reference_stage_input(const DflashGeometry *geometry, const Sizes *sizes, int32_t stage, int index,
                           int64_t *count) {
  const int32_t source = table[stage].inputs[index];
  switch (source) {
  case DFLASH_STAGE_NONE:
    *count = 0;
    return true;
  case DFLASH_STAGE_TAPS:
    return dflash_mul_i64(sizes->push_rows, dflash_geometry_tap_width(geometry), count);
  case DFLASH_STAGE_RESIDUAL:
  case DFLASH_STAGE_LAST:
    return dflash_mul_i64(sizes->rows, geometry->hidden, count);
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return dflash_mul_i64(sizes->context_len, geometry->kv_heads * geometry->head_dim, count);
  default:
    return dflash_mul_i64(reference_stage_rows(sizes, source), reference_stage_width(geometry, sizes, source), count);
  }
}
