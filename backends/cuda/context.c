/* Bookkeeping of the context: a call works on a change, which it keeps once nothing can fail any more. */
#include <stdlib.h>

#include "abi.h"
#include "base/memory.h"
#include "held.h"

/* ---- checks ---- */

/* After a rewind to pos the next block's anchor may be pos: does every layer still keep what it sees? */
static DflashStatus check_rewind(const DflashSequence *s, int64_t pos, DflashError *error) {
  if (pos <= s->first || pos >= s->first + s->len) return DFLASH_OK;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t window = dflash_geometry_window(&s->model->geometry, layer), base = s->held[layer].base;
    if (base <= s->first) continue;
    /* a layer without a window lets no rows go, so this one has one */
    const int64_t needed = pos + 1 - window > s->first ? pos + 1 - window : s->first;
    if (base > needed)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "cuda: layer %lld keeps positions from %lld on; a rewind to %lld needs %lld",
                              (long long)layer, (long long)base, (long long)pos, (long long)needed);
  }
  return DFLASH_OK;
}

static DflashStatus check_range(const char *call, int64_t pos, int64_t rows, DflashError *error) {
  int64_t end;
  if (pos >= 0 && rows >= 0 && dflash_add_i64(pos, rows, &end) && end <= CUDA_POSITION_MAX) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "cuda: %s: %lld rows at position %lld; valid are positions from 0 up to %lld", call,
                          (long long)rows, (long long)pos, (long long)CUDA_POSITION_MAX);
}

static DflashStatus check_layer(const DflashSequence *s, int64_t layer, DflashError *error) {
  if (layer >= 0 && layer < s->model->geometry.layers) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: no layer %lld, there are %lld", (long long)layer,
                          (long long)s->model->geometry.layers);
}

/* ---- forgetting ---- */

DflashStatus cuda_truncate(DflashSequence *s, int64_t pos, DflashError *error) {
  DflashStatus status = check_rewind(s, pos, error);
  if (status) return status;
  CudaChange change = cuda_change_in_place(s);
  cuda_change_cut(&change, pos > s->first ? pos : s->first);
  cuda_change_keep_in_place(&change);
  return DFLASH_OK;
}

DflashStatus cuda_reset(DflashSequence *s, DflashError *error) {
  (void)error;
  CudaChange change = cuda_change_in_place(s);
  cuda_change_restart(&change, 0);
  cuda_change_keep_in_place(&change);
  return DFLASH_OK;
}

/* What a push forgets before its rows follow. */
static void forget(CudaChange *change, int64_t pos) {
  if (pos < change->first || pos > change->first + change->len)
    cuda_change_restart(change, pos);
  else
    cuda_change_cut(change, pos);
}

/* ---- push ---- */

typedef struct Push {
  const float *taps;
  int64_t rows;
  int64_t waiting; /* rows before it that wait */
  int64_t later;   /* its last rows that will wait */
  bool settles;    /* the waiting rows and its first ones are projected now */
} Push;

/* A capturing sequence settles at once; else CUDA_SETTLE_ROWS rows may wait, and of more than that the last piece. */
static void plan_push(const DflashSequence *s, Push *push) {
  push->settles = s->capture || push->rows > CUDA_SETTLE_ROWS - push->waiting;
  if (s->capture) return;
  push->later = push->settles ? (push->rows - 1) % CUDA_SETTLE_ROWS + 1 : push->rows;
}

static DflashStatus settle_push(CudaChange *change, const Push *push, CudaPushValues *values, DflashError *error) {
  DflashSequence *s = change->s;
  const CudaTaps before = {.at = s->waiting.host.at, .rows = push->waiting, .waited = true};
  const CudaTaps now = {.at = push->taps, .rows = push->rows - push->later, .values = s->capture ? values : NULL};
  DflashStatus status = cuda_change_reserve(change, push->waiting + push->rows, CUDA_RESERVE_WRITE, error);
  if (!status && s->capture) status = cuda_push_values_open(s->model, push->rows, true, values, error);
  if (!status) status = cuda_change_settle(change, &before, NULL, error);
  if (!status) status = cuda_change_settle(change, &now, NULL, error);
  if (!status) status = cuda_change_reserve(change, push->later, CUDA_RESERVE_WRITE, error);
  return status;
}

