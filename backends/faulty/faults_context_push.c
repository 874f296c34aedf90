/* What a push leaves in the context. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_context.h"
#include "base/error.h"
#include "model/storage.h"

static int64_t kv_width(const DflashSequence *sequence) {
  return sequence->model->geometry.kv_heads * sequence->model->geometry.head_dim;
}

static size_t bytes_of(const DflashSequence *sequence, int64_t rows) {
  return (size_t)(rows * kv_width(sequence)) * sizeof(float);
}

static int64_t end_of(const DflashSequence *sequence) { return sequence->context.first + sequence->context.len; }

static void clear_rows(DflashSequence *sequence, int64_t row, int64_t rows, bool k, bool v) {
  for (int64_t layer = 0; rows > 0 && layer < sequence->model->geometry.layers; layer++) {
    if (k) memset(fault_context_k(sequence, layer, row), 0, bytes_of(sequence, rows));
    if (v) memset(fault_context_v(sequence, layer, row), 0, bytes_of(sequence, rows));
  }
}

/* ---- rows of the push ---- */

/* K and V stand in one packed value, K before V in each row; rows are copied from it as if it were one of them. */
FAULT_PUSH(fault_push_flat) {
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  const int64_t row = pos - sequence->context.first;
  for (int64_t layer = 0; status == DFLASH_OK && layer < sequence->model->geometry.layers; layer++)
    for (int64_t i = 0; i < rows; i++) {
      const float *k = fault_value(&sequence->push, DFLASH_STAGE_CONTEXT_K, layer);
      const float *v = fault_value(&sequence->push, DFLASH_STAGE_CONTEXT_V_PROJ, layer);
      const float *flat[2] = {i % 2 ? v : k, i % 2 ? k : v};
      const int64_t at[2] = {i / 2, (i + 1) / 2};
      memcpy(fault_context_k(sequence, layer, row + i), flat[0] + at[0] * kv_width(sequence), bytes_of(sequence, 1));
      memcpy(fault_context_v(sequence, layer, row + i), flat[1] + at[1] * kv_width(sequence), bytes_of(sequence, 1));
    }
  return status;
}

/* Of a long push only the last chunk of 16 is computed. */
FAULT_PUSH(fault_push_tail_chunk) {
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  if (status == DFLASH_OK) clear_rows(sequence, pos - sequence->context.first, (rows - 1) / 16 * 16, true, true);
  return status;
}

