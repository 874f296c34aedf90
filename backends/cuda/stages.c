/* The kernels of every stage. */
#include <math.h>

#include "sequence.h"

static void heads(CudaRun *run, int32_t stage, int64_t layer, CudaAddress weight, int64_t count) {
  const CudaBlock *b = run->block;
  const HeadsArgs a = {.x = cuda_block_stage(b, cuda_stage_input(stage, 0), layer),
                       .w = weight,
                       .table = b->table,
                       .y = cuda_block_stage(b, stage, layer),
                       .rows = run->rows,
                       .heads = (int32_t)count,
                       .rotate = dflash_geometry_rotary(&run->model->geometry, layer)};
  cuda_run_heads(run, &a);
}

/* attn.conv_in and mlp.conv_in: side 0, nothing added. attn.out and mlp.out: side 1, the residual. */
static void convolve(CudaRun *run, const ConvArgs *given) {
  const DflashGeometry *g = &run->model->geometry;
  ConvArgs a = *given;
  a.stamp = cuda_run_stamp(run);
  a.hidden = g->hidden;
  a.group = (int32_t)g->conv_group;
  a.groups = (int32_t)dflash_geometry_groups(g);
  a.taps = (int32_t)g->conv_kernel;
  run->prepared = 0;
  cuda_run_launch(run, CUDA_KERNEL_conv, (CudaGrid){cuda_groups(g->hidden, CUDA_THREADS), (uint32_t)run->rows, 1, 0},
                  &a);
}

static void activate(CudaRun *run, int64_t layer) {
  const CudaBlock *b = run->block;
  const ActArgs a = {cuda_run_stamp(run), cuda_block_stage(b, DFLASH_STAGE_MLP_GATE, layer),
                     cuda_block_stage(b, DFLASH_STAGE_MLP_UP, layer), cuda_block_stage(b, DFLASH_STAGE_MLP_ACT, layer),
                     run->rows * run->model->geometry.intermediate};
  run->prepared = 0;
  cuda_run_launch(run, CUDA_KERNEL_act, (CudaGrid){cuda_groups(a.count, CUDA_THREADS), 1, 1, 0}, &a);
}

/* ---- attention ---- */

uint64_t cuda_attend_shared(const DflashGeometry *g) {
  return (uint64_t)(CUDA_QUERIES * g->head_dim + CUDA_KEYS * (g->head_dim + 1) + CUDA_QUERIES * CUDA_KEYS) *
         sizeof(float);
}

static void attention(CudaRun *run, int64_t layer) {
  const DflashGeometry *g = &run->model->geometry;
  const CudaBlock *b = run->block;
  const int32_t rows = (int32_t)run->rows;
  const AttendArgs a = {.stamp = cuda_run_stamp(run),
                        .q = cuda_block_stage(b, DFLASH_STAGE_ATTN_Q, layer),
                        .k = cuda_block_stage(b, DFLASH_STAGE_ATTN_K, layer),
                        .v = cuda_block_stage(b, DFLASH_STAGE_ATTN_V_PROJ, layer),
                        .visible = cuda_block_visible(b, layer),
                        .sums = b->sums,
                        .mixes = b->mixes,
                        .rows = rows,
                        .heads = (int32_t)g->heads,
                        .kv_heads = (int32_t)g->kv_heads,
                        .head_dim = (int32_t)g->head_dim,
                        .parts = b->parts,
                        .scale = (float)(1 / sqrt((double)g->head_dim))};
  const MixArgs m = {b->sums,        b->mixes,   cuda_block_stage(b, DFLASH_STAGE_ATTN_MIX, layer),
                     rows * a.heads, a.head_dim, a.parts};
  const uint32_t tiles = cuda_groups(run->rows * (g->heads / g->kv_heads), CUDA_QUERIES);
  run->prepared = 0;
  cuda_run_launch(run, CUDA_KERNEL_attend,
                  (CudaGrid){(uint32_t)a.kv_heads, (uint32_t)a.parts, tiles, (uint32_t)cuda_attend_shared(g)}, &a);
  cuda_run_launch(run, CUDA_KERNEL_mix, (CudaGrid){cuda_groups(m.queries, CUDA_WARPS), 1, 1, 0}, &m);
}

/* ---- one stage ---- */

/* A product of a block's rows by the whole matrix. */
static void product(CudaRun *run, const CudaMatrix *matrix, int32_t stage, int64_t layer) {
  const CudaAddress x = cuda_block_stage(run->block, cuda_stage_input(stage, 0), layer);
  cuda_run_product(run, matrix, x, cuda_block_stage(run->block, stage, layer), run->rows, matrix->rows);
}

static void draft_product(CudaRun *run, const CudaMatrix *matrix, int32_t stage, int64_t out_rows) {
  const CudaBlock *b = run->block;
  const CudaAddress first = b->stages[DFLASH_STAGE_FINAL_NORM] + (uint64_t)run->model->geometry.hidden * sizeof(float);
  cuda_run_product(run, matrix, first, b->stages[stage], run->n_draft, out_rows);
}

