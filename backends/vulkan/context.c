/* Bookkeeping of the context: a call works on a change, which it keeps once nothing can fail any more. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "settle.h"

/* ---- checks ---- */

/* After a rewind to pos the next block's anchor may be pos: does every layer still keep what it sees? */
static DflashStatus check_rewind(const DflashSequence *s, int64_t pos, DflashError *error) {
  if (pos <= s->first || pos >= s->first + s->len) return DFLASH_OK;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t window = dflash_geometry_window(&s->model->geometry, layer), kept = s->held[layer].kept;
    if (kept <= s->first) continue;
    /* an unlimited layer keeps from first on, so this one has a window below VULKAN_POSITION_MAX */
    const int64_t needed = pos + 1 - window > s->first ? pos + 1 - window : s->first;
    if (kept > needed)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "vulkan: layer %lld keeps positions from %lld on; a rewind to %lld needs %lld",
                              (long long)layer, (long long)kept, (long long)pos, (long long)needed);
  }
  return DFLASH_OK;
}

static DflashStatus check_range(const char *call, int64_t pos, int64_t rows, DflashError *error) {
  int64_t end;
  if (pos >= 0 && rows >= 0 && dflash_add_i64(pos, rows, &end) && end <= VULKAN_POSITION_MAX) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "vulkan: %s: %lld rows at position %lld; valid are positions from 0 up to %lld", call,
                          (long long)rows, (long long)pos, (long long)VULKAN_POSITION_MAX);
}

static DflashStatus check_layer(const DflashSequence *s, int64_t layer, DflashError *error) {
  if (layer >= 0 && layer < s->model->geometry.layers) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: no layer %lld, there are %lld", (long long)layer,
                          (long long)s->model->geometry.layers);
}

/* ---- forgetting ---- */

/* Only the bookkeeping changes, so the sequence's own rows serve. */
static VulkanChange change_in_place(DflashSequence *s) {
  return (VulkanChange){.s = s, .first = s->first, .len = s->len, .settled = s->settled, .held = s->held};
}

static void keep_in_place(const VulkanChange *change) {
  change->s->first = change->first;
  change->s->len = change->len;
  change->s->settled = change->settled;
}

DflashStatus vulkan_truncate(DflashSequence *s, int64_t pos, DflashError *error) {
  DflashStatus status = check_rewind(s, pos, error);
  if (status) return status;
  VulkanChange change = change_in_place(s);
  vulkan_change_cut(&change, pos > s->first ? pos : s->first);
  keep_in_place(&change);
  return DFLASH_OK;
}

DflashStatus vulkan_reset(DflashSequence *s, DflashError *error) {
  (void)error;
  VulkanChange change = change_in_place(s);
  vulkan_change_restart(&change, 0);
  keep_in_place(&change);
  return DFLASH_OK;
}

/* What a push forgets before its rows follow. */
static void forget(VulkanChange *change, int64_t pos) {
  if (pos < change->first || pos > change->first + change->len)
    vulkan_change_restart(change, pos);
  else
    vulkan_change_cut(change, pos);
}

/* ---- push ---- */

typedef struct Push {
  const float *taps;
  int64_t rows;
  int64_t waiting; /* rows before it that wait */
  int64_t later;   /* its last rows that will wait */
  bool settles;    /* the waiting rows and its first ones are projected now */
} Push;

/* A capturing sequence settles at once; else VULKAN_SETTLE_ROWS rows may wait, and of more than that the last piece. */
static void plan_push(const DflashSequence *s, Push *push) {
  push->settles = s->capture || push->rows > VULKAN_SETTLE_ROWS - push->waiting;
  if (s->capture) return;
  push->later = push->settles ? (push->rows - 1) % VULKAN_SETTLE_ROWS + 1 : push->rows;
}

