/* Rows of a push become rows of K and V. */
#include <string.h>

#include "held.h"

typedef struct Piece {
  CudaChange *change;
  const DflashGeometry *g;
  int64_t rows, position;
  const CudaPushValues *values;
  int64_t values_first; /* row of the values that the piece starts at */
  bool captured;        /* values are kept for read_stage */
  CudaAddress taps;     /* on the device */
  bool sent;            /* they lie there */
  CudaRun run;
} Piece;

/* Where the piece's rows of a stage go. */
static CudaAddress value_at(const Piece *p, int32_t stage, int64_t layer) {
  const CudaPushValues *v = p->values;
  return v->stages[stage] + (uint64_t)layer * v->layer_bytes[stage] +
         (uint64_t)(p->values_first * cuda_stage_width(p->g, stage)) * sizeof(float);
}

static void copy(Piece *p, CudaAddress from, CudaAddress to, uint64_t bytes) {
  CudaDevice *device = &p->run.model->device;
  if (p->captured && !p->run.status)
    p->run.status = CUDA_CALL(device, "keeping the values of a push", p->run.error, copy_on_device, to, from,
                              (size_t)bytes, device->stream);
}

/* K, before norm and rotation, and V of some layers. */
static void project(Piece *p, int64_t first, int count) {
  CudaProduct products[2 * CUDA_LAYERS_AT_ONCE];
  for (int i = 0; i < count; i++) {
    const CudaLayer *weights = &p->run.model->layers[first + i];
    const CudaHeld *held = &p->change->held[first + i];
    products[2 * i] =
        (CudaProduct){&weights->k, weights->k_scales, value_at(p, DFLASH_STAGE_CONTEXT_K_PROJ, first + i)};
    products[2 * i + 1] =
        (CudaProduct){&weights->v, weights->v_scales, cuda_held_at(p->g, held, &held->v, p->position)};
  }
  cuda_run_products(&p->run, products, 2 * count, value_at(p, DFLASH_STAGE_CONTEXT_NORM, 0));
}

/* K of them, and what a capturing sequence keeps. */
static void finish(Piece *p, int64_t first, int count) {
  const uint64_t bytes = (uint64_t)p->rows * cuda_held_row_bytes(p->g);
  HeadsArgs heads[CUDA_LAYERS_AT_ONCE];
  for (int i = 0; i < count; i++) {
    const CudaHeld *held = &p->change->held[first + i];
    heads[i] = (HeadsArgs){.x = value_at(p, DFLASH_STAGE_CONTEXT_K_PROJ, first + i),
                           .w = p->run.model->layers[first + i].k_norm,
                           .table = p->run.block->table,
                           .y = cuda_held_at(p->g, held, &held->k, p->position),
                           .rows = p->rows,
                           .heads = (int32_t)p->g->kv_heads,
                           .rotate = dflash_geometry_rotary(p->g, first + i)};
  }
  cuda_run_layers_heads(&p->run, heads, count);
  for (int i = 0; i < count; i++) {
    const CudaHeld *held = &p->change->held[first + i];
    copy(p, heads[i].y, value_at(p, DFLASH_STAGE_CONTEXT_K, first + i), bytes);
    copy(p, cuda_held_at(p->g, held, &held->v, p->position), value_at(p, DFLASH_STAGE_CONTEXT_V_PROJ, first + i),
         bytes);
  }
}

static void piece_steps(Piece *p) {
  const CudaBlock *b = p->run.block;
  const CudaAddress fc = value_at(p, DFLASH_STAGE_CONTEXT_FC, 0);
  const DflashModel *model = p->run.model;
  cuda_run_products(&p->run, &(CudaProduct){&model->fc, model->tiled.fc_scales, fc}, 1, p->taps);
  cuda_run_norm(&p->run, fc, model->hidden_norm, value_at(p, DFLASH_STAGE_CONTEXT_NORM, 0), p->rows);
  cuda_run_rotation(&p->run, b->inputs, p->rows, b->table);
  for (int64_t first = 0; first < p->g->layers; first += CUDA_LAYERS_AT_ONCE) {
    const int64_t left = p->g->layers - first;
    const int count = left < CUDA_LAYERS_AT_ONCE ? (int)left : CUDA_LAYERS_AT_ONCE;
    project(p, first, count);
    finish(p, first, count);
  }
}