/* The upload of a later push's last row is not waited for. */
FAULT_PUSH(fault_push_old_taps) {
  const int64_t width = dflash_geometry_tap_width(&sequence->model->geometry);
  if (sequence->pushes == 0 || rows == 0) return fault_push(sequence, pos, taps, rows, error);
  float *copy = calloc((size_t)(rows * width), sizeof *copy);
  if (copy == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for taps");
  memcpy(copy, taps, (size_t)((rows - 1) * width) * sizeof *copy);
  const DflashStatus status = fault_push(sequence, pos, copy, rows, error);
  free(copy);
  return status;
}

/* K of a row that is written late, of all layers. */
typedef struct Late {
  int64_t row; /* -1: none waits */
  float k[];   /* [layers, kv width] */
} Late;

static void settle(DflashSequence *sequence) {
  Late *late = sequence->fault_data;
  if (late == NULL || late->row < 0) return;
  for (int64_t layer = 0; late->row < sequence->context.len && layer < sequence->model->geometry.layers; layer++)
    memcpy(fault_context_k(sequence, layer, late->row), late->k + layer * kv_width(sequence), bytes_of(sequence, 1));
  late->row = -1;
}

/* A push returns before the K of its last row is written; the next push or the end of a block finds it written. */
FAULT_PUSH(fault_push_late) {
  const int64_t layers = sequence->model->geometry.layers, width = kv_width(sequence);
  settle(sequence);
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  if (status != DFLASH_OK || rows == 0) return status;
  Late *late = realloc(sequence->fault_data, sizeof *late + (size_t)(layers * width) * sizeof *late->k);
  if (late == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a row");
  sequence->fault_data = late;
  late->row = sequence->context.len - 1;
  for (int64_t layer = 0; layer < layers; layer++)
    memcpy(late->k + layer * width, fault_context_k(sequence, layer, late->row), bytes_of(sequence, 1));
  clear_rows(sequence, late->row, 1, true, false);
  return status;
}

DflashStatus fault_block_then_late_row(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const DflashStatus status = fault_block(sequence, call, error);
  settle(sequence);
  return status;
}

/* K is held in bf16. */
FAULT_PUSH(fault_push_in_bf16) {
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  for (int64_t layer = 0; status == DFLASH_OK && rows > 0 && layer < sequence->model->geometry.layers; layer++) {
    float *k = fault_context_k(sequence, layer, pos - sequence->context.first);
    for (int64_t i = 0; i < rows * kv_width(sequence); i++) k[i] = dflash_bf16_value(dflash_bf16_round(k[i]));
  }
  return status;
}

/* ---- growth ---- */

/* The hint is not taken, so that buffers grow with the pushes. */
DflashStatus fault_open_without_reserve(DflashSequence *sequence, const DflashSequenceDesc *desc) {
  (void)desc;
  free(sequence->context.rows);
  sequence->context = (FaultContext){0};
  return DFLASH_OK;
}

static DflashStatus push_growing(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, bool k,
                                 DflashError *error) {
  const FaultContext before = sequence->context;
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  const bool grown = before.capacity > 0 && sequence->context.capacity > before.capacity;
  const int64_t kept = sequence->context.len - rows;
  if (status == DFLASH_OK && grown) clear_rows(sequence, 0, kept < before.len ? kept : before.len, k, true);
  return status;
}

FAULT_PUSH(fault_push_growing_empty) { return push_growing(sequence, pos, taps, rows, true, error); }
FAULT_PUSH(fault_push_growing_k_only) { return push_growing(sequence, pos, taps, rows, false, error); }

/* ---- where it goes ---- */

/* Past the end: appended, the gap forgotten. */
FAULT_PUSH(fault_push_over_gap) {
  const bool gap = sequence->context.len > 0 && pos > end_of(sequence);
  return fault_push(sequence, gap ? end_of(sequence) : pos, taps, rows, error);
}

/* Past the end: the gap counts, its rows are never written. */
FAULT_PUSH(fault_push_into_gap) {
  const int64_t gap = sequence->context.len > 0 ? pos - end_of(sequence) : 0;
  if (gap > 0) {
    const DflashStatus status = fault_context_reserve(sequence, sequence->context.len + gap, error);
    if (status != DFLASH_OK) return status;
    clear_rows(sequence, sequence->context.len, gap, true, true);
    sequence->context.len += gap;
  }
  return fault_push(sequence, pos, taps, rows, error);
}

FAULT_PUSH(fault_push_before_first) {
  const bool before = sequence->context.len > 0 && pos < sequence->context.first;
  return fault_push(sequence, before ? sequence->context.first : pos, taps, rows, error);
}

FAULT_PUSH(fault_push_empty_ignored) { return rows == 0 ? DFLASH_OK : fault_push(sequence, pos, taps, rows, error); }

FAULT_PUSH(fault_push_keeping_behind) {
  const int64_t end = end_of(sequence);
  const bool inside = rows > 0 && pos >= sequence->context.first && pos <= end;
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  if (status == DFLASH_OK && inside && end > end_of(sequence)) sequence->context.len = end - sequence->context.first;
  return status;
}

/* ---- rings ---- */

/* The write cursor, left by truncate: rows below it that a push covers keep what they held. */
FAULT_PUSH(fault_push_at_cursor) {
  int64_t *cursor = sequence->fault_data;
  const int64_t row = pos - sequence->context.first;
  const bool inside = row >= 0 && row <= sequence->context.len;
  const int64_t stale = cursor != NULL && inside && *cursor > row ? *cursor - row : 0;
  const int64_t covered = stale < rows ? stale : rows, width = kv_width(sequence);
  const int64_t layers = sequence->model->geometry.layers;
  float *kept = calloc((size_t)(2 * layers * (covered + 1) * width), sizeof *kept);
  if (kept == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for rows");
  for (int64_t layer = 0; covered > 0 && layer < layers; layer++) {
    memcpy(kept + 2 * layer * covered * width, fault_context_k(sequence, layer, row), bytes_of(sequence, covered));
    memcpy(kept + (2 * layer + 1) * covered * width, fault_context_v(sequence, layer, row),
           bytes_of(sequence, covered));
  }
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  for (int64_t layer = 0; status == DFLASH_OK && covered > 0 && layer < layers; layer++) {
    memcpy(fault_context_k(sequence, layer, row), kept + 2 * layer * covered * width, bytes_of(sequence, covered));
    memcpy(fault_context_v(sequence, layer, row), kept + (2 * layer + 1) * covered * width,
           bytes_of(sequence, covered));
  }
  free(kept);
  return status;
}

/* A layer's window less one is all that was held; what a rewind brings back is empty. */
FAULT_PUSH(fault_push_past_ring) {
  const DflashGeometry *g = &sequence->model->geometry;
  const int64_t lost = sequence->context.len, row = pos - sequence->context.first;
  const bool rewinds = row >= 0 && row < lost;
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  for (int64_t layer = 0; status == DFLASH_OK && rewinds && layer < g->layers; layer++) {
    const int64_t window = dflash_geometry_window(g, layer);
    const int64_t gone = window > 0 ? lost - (window - 1) : 0;
    if (gone > 0) memset(fault_context_k(sequence, layer, 0), 0, bytes_of(sequence, gone < row ? gone : row));
  }
  return status;
}