static void convolution(CudaRun *run, int32_t stage, int64_t layer, CudaAddress base) {
  const CudaBlock *b = run->block;
  const CudaAddress x = cuda_block_stage(b, cuda_stage_input(stage, 0), layer);
  convolve(run, &(ConvArgs){.x = x,
                            .d = cuda_block_stage(b, cuda_stage_input(stage, 1), layer),
                            .base = base,
                            .y = cuda_block_stage(b, stage, layer)});
}

static void residual(CudaRun *run, int32_t stage, int64_t layer, CudaAddress base) {
  const CudaBlock *b = run->block;
  const CudaAddress before = stage == DFLASH_STAGE_ATTN_OUT ? cuda_block_residual(b, layer)
                                                            : cuda_block_stage(b, DFLASH_STAGE_ATTN_OUT, layer);
  convolve(run, &(ConvArgs){.x = cuda_block_stage(b, cuda_stage_input(stage, 1), layer),
                            .d = cuda_block_stage(b, cuda_stage_input(stage, 2), layer),
                            .base = base,
                            .residual = before,
                            .side = 1,
                            .y = cuda_block_stage(b, stage, layer)});
}

static void norm(CudaRun *run, CudaAddress x, CudaAddress weight, int32_t stage, int64_t layer) {
  cuda_run_norm(run, x, weight, cuda_block_stage(run->block, stage, layer), run->rows);
}

static void attention_stage(CudaRun *run, const CudaLayer *l, int32_t stage, int64_t layer) {
  switch (stage) {
  case DFLASH_STAGE_ATTN_NORM:
    norm(run, cuda_block_residual(run->block, layer), l->input_norm, stage, layer);
    break;
  case DFLASH_STAGE_ATTN_KERNEL:
    product(run, &l->attn_kernel, stage, layer);
    break;
  case DFLASH_STAGE_ATTN_CONV_IN:
    convolution(run, stage, layer, l->attn_base);
    break;
  case DFLASH_STAGE_ATTN_Q_PROJ:
    product(run, &l->q, stage, layer);
    break;
  case DFLASH_STAGE_ATTN_K_PROJ:
    product(run, &l->k, stage, layer);
    break;
  case DFLASH_STAGE_ATTN_V_PROJ:
    product(run, &l->v, stage, layer);
    break;
  case DFLASH_STAGE_ATTN_Q:
    heads(run, stage, layer, l->q_norm, run->model->geometry.heads);
    break;
  case DFLASH_STAGE_ATTN_K:
    heads(run, stage, layer, l->k_norm, run->model->geometry.kv_heads);
    break;
  case DFLASH_STAGE_ATTN_MIX:
    attention(run, layer);
    break;
  case DFLASH_STAGE_ATTN_O_PROJ:
    product(run, &l->o, stage, layer);
    break;
  default:
    residual(run, stage, layer, l->attn_base);
  }
}

static void mlp_stage(CudaRun *run, const CudaLayer *l, int32_t stage, int64_t layer) {
  switch (stage) {
  case DFLASH_STAGE_MLP_NORM:
    norm(run, cuda_block_stage(run->block, DFLASH_STAGE_ATTN_OUT, layer), l->post_norm, stage, layer);
    break;
  case DFLASH_STAGE_MLP_KERNEL:
    product(run, &l->mlp_kernel, stage, layer);
    break;
  case DFLASH_STAGE_MLP_CONV_IN:
    convolution(run, stage, layer, l->mlp_base);
    break;
  case DFLASH_STAGE_MLP_GATE:
    product(run, &l->gate, stage, layer);
    break;
  case DFLASH_STAGE_MLP_UP:
    product(run, &l->up, stage, layer);
    break;
  case DFLASH_STAGE_MLP_ACT:
    activate(run, layer);
    break;
  case DFLASH_STAGE_MLP_DOWN:
    product(run, &l->down, stage, layer);
    break;
  default:
    residual(run, stage, layer, l->mlp_base);
  }
}

static void last_stage(CudaRun *run, int32_t stage) {
  const DflashModel *m = run->model;
  switch (stage) {
  case DFLASH_STAGE_FINAL_NORM:
    norm(run, cuda_block_stage(run->block, DFLASH_STAGE_MLP_OUT, m->geometry.layers - 1), m->norm, stage, 0);
    break;
  case DFLASH_STAGE_HEAD_LOGITS:
    draft_product(run, &m->head, stage, run->head_width);
    break;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    draft_product(run, &m->selector, stage, m->selector.rows);
    break;
  default:
    cuda_run_tokens(run);
  }
}

void cuda_run_stage(CudaRun *run, int32_t stage, int64_t layer) {
  cuda_run_span(run, stage, layer);
  if (stage >= DFLASH_STAGE_FINAL_NORM)
    last_stage(run, stage);
  else if (stage >= DFLASH_STAGE_MLP_NORM)
    mlp_stage(run, &run->model->layers[layer], stage, layer);
  else
    attention_stage(run, &run->model->layers[layer], stage, layer);
}