static DflashStatus open_waiting(DflashSequence *s, DflashError *error) {
  int64_t count;
  if (s->waiting || s->capture) return DFLASH_OK;
  if (dflash_mul_i64(VULKAN_SETTLE_ROWS, dflash_geometry_tap_width(&s->model->geometry), &count))
    s->waiting = dflash_alloc((size_t)count, sizeof *s->waiting);
  if (s->waiting) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: push: no memory for %d waiting rows",
                          VULKAN_SETTLE_ROWS);
}

static DflashStatus settle_push(VulkanChange *change, const Push *push, VulkanPushValues *values, DflashError *error) {
  DflashSequence *s = change->s;
  const VulkanTaps before = {.at = s->waiting, .rows = push->waiting};
  const VulkanTaps now = {.at = push->taps, .rows = push->rows - push->later, .values = s->capture ? values : NULL};
  DflashStatus status = vulkan_change_reserve(change, push->waiting + push->rows, VULKAN_RESERVE_WRITE, error);
  if (!status && s->capture) status = vulkan_push_values_open(s->model, push->rows, values, error);
  if (!status) status = vulkan_change_settle(change, &before, NULL, error);
  if (!status) status = vulkan_change_settle(change, &now, NULL, error);
  if (!status) status = vulkan_change_reserve(change, push->later, VULKAN_RESERVE_WRITE, error);
  return status;
}

static void keep_push(VulkanChange *change, const Push *push, VulkanPushValues *values) {
  DflashSequence *s = change->s;
  const int64_t tap_width = dflash_geometry_tap_width(&s->model->geometry), before = push->settles ? 0 : push->waiting;
  change->len += push->rows;
  vulkan_change_keep(change);
  if (push->later > 0)
    memcpy(s->waiting + before * tap_width, push->taps + (push->rows - push->later) * tap_width,
           (size_t)(push->later * tap_width) * sizeof(float));
  if (s->capture) vulkan_push_values_keep(s, values);
  s->push_rows = push->rows;
}

static DflashStatus push_rows(DflashSequence *s, int64_t pos, Push *push, DflashError *error) {
  VulkanChange change = {0};
  VulkanPushValues values = {0};
  DflashStatus status = vulkan_settle_open(s, error);
  if (!status) status = open_waiting(s, error);
  if (!status) status = vulkan_change_begin(s, &change, error);
  if (status) return status;
  forget(&change, pos);
  push->waiting = change.len - change.settled;
  plan_push(s, push);
  status = push->settles ? settle_push(&change, push, &values, error)
                         : vulkan_change_reserve(&change, push->waiting + push->rows, VULKAN_RESERVE_WAIT, error);
  if (status) {
    vulkan_change_drop(&change);
    vulkan_buffer_close(&s->model->device, &values.buffer);
    return status;
  }
  keep_push(&change, push, &values);
  return DFLASH_OK;
}

DflashStatus vulkan_push(DflashSequence *s, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  DflashStatus status = check_range("push", pos, rows, error);
  if (status) return status;
  if (rows > 0 && !taps)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: push: %lld rows without taps", (long long)rows);
  status = check_rewind(s, pos, error);
  if (status) return status;
  if (rows > 0) return push_rows(s, pos, &(Push){.taps = taps, .rows = rows}, error);
  VulkanChange change = change_in_place(s);
  forget(&change, pos);
  keep_in_place(&change);
  return DFLASH_OK;
}

/* ---- settling ---- */

/* keeps: no rows are let go, so that those which span named can be read. */
static DflashStatus settle_waiting(DflashSequence *s, bool keeps, uint64_t *ns, DflashError *error) {
  const VulkanTaps waiting = {.at = s->waiting, .rows = s->len - s->settled};
  VulkanChange change;
  if (waiting.rows == 0) return DFLASH_OK;
  DflashStatus status = vulkan_change_begin(s, &change, error);
  if (status) return status;
  change.keeps = keeps;
  status = vulkan_change_settle(&change, &waiting, ns, error);
  if (status)
    vulkan_change_drop(&change);
  else
    vulkan_change_keep(&change);
  return status;
}

