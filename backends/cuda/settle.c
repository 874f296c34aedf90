/* Rows of a push become rows of K and V. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "held.h"

DflashStatus cuda_push_values_open(DflashModel *model, int64_t rows, bool every_layer, CudaPushValues *values,
                                   DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  uint64_t total = 0;
  *values = (CudaPushValues){.rows = rows};
  for (int32_t stage = DFLASH_STAGE_CONTEXT_FC; stage <= DFLASH_STAGE_CONTEXT_K; stage++) {
    const int64_t layers = every_layer ? cuda_stage_layers(g, stage) : 1;
    int64_t bytes;
    if (!dflash_mul_i64(rows, cuda_stage_width(g, stage) * (int64_t)sizeof(float), &bytes))
      return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: %lld pushed rows are too many", (long long)rows);
    values->stages[stage] = cuda_place(&total, (uint64_t)bytes);
    values->layer_bytes[stage] = layers > 1 ? ((uint64_t)bytes + 255) / 256 * 256 : 0;
    for (int64_t layer = 1; layer < layers; layer++) (void)cuda_place(&total, (uint64_t)bytes);
  }
  DflashStatus status = cuda_buffer_open(&model->device, total, "the values of a push", &values->buffer, error);
  for (int32_t stage = DFLASH_STAGE_CONTEXT_FC; stage <= DFLASH_STAGE_CONTEXT_K; stage++)
    values->stages[stage] += values->buffer.at;
  return status;
}

/* Parts of a piece of CUDA_SETTLE_ROWS rows; the first ones, up to the taps' end, are the host's too. */
static uint64_t lay_out(const DflashModel *model, CudaBlock *piece, uint64_t *inputs) {
  const DflashGeometry *g = &model->geometry;
  const uint64_t rows = CUDA_SETTLE_ROWS, taps = (uint64_t)dflash_geometry_tap_width(g);
  uint64_t total = 0;
  piece->inputs = cuda_place(&total, sizeof(int64_t));
  piece->h = cuda_place(&total, rows * taps * 4);
  *inputs = total;
  piece->table = cuda_place(&total, rows * (uint64_t)g->head_dim * 4);
  piece->words = cuda_place(&total, rows * taps);
  piece->steps = cuda_place(&total, rows * (taps / CUDA_GROUP + 1) * 4);
  piece->halves = cuda_place(&total, model->profile == DFLASH_PROFILE_F16 ? rows * taps * 4 : 0);
  piece->exponents = cuda_place(&total, rows * 4);
  return total;
}

DflashStatus cuda_settle_open(DflashSequence *s, DflashError *error) {
  CudaDevice *device = &s->model->device;
  CudaBlock piece = {0};
  uint64_t inputs;
  if (s->piece_memory.at) return DFLASH_OK;
  const uint64_t bytes = lay_out(s->model, &piece, &inputs);
  DflashStatus status = cuda_pinned_open(device, inputs, "the taps of a push", &s->piece_taps, error);
  if (!status) status = cuda_push_values_open(s->model, CUDA_SETTLE_ROWS, false, &s->piece_values, error);
  if (!status) status = cuda_buffer_open(device, bytes, "the projection of a push", &s->piece_memory, error);
  if (status) {
    cuda_buffer_close(device, &s->piece_values.buffer);
    cuda_pinned_close(device, &s->piece_taps);
    return status;
  }
  CudaAddress *const places[] = {&piece.inputs, &piece.h,      &piece.table,    &piece.words,
                                 &piece.steps,  &piece.halves, &piece.exponents};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) *places[i] += s->piece_memory.at;
  s->piece = piece;
  return DFLASH_OK;
}

typedef struct Piece {
  CudaChange *change;
  const DflashGeometry *g;
  int64_t rows, position;
  const CudaPushValues *values;
  int64_t values_first; /* row of the values that the piece starts at */
  bool captured;        /* values are kept for read_stage */
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

static void layer_steps(Piece *p, int64_t layer) {
  const CudaLayer *weights = &p->run.model->layers[layer];
  const CudaHeld *held = &p->change->held[layer];
  const CudaAddress norm = value_at(p, DFLASH_STAGE_CONTEXT_NORM, 0);
  const CudaAddress k_proj = value_at(p, DFLASH_STAGE_CONTEXT_K_PROJ, layer);
  const CudaAddress k = cuda_held_at(p->g, held, &held->k, p->position);
  const CudaAddress v = cuda_held_at(p->g, held, &held->v, p->position);
  const uint64_t bytes = (uint64_t)p->rows * cuda_held_row_bytes(p->g);
  cuda_run_product(&p->run, &weights->k, norm, k_proj, p->rows, weights->k.rows);
  cuda_run_product(&p->run, &weights->v, norm, v, p->rows, weights->v.rows);
  cuda_run_heads(&p->run, &(HeadsArgs){.x = k_proj,
                                       .w = weights->k_norm,
                                       .table = p->run.block->table,
                                       .y = k,
                                       .rows = p->rows,
                                       .heads = (int32_t)p->g->kv_heads,
                                       .rotate = dflash_geometry_rotary(p->g, layer)});
  copy(p, v, value_at(p, DFLASH_STAGE_CONTEXT_V_PROJ, layer), bytes);
  copy(p, k, value_at(p, DFLASH_STAGE_CONTEXT_K, layer), bytes);
}

static void piece_steps(Piece *p) {
  const CudaBlock *b = p->run.block;
  const CudaAddress fc = value_at(p, DFLASH_STAGE_CONTEXT_FC, 0), norm = value_at(p, DFLASH_STAGE_CONTEXT_NORM, 0);
  const DflashModel *model = p->run.model;
  cuda_run_rotation(&p->run, b->inputs, p->rows, b->table);
  cuda_run_product(&p->run, &model->fc, b->h, fc, p->rows, model->fc.rows);
  cuda_run_norm(&p->run, fc, model->hidden_norm, norm, p->rows);
  for (int64_t layer = 0; layer < p->g->layers; layer++) layer_steps(p, layer);
}

static DflashStatus copy_inputs(const Piece *p, const float *taps, DflashError *error) {
  const DflashSequence *s = p->change->s;
  CudaDevice *device = &s->model->device;
  const size_t bytes = (size_t)(p->rows * dflash_geometry_tap_width(p->g)) * sizeof(float);
  const uint64_t skip = s->piece.h - s->piece.inputs;
  memcpy(s->piece_taps.at, &p->position, sizeof p->position);
  memcpy((char *)s->piece_taps.at + skip, taps, bytes);
  return CUDA_CALL(device, "the copy of a push's taps", error, copy_to_device, s->piece.inputs, s->piece_taps.at,
                   (size_t)skip + bytes, device->stream);
}

/* Between its two events. */
static DflashStatus queue_piece(Piece *p, const float *taps, DflashError *error) {
  const DflashSequence *s = p->change->s;
  CudaDevice *device = &s->model->device;
  DflashStatus status =
      CUDA_CALL(device, "settling rows of a push", error, event_record, s->settle_begin, device->stream);
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
                   .run = {.model = s->model, .block = &s->piece, .rows = rows, .error = error}};
    status = settle_piece(&piece, taps->at + done * dflash_geometry_tap_width(g), ns, error);
    if (status) return status;
    change->settled += rows;
  }
  return DFLASH_OK;
}