/* The place among the waiting rows of the push's own, and their taps. */
static int64_t first_later(const Push *push) { return push->settles ? 0 : push->waiting; }
static const float *later_taps(const DflashSequence *s, const Push *push) {
  return push->taps + (push->rows - push->later) * dflash_geometry_tap_width(&s->model->geometry);
}

static void keep_push(CudaChange *change, const Push *push, const CudaPushValues *values) {
  DflashSequence *s = change->s;
  change->len += push->rows;
  cuda_change_keep(change);
  cuda_waiting_keep(s, first_later(push), later_taps(s, push), push->later);
  if (!s->capture) return;
  cuda_buffer_close(&s->model->device, &s->push_values.buffer);
  s->push_values = *values;
}

static DflashStatus push_rows(DflashSequence *s, int64_t pos, Push *push, DflashError *error) {
  CudaChange change = {0};
  CudaPushValues values = {0};
  DflashStatus status = cuda_settle_open(s, error);
  if (!status) status = cuda_waiting_open(s, error);
  if (!status) status = cuda_change_begin(s, &change, error);
  if (status) return status;
  forget(&change, pos);
  push->waiting = change.len - change.settled;
  plan_push(s, push);
  status = push->settles ? settle_push(&change, push, &values, error)
                         : cuda_change_reserve(&change, push->waiting + push->rows, CUDA_RESERVE_WAIT, error);
  if (!status) status = cuda_waiting_send(s, first_later(push), later_taps(s, push), push->later, error);
  if (!status) {
    keep_push(&change, push, &values);
    return DFLASH_OK;
  }
  cuda_change_drop(&change);
  cuda_buffer_close(&s->model->device, &values.buffer);
  return status;
}

DflashStatus cuda_push(DflashSequence *s, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  DflashStatus status = check_range("push", pos, rows, error);
  if (!status && rows > 0) status = cuda_check_pointer(taps, "push: taps", error);
  if (!status) status = check_rewind(s, pos, error);
  if (status) return status;
  if (rows > 0) return push_rows(s, pos, &(Push){.taps = taps, .rows = rows}, error);
  CudaChange change = cuda_change_in_place(s);
  forget(&change, pos);
  cuda_change_keep_in_place(&change);
  return DFLASH_OK;
}

/* ---- settling ---- */

/* keeps: no rows are let go, so that those which span named can be read. */
static DflashStatus settle_waiting(DflashSequence *s, bool keeps, uint64_t *ns, DflashError *error) {
  const CudaTaps waiting = {.at = s->waiting.host.at, .rows = s->len - s->settled, .waited = true};
  CudaChange change;
  if (waiting.rows == 0) return DFLASH_OK;
  DflashStatus status = cuda_change_begin(s, &change, error);
  if (status) return status;
  change.keeps = keeps;
  status = cuda_change_settle(&change, &waiting, ns, error);
  if (status)
    cuda_change_drop(&change);
  else
    cuda_change_keep(&change);
  return status;
}

DflashStatus cuda_settle(DflashSequence *s, DflashError *error) {
  uint64_t ns = 0;
  DflashStatus status = settle_waiting(s, false, &ns, error);
  s->settle_ns = status ? 0 : ns;
  return status;
}

/* ---- K and V given and read ---- */

static DflashStatus check_load(const DflashSequence *s, int64_t first, int64_t len, const float *const *k,
                               const float *const *v, DflashError *error) {
  DflashStatus status = check_range("load", first, len, error);
  if (status || len == 0) return status;
  status = cuda_check_pointer(k, "load: k", error);
  if (!status) status = cuda_check_pointer(v, "load: v", error);
  for (int64_t layer = 0; !status && layer < s->model->geometry.layers; layer++)
    if (!k[layer] || !v[layer])
      status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: load: k or v of layer %lld is NULL",
                                (long long)layer);
  return status;
}