/* The position, and the taps where they are not on the device yet. */
static DflashStatus copy_inputs(const Piece *p, const float *taps, DflashError *error) {
  DflashSequence *s = p->change->s;
  CudaDevice *device = &s->model->device;
  const size_t bytes = (size_t)(p->rows * dflash_geometry_tap_width(p->g)) * sizeof(float);
  memcpy(s->piece_taps.at, &p->position, sizeof p->position);
  DflashStatus status = CUDA_CALL(device, "the copy of a position", error, copy_to_device, s->piece.inputs,
                                  s->piece_taps.at, sizeof p->position, device->stream);
  if (status || p->sent) return status;
  memcpy(cuda_piece_taps(s), taps, bytes);
  return CUDA_CALL(device, "the copy of a push's taps", error, copy_to_device, p->taps, cuda_piece_taps(s), bytes,
                   device->stream);
}

/* Between its two events. */
static DflashStatus queue_piece(Piece *p, const float *taps, DflashError *error) {
  DflashSequence *s = p->change->s;
  CudaDevice *device = &s->model->device;
  DflashStatus status = cuda_waiting_sent(s, error);
  if (!status)
    status = CUDA_CALL(device, "settling rows of a push", error, event_record, s->settle_begin, device->stream);
  if (!status) status = copy_inputs(p, taps, error);
  if (status) return status;
  piece_steps(p);
  if (p->run.status) return p->run.status;
  return CUDA_CALL(device, "settling rows of a push", error, event_record, s->settle_end, device->stream);
}

/* What was queued ends before the call does, whatever happened: the next one writes to the same memory. */
static DflashStatus settle_piece(Piece *p, const float *taps, uint64_t *ns, DflashError *error) {
  const DflashSequence *s = p->change->s;
  CudaDevice *device = &s->model->device;
  float ms = 0;
  DflashStatus status = queue_piece(p, taps, error);
  if (status) {
    (void)device->driver.stream_wait(device->stream);
    return status;
  }
  status = cuda_wait(device, "settling rows of a push", error);
  if (!status)
    status = CUDA_CALL(device, "settling rows of a push", error, event_elapsed, &ms, s->settle_begin, s->settle_end);
  if (!status && ns) *ns += (uint64_t)((double)ms * 1e6);
  return status;
}

DflashStatus cuda_change_settle(CudaChange *change, const CudaTaps *taps, uint64_t *ns, DflashError *error) {
  DflashSequence *s = change->s;
  const DflashGeometry *g = &s->model->geometry;
  for (int64_t done = 0, rows; done < taps->rows; done += rows) {
    rows = taps->rows - done < CUDA_SETTLE_ROWS ? taps->rows - done : CUDA_SETTLE_ROWS;
    DflashStatus status = cuda_change_reserve(change, rows, CUDA_RESERVE_WRITE, error);
    if (status) return status;
    Piece piece = {.change = change,
                   .g = g,
                   .rows = rows,
                   .position = change->first + change->settled,
                   .values = taps->values ? taps->values : &s->piece_values,
                   .values_first = taps->values ? done : 0,
                   .captured = taps->values != NULL,
                   .taps = taps->waited ? s->waiting.memory.at : s->piece.h,
                   .sent = taps->waited && rows <= s->waiting.sent,
                   .run = {.model = s->model, .block = &s->piece, .rows = rows, .error = error}};
    status = settle_piece(&piece, taps->at + done * dflash_geometry_tap_width(g), ns, error);
    if (status) return status;
    change->settled += rows;
  }
  return DFLASH_OK;
}
