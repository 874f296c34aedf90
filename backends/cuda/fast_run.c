/* A block by the fast kernel. */
#include <math.h>

#include "block.h"

bool cuda_fast_takes(const DflashModel *model, int64_t rows) {
  return rows <= FAST_ROWS ? model->fast.kernel != NULL : rows <= FAST_TALL_ROWS && model->fast.tall;
}

int cuda_fast_kernel_rows(int64_t rows) { return rows <= FAST_ROWS ? FAST_ROWS : FAST_TALL_ROWS; }

int64_t cuda_fast_input_rows(const DflashModel *model, int64_t rows) {
  return cuda_fast_takes(model, rows) ? cuda_fast_kernel_rows(rows) : rows;
}

/* ---- spans: the kernel stamps its start, the end of its preparation, and the end of nine pieces of each layer ---- */

enum { PIECES = 9 };

/* The pieces of a layer by the stage that they are reported under. */
static const struct {
  int32_t stage;
  uint32_t pieces;
} spans[] = {{DFLASH_STAGE_ATTN_KERNEL, 1}, {DFLASH_STAGE_ATTN_Q_PROJ, 1}, {DFLASH_STAGE_ATTN_MIX, 2},
             {DFLASH_STAGE_ATTN_O_PROJ, 1}, {DFLASH_STAGE_MLP_KERNEL, 1},  {DFLASH_STAGE_MLP_GATE, 1},
             {DFLASH_STAGE_MLP_DOWN, 2}};

int32_t cuda_fast_span(int32_t stage) {
  if (stage >= DFLASH_STAGE_FINAL_NORM) return stage == DFLASH_STAGE_SELECT ? stage : (int)DFLASH_STAGE_HEAD_LOGITS;
  if (stage >= DFLASH_STAGE_MLP_DOWN) return DFLASH_STAGE_MLP_DOWN;
  if (stage >= DFLASH_STAGE_MLP_CONV_IN) return DFLASH_STAGE_MLP_GATE;
  if (stage >= DFLASH_STAGE_MLP_NORM) return DFLASH_STAGE_MLP_KERNEL;
  if (stage >= DFLASH_STAGE_ATTN_O_PROJ) return DFLASH_STAGE_ATTN_O_PROJ;
  if (stage >= DFLASH_STAGE_ATTN_Q) return DFLASH_STAGE_ATTN_MIX;
  if (stage >= DFLASH_STAGE_ATTN_CONV_IN) return DFLASH_STAGE_ATTN_Q_PROJ;
  return stage >= DFLASH_STAGE_ATTN_NORM ? (int)DFLASH_STAGE_ATTN_KERNEL : stage;
}

static void add_span(CudaRun *run, int32_t stage, int64_t layer, uint32_t stamps) {
  cuda_run_span(run, stage, layer);
  run->stamp = 0;
  if (run->stamped) run->stamp_count += stamps - 1;
}

/* The preparation counts to the first layer; the last stamp ends what is left, which ends with the next span, too. */
static void add_spans(CudaRun *run) {
  for (int64_t layer = 0; layer < run->model->geometry.layers; layer++)
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
      add_span(run, spans[i].stage, layer, spans[i].pieces + (layer == 0 && i == 0));
  add_span(run, DFLASH_STAGE_HEAD_LOGITS, 0, 2);
}

/* ---- arguments ---- */

static void set_layer(const CudaRun *run, int64_t l, FastBlock *f) {
  const CudaLayer *w = &run->model->layers[l];
  const CudaBlock *b = run->block;
  f->layer[l] = (FastLayer){.q_norm = w->q_norm,
                            .k_norm = w->k_norm,
                            .base_a = w->attn_base,
                            .base_m = w->mlp_base,
                            .rope = dflash_geometry_rotary(&run->model->geometry, l)};
  f->qkv[l] = b->fast_qkv;
  f->mix[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_MIX, l);
  f->act[l] = cuda_block_stage(b, DFLASH_STAGE_MLP_ACT, l);
  f->h[2 * l + 1] = cuda_block_stage(b, DFLASH_STAGE_ATTN_OUT, l);
  f->h[2 * l + 2] = cuda_block_stage(b, DFLASH_STAGE_MLP_OUT, l);
}

