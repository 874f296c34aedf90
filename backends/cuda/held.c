#include "held.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { LEAST_ROWS = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- a change ---- */

DflashStatus cuda_change_begin(DflashSequence *s, CudaChange *change, DflashError *error) {
  const size_t layers = (size_t)s->model->geometry.layers;
  *change = (CudaChange){.s = s, .first = s->first, .len = s->len, .settled = s->settled};
  change->held = dflash_alloc(layers, sizeof *change->held);
  if (!change->held) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for a context");
  memcpy(change->held, s->held, layers * sizeof *change->held);
  return DFLASH_OK;
}

static void close_buffers(CudaDevice *device, CudaHeld *held) {
  cuda_buffer_close(device, &held->k);
  cuda_buffer_close(device, &held->v);
}

void cuda_change_keep(CudaChange *change) {
  DflashSequence *s = change->s;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    if (change->held[layer].fresh) close_buffers(&s->model->device, &s->held[layer]);
    change->held[layer].fresh = false;
    s->held[layer] = change->held[layer];
  }
  free(change->held);
  change->held = NULL;
  cuda_change_keep_in_place(change);
}

/* Kernels that write to what is closed here must have ended. */
void cuda_change_drop(CudaChange *change) {
  CudaDevice *device = &change->s->model->device;
  if (change->held) (void)device->driver.stream_wait(device->stream);
  for (int64_t layer = 0; change->held && layer < change->s->model->geometry.layers; layer++)
    if (change->held[layer].fresh) close_buffers(device, &change->held[layer]);
  free(change->held);
  change->held = NULL;
}

CudaChange cuda_change_in_place(DflashSequence *s) {
  return (CudaChange){.s = s, .first = s->first, .len = s->len, .settled = s->settled, .held = s->held};
}

void cuda_change_keep_in_place(const CudaChange *change) {
  change->s->first = change->first;
  change->s->len = change->len;
  change->s->settled = change->settled;
}

void cuda_change_restart(CudaChange *change, int64_t first) {
  change->first = first;
  change->len = change->settled = 0;
  for (int64_t layer = 0; layer < change->s->model->geometry.layers; layer++) change->held[layer].base = first;
}

void cuda_change_cut(CudaChange *change, int64_t pos) {
  if (pos >= change->first + change->len) return;
  if (pos == change->first) {
    cuda_change_restart(change, pos);
    return;
  }
  change->len = pos - change->first;
  change->settled = smaller(change->settled, change->len);
}

/* ---- room ---- */

/* Rows that a layer must keep; INT64_MAX: it lets none go. */
static int64_t rows_to_keep(const CudaChange *change, int64_t layer, int how) {
  const DflashSequence *s = change->s;
  const int64_t window = dflash_geometry_window(&s->model->geometry, layer);
  if (window == 0 || window > CUDA_POSITION_MAX || s->capture || s->model->options.keep_all) return INT64_MAX;
  return how == CUDA_RESERVE_ALL || change->keeps ? INT64_MAX : window - 1 + CUDA_REWIND_ROWS;
}

static int64_t settled_end(const CudaChange *change) { return change->first + change->settled; }

static DflashStatus open_buffers(CudaDevice *device, const DflashGeometry *g, int64_t layer, int64_t capacity,
                                 CudaHeld *held, DflashError *error) {
  int64_t bytes;
  if (!dflash_mul_i64(capacity, (int64_t)cuda_held_row_bytes(g), &bytes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: %lld context rows are too many", (long long)capacity);
  held->capacity = capacity;
  held->fresh = true;
  DflashStatus status = cuda_buffer_open(device, (uint64_t)bytes, "the context's K", &held->k, error);
  if (!status) status = cuda_buffer_open(device, (uint64_t)bytes, "the context's V", &held->v, error);
  if (!status) return DFLASH_OK;
  close_buffers(device, held);
  dflash_error_prefix(error, "cuda: %lld context rows of layer %lld", (long long)capacity, (long long)layer);
  return status;
}

/* Positions from `to->base` on, as far as they are settled. */
static DflashStatus copy_rows(const CudaChange *change, const CudaHeld *from, const CudaHeld *to, DflashError *error) {
  const DflashGeometry *g = &change->s->model->geometry;
  CudaDevice *device = &change->s->model->device;
  const size_t bytes = (size_t)(settled_end(change) - to->base) * (size_t)cuda_held_row_bytes(g);
  if (bytes == 0) return DFLASH_OK;
  DflashStatus status = CUDA_CALL(device, "moving a context", error, copy_on_device, to->k.at,
                                  cuda_held_at(g, from, &from->k, to->base), bytes, device->stream);
  if (!status)
    status = CUDA_CALL(device, "moving a context", error, copy_on_device, to->v.at,
                       cuda_held_at(g, from, &from->v, to->base), bytes, device->stream);
  return status ? status : cuda_wait(device, "moving a context", error);
}

/* Rows that fresh buffers hold: those that stay and the new ones, twice as many as before where a layer grows, and for
 * a windowed one no more than it needs for letting go of half of them at a time. */
static int64_t choose_capacity(const CudaHeld *old, int64_t least, int64_t keep, bool grows) {
  int64_t capacity = old->capacity;
  if (grows && capacity <= CUDA_POSITION_MAX / 2) capacity = larger(2 * capacity, LEAST_ROWS);
  if (keep != INT64_MAX) capacity = smaller(capacity, 2 * keep + CUDA_SETTLE_ROWS);
  return larger(capacity, least);
}

static DflashStatus renew(CudaChange *change, int64_t layer, int64_t rows, int how, DflashError *error) {
  CudaDevice *device = &change->s->model->device;
  CudaHeld *held = &change->held[layer], old = *held, to = {0};
  const int64_t keep = rows_to_keep(change, layer, how), end = settled_end(change);
  to.base = keep == INT64_MAX ? old.base : larger(old.base, end - keep);
  const int64_t least = end - to.base + (keep == INT64_MAX ? rows : smaller(rows, CUDA_SETTLE_ROWS));
  const bool grows = end - old.base + rows > old.capacity;
  DflashStatus status =
      open_buffers(device, &change->s->model->geometry, layer, choose_capacity(&old, least, keep, grows), &to, error);
  if (status) return status;
  status = copy_rows(change, &old, &to, error);
  if (status) {
    (void)device->driver.stream_wait(device->stream);
    close_buffers(device, &to);
    return status;
  }
  if (old.fresh) close_buffers(device, &old);
  *held = to;
  return DFLASH_OK;
}

/* Would rows after the change's settled ones lie where the sequence still has its own? */
static bool overwrites(const CudaChange *change, int64_t layer) {
  const DflashSequence *s = change->s;
  const CudaHeld *held = &change->held[layer];
  return !held->fresh && settled_end(change) - held->base < s->first + s->settled - s->held[layer].base;
}

DflashStatus cuda_change_reserve(CudaChange *change, int64_t rows, int how, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t layer = 0; !status && rows > 0 && layer < change->s->model->geometry.layers; layer++) {
    const CudaHeld *held = &change->held[layer];
    const int64_t needed = rows_to_keep(change, layer, how) == INT64_MAX ? rows : smaller(rows, CUDA_SETTLE_ROWS);
    const bool fits = settled_end(change) - held->base + needed <= held->capacity;
    if (!fits || (how != CUDA_RESERVE_WAIT && overwrites(change, layer)))
      status = renew(change, layer, rows, how, error);
  }
  return status;
}
