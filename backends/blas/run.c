#include "run.h"

static void multiply(const DflashRun *run, int32_t stage, int64_t layer, const float *x, int64_t rows, float *out) {
  const DflashMatrix *matrix = dflash_model_matrix(run->model, stage, layer);
  const DflashProduct product = {run->model->options.kernel, run->model->pool, run->workspace};
  const int64_t outputs = stage == DFLASH_STAGE_HEAD_LOGITS ? run->head_width : matrix->rows;
  dflash_matrix_multiply(&product, matrix, x, rows, outputs, out);
}

typedef struct Silu {
  const DflashKernel *kernel;
  const float *gate, *up;
  float *out;
} Silu;

static void silu_range(void *context, int64_t begin, int64_t end, int worker) {
  const Silu *s = context;
  (void)worker;
  s->kernel->silu(s->gate + begin, s->up + begin, s->out + begin, end - begin);
}

static void activate(const DflashRun *run, const float *gate, const float *up, float *out) {
  Silu silu = {run->model->options.kernel, gate, up, out};
  dflash_pool_run(run->model->pool, run->rows * run->model->geometry.intermediate, 16384, silu_range, &silu);
}

static DflashStatus select_tokens(const DflashRun *run, const float *const *in, float *scores, DflashError *error) {
  const DflashSelectCall call = {.model = run->model,
                                 .logits = in[0],
                                 .hidden = in[1],
                                 .n_draft = run->n_draft,
                                 .head_width = run->head_width,
                                 .anchor_token = run->anchor_token,
                                 .scores = scores,
                                 .tokens = run->tokens};
  return dflash_select(run->selection, &call, error);
}

DflashStatus dflash_run_stage(const DflashRun *run, int32_t stage, int64_t layer, const float *const *in, float *out,
                              DflashError *error) {
  const DflashModel *model = run->model;
  const DflashGeometry *g = &model->geometry;
  const DflashLayer *l = &model->layers[layer];
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
    dflash_run_norm(run, in[0], model->hidden_norm, out);
    break;
  case DFLASH_STAGE_FINAL_NORM:
    dflash_run_norm(run, in[0], model->norm, out);
    break;
  case DFLASH_STAGE_ATTN_NORM:
    dflash_run_norm(run, in[0], l->input_norm, out);
    break;
  case DFLASH_STAGE_MLP_NORM:
    dflash_run_norm(run, in[0], l->post_norm, out);
    break;
  case DFLASH_STAGE_ATTN_Q:
    dflash_run_heads(run, layer, in[0], g->heads, l->q_norm, out);
    break;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_K:
    dflash_run_heads(run, layer, in[0], g->kv_heads, l->k_norm, out);
    break;
  case DFLASH_STAGE_ATTN_CONV_IN:
    dflash_run_conv(run, in[0], in[1], l->attention_base, 0, NULL, out);
    break;
  case DFLASH_STAGE_MLP_CONV_IN:
    dflash_run_conv(run, in[0], in[1], l->mlp_base, 0, NULL, out);
    break;
  case DFLASH_STAGE_ATTN_OUT:
    dflash_run_conv(run, in[1], in[2], l->attention_base, 1, in[0], out);
    break;
  case DFLASH_STAGE_MLP_OUT:
    dflash_run_conv(run, in[1], in[2], l->mlp_base, 1, in[0], out);
    break;
  case DFLASH_STAGE_ATTN_MIX:
    dflash_run_attention(run, layer, in[0], in[1], in[2], out);
    break;
  case DFLASH_STAGE_MLP_ACT:
    activate(run, in[0], in[1], out);
    break;
  case DFLASH_STAGE_HEAD_LOGITS:
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    multiply(run, stage, layer, in[0] + g->hidden, run->n_draft, out);
    break;
  case DFLASH_STAGE_SELECT:
    return select_tokens(run, in, out, error);
  default:
    multiply(run, stage, layer, in[0], run->rows, out);
  }
  return DFLASH_OK;
}