/* Stages that the kernel itself has no use for. */
static void set_captured(const CudaBlock *b, int64_t l, FastBlock *f) {
  f->d_out[2 * l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_KERNEL, l);
  f->d_out[2 * l + 1] = cuda_block_stage(b, DFLASH_STAGE_MLP_KERNEL, l);
  f->norm_out[2 * l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_NORM, l);
  f->norm_out[2 * l + 1] = cuda_block_stage(b, DFLASH_STAGE_MLP_NORM, l);
  f->conv_out[2 * l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_CONV_IN, l);
  f->conv_out[2 * l + 1] = cuda_block_stage(b, DFLASH_STAGE_MLP_CONV_IN, l);
  f->q_proj_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_Q_PROJ, l);
  f->k_proj_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_K_PROJ, l);
  f->v_proj_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_V_PROJ, l);
  f->q_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_Q, l);
  f->k_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_K, l);
  f->o_out[l] = cuda_block_stage(b, DFLASH_STAGE_ATTN_O_PROJ, l);
  f->gate_out[l] = cuda_block_stage(b, DFLASH_STAGE_MLP_GATE, l);
  f->up_out[l] = cuda_block_stage(b, DFLASH_STAGE_MLP_UP, l);
  f->down_out[l] = cuda_block_stage(b, DFLASH_STAGE_MLP_DOWN, l);
}

static void set_sizes(const CudaRun *run, FastBlock *f) {
  const DflashModel *m = run->model;
  f->layers = (int32_t)m->geometry.layers;
  f->rows = (int32_t)run->rows;
  f->n_draft = (int32_t)run->n_draft;
  f->head_rows = (int32_t)run->head_width;
  f->eps = (float)m->geometry.eps;
  f->scale = (float)(1 / sqrt((double)m->geometry.head_dim));
  f->stream = m->fast.stream;
  f->stream_first = m->fast.first;
  f->vectors = m->fast.vectors;
  f->inv_freq = m->inv_freq;
}

static void set_block(const CudaRun *run, FastBlock *f) {
  const CudaBlock *b = run->block;
  const int64_t layers = run->model->geometry.layers;
  f->position = b->inputs + offsetof(CudaInputs, position);
  f->barrier = b->inputs + offsetof(CudaInputs, met);
  f->visible = b->visible;
  f->stamps = run->stamped ? b->stamps : 0;
  f->h[0] = b->h;
  f->d = b->fast_kernel;
  f->part = b->fast_parts;
  f->down = b->fast_down;
  f->sums = b->fast_sums;
  f->logits = b->stages[DFLASH_STAGE_HEAD_LOGITS];
  f->hidden = b->stages[DFLASH_STAGE_SELECTOR_HIDDEN];
  if (b->capture) f->norm_out[2 * layers] = b->stages[DFLASH_STAGE_FINAL_NORM];
  for (int64_t l = 0; l < layers; l++) {
    set_layer(run, l, f);
    if (b->capture) set_captured(b, l, f);
  }
}

void cuda_fast_run(CudaRun *run) {
  CudaDevice *device = &run->model->device;
  const CudaFast *fast = &run->model->fast;
  CUfunction kernel = run->rows <= FAST_ROWS ? fast->kernel : fast->tall;
  FastBlock f = {0};
  void *list[] = {&f};
  set_sizes(run, &f);
  set_block(run, &f);
  add_spans(run);
  if (!run->status)
    run->status = CUDA_CALL(device, "the fast kernel", run->error, launch, kernel, FAST_BLOCKS, 1, 1, FAST_THREADS, 1,
                            1, FAST_SHARED_BYTES, device->stream, list, NULL);
  run->prepared = 0;
  cuda_run_stage(run, DFLASH_STAGE_SELECT, 0);
}