static DflashStatus upload_rows(CudaChange *change, int64_t len, const float *const *k, const float *const *v,
                                DflashError *error) {
  const DflashGeometry *g = &change->s->model->geometry;
  CudaDevice *device = &change->s->model->device;
  const uint64_t bytes = (uint64_t)len * cuda_held_row_bytes(g);
  CudaUpload upload;
  DflashStatus status = cuda_upload_open(device, &upload, error);
  if (status) return status;
  for (int64_t layer = 0; !status && layer < g->layers; layer++) {
    const CudaHeld *held = &change->held[layer];
    status = cuda_upload_copy(device, &upload, held->k.at, k[layer], bytes, error);
    if (!status) status = cuda_upload_copy(device, &upload, held->v.at, v[layer], bytes, error);
  }
  if (!status) status = cuda_upload_end(device, &upload, error);
  cuda_upload_close(device, &upload);
  return status;
}

DflashStatus cuda_load(DflashSequence *s, int64_t first, int64_t len, const float *const *k, const float *const *v,
                       DflashError *error) {
  CudaChange change;
  DflashStatus status = check_load(s, first, len, k, v, error);
  if (!status) status = cuda_change_begin(s, &change, error);
  if (status) return status;
  cuda_change_restart(&change, first);
  status = cuda_change_reserve(&change, len, CUDA_RESERVE_ALL, error);
  if (!status && len > 0) status = upload_rows(&change, len, k, v, error);
  if (status) {
    cuda_change_drop(&change);
    return status;
  }
  change.len = change.settled = len;
  cuda_change_keep(&change);
  return DFLASH_OK;
}

DflashStatus cuda_context_span(DflashSequence *s, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                               DflashError *error) {
  DflashStatus status = check_layer(s, layer, error);
  if (!status) status = cuda_check_pointer(first, "span: first", error);
  if (!status) status = cuda_check_pointer(len, "span: len", error);
  if (!status) status = cuda_check_pointer(kept_from, "span: kept_from", error);
  if (status) return status;
  *first = s->first;
  *len = s->len;
  *kept_from = s->held[layer].base > s->first ? s->held[layer].base : s->first;
  return DFLASH_OK;
}

DflashStatus cuda_read_context(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                               DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  DflashStatus status = check_layer(s, layer, error);
  if (status) return status;
  if (rows < 0 || pos < s->first || rows > s->len || pos - s->first > s->len - rows)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "cuda: read_context: %lld rows at %lld, held are %lld rows at %lld", (long long)rows,
                            (long long)pos, (long long)s->len, (long long)s->first);
  if (rows > 0) status = cuda_check_pointer(k, "read_context: k", error);
  if (!status && rows > 0) status = cuda_check_pointer(v, "read_context: v", error);
  if (!status) status = settle_waiting(s, true, NULL, error);
  if (status || rows == 0) return status;
  const CudaHeld *held = &s->held[layer];
  if (pos < held->base)
    return dflash_error_set(error, DFLASH_CONTEXT_LOST, "cuda: layer %lld keeps positions from %lld on, not %lld",
                            (long long)layer, (long long)held->base, (long long)pos);
  const uint64_t bytes = (uint64_t)rows * cuda_held_row_bytes(g);
  status = cuda_download(&s->model->device, cuda_held_at(g, held, &held->k, pos), k, bytes, error);
  if (!status) status = cuda_download(&s->model->device, cuda_held_at(g, held, &held->v, pos), v, bytes, error);
  return status;
}

void cuda_context_close(DflashSequence *s) {
  CudaDevice *device = &s->model->device;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    cuda_buffer_close(device, &s->held[layer].k);
    cuda_buffer_close(device, &s->held[layer].v);
  }
  cuda_pinned_close(device, &s->piece_taps);
  cuda_buffer_close(device, &s->piece_memory);
  cuda_buffer_close(device, &s->piece_values.buffer);
  cuda_buffer_close(device, &s->push_values.buffer);
  cuda_waiting_close(s);
}