DflashStatus vulkan_settle(DflashSequence *s, DflashError *error) {
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
  if (!k || !v) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: load: k or v is NULL");
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++)
    if (!k[layer] || !v[layer])
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: load: k or v of layer %lld is NULL",
                              (long long)layer);
  return DFLASH_OK;
}

static DflashStatus upload_rows(VulkanChange *change, int64_t len, const float *const *k, const float *const *v,
                                DflashError *error) {
  const DflashGeometry *g = &change->s->model->geometry;
  VulkanDevice *device = &change->s->model->device;
  VulkanUpload upload = {0};
  DflashStatus status = vulkan_upload_begin(device, &upload, error);
  for (int64_t layer = 0; !status && layer < g->layers; layer++) {
    const VulkanHeld *held = &change->held[layer];
    const VulkanRange to_k = vulkan_held_rows(g, held, &held->k, change->first, len);
    const VulkanRange to_v = vulkan_held_rows(g, held, &held->v, change->first, len);
    status = vulkan_upload_copy(device, &upload, to_k, k[layer], to_k.bytes, error);
    if (!status) status = vulkan_upload_copy(device, &upload, to_v, v[layer], to_v.bytes, error);
  }
  if (!status) status = vulkan_upload_end(device, &upload, error);
  vulkan_upload_close(device, &upload);
  return status;
}

DflashStatus vulkan_load(DflashSequence *s, int64_t first, int64_t len, const float *const *k, const float *const *v,
                         DflashError *error) {
  VulkanChange change;
  DflashStatus status = check_load(s, first, len, k, v, error);
  if (!status) status = vulkan_change_begin(s, &change, error);
  if (status) return status;
  vulkan_change_restart(&change, first);
  status = vulkan_change_reserve(&change, len, VULKAN_RESERVE_ALL, error);
  if (!status && len > 0) status = upload_rows(&change, len, k, v, error);
  if (status) {
    vulkan_change_drop(&change);
    return status;
  }
  change.len = change.settled = len;
  vulkan_change_keep(&change);
  return DFLASH_OK;
}

DflashStatus vulkan_span(DflashSequence *s, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error) {
  DflashStatus status = check_layer(s, layer, error);
  if (status) return status;
  *first = s->first;
  *len = s->len;
  *kept_from = s->held[layer].kept;
  return DFLASH_OK;
}

DflashStatus vulkan_read_context(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  DflashStatus status = check_layer(s, layer, error);
  if (status) return status;
  if (rows < 0 || pos < s->first || rows > s->len || pos - s->first > s->len - rows)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "vulkan: read_context: %lld rows at %lld, held are %lld rows at %lld", (long long)rows,
                            (long long)pos, (long long)s->len, (long long)s->first);
  if (rows > 0 && (!k || !v))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_context: k or v is NULL");
  status = settle_waiting(s, true, NULL, error);
  if (status || rows == 0) return status;
  const VulkanHeld *held = &s->held[layer];
  if (pos < held->kept)
    return dflash_error_set(error, DFLASH_CONTEXT_LOST, "vulkan: layer %lld keeps positions from %lld on, not %lld",
                            (long long)layer, (long long)held->kept, (long long)pos);
  const VulkanRange from_k = vulkan_held_rows(g, held, &held->k, pos, rows);
  const VulkanRange from_v = vulkan_held_rows(g, held, &held->v, pos, rows);
  status = vulkan_download(&s->model->device, from_k, k, from_k.bytes, error);
  if (!status) status = vulkan_download(&s->model->device, from_v, v, from_v.bytes, error);
  return status;
}

void vulkan_context_close(DflashSequence *s) {
  VulkanDevice *device = &s->model->device;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    vulkan_buffer_close(device, &s->held[layer].k);
    vulkan_buffer_close(device, &s->held[layer].v);
  }
  vulkan_buffer_close(device, &s->settle_upload);
  vulkan_buffer_close(device, &s->settle_scratch);
  vulkan_buffer_close(device, &s->captured.push);
  free(s->waiting);
  s->waiting = NULL;
}
