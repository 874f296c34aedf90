/* Truncate, reset, a new sequence, and a context that is given directly. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_context.h"
#include "base/error.h"

static int64_t end_of(const DflashSequence *sequence) { return sequence->context.first + sequence->context.len; }

/* ---- open ---- */

/* The length counter of the sequence that ran last survives; what it counts does not. */
DflashStatus fault_open_with_length(DflashSequence *sequence, const DflashSequenceDesc *desc) {
  (void)desc;
  const DflashSequence *last = sequence->model->last;
  if (last == NULL) return DFLASH_OK;
  const DflashStatus status = fault_context_reserve(sequence, last->context.len, NULL);
  if (status == DFLASH_OK) sequence->context.len = last->context.len;
  return status;
}

/* ---- truncate ---- */

DflashStatus fault_truncate_nothing(DflashSequence *sequence, int64_t pos, DflashError *error) {
  (void)sequence, (void)pos, (void)error;
  return DFLASH_OK;
}

DflashStatus fault_truncate_one_more(DflashSequence *sequence, int64_t pos, DflashError *error) {
  return fault_truncate(sequence, pos - 1, error);
}

/* Notes how many rows were held: the write cursor that is not moved. */
DflashStatus fault_truncate_marks_cursor(DflashSequence *sequence, int64_t pos, DflashError *error) {
  int64_t *cursor = sequence->fault_data != NULL ? sequence->fault_data : malloc(sizeof *cursor);
  if (cursor == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a cursor");
  sequence->fault_data = cursor;
  *cursor = sequence->context.len;
  return fault_truncate(sequence, pos, error);
}

/* Of a layer with a window, only the window less one was held; what a rewind brings back is empty. */
DflashStatus fault_truncate_past_ring(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const DflashGeometry *g = &sequence->model->geometry;
  const int64_t held = sequence->context.len;
  const DflashStatus status = fault_truncate(sequence, pos, error);
  const int64_t left = sequence->context.len, width = g->kv_heads * g->head_dim;
  for (int64_t layer = 0; status == DFLASH_OK && left < held && layer < g->layers; layer++) {
    const int64_t window = dflash_geometry_window(g, layer);
    const int64_t gone = window > 0 ? held - (window - 1) : 0;
    if (gone > 0)
      memset(fault_context_k(sequence, layer, 0), 0, (size_t)((gone < left ? gone : left) * width) * sizeof(float));
  }
  return status;
}

/* A rewind that no ring of the contract refuses. */
DflashStatus fault_truncate_refused(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const DflashGeometry *g = &sequence->model->geometry;
  const int64_t window = dflash_geometry_window(g, 0);
  if (window > 0 && pos > sequence->context.first && pos < end_of(sequence) && sequence->context.len >= window)
    return dflash_error_set(error, DFLASH_CONTEXT_LOST, "faulty: truncate: position %lld is kept no more",
                            (long long)pos);
  return fault_truncate(sequence, pos, error);
}

/* Past the end: as many rows are forgotten as lie between. */
DflashStatus fault_truncate_shortens(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const int64_t past = pos - end_of(sequence);
  if (past <= 0) return fault_truncate(sequence, pos, error);
  sequence->context.len = past < sequence->context.len ? sequence->context.len - past : 0;
  return DFLASH_OK;
}

/* Past the end: the length is what is asked for, the rows were never written. */
DflashStatus fault_truncate_lengthens(DflashSequence *sequence, int64_t pos, DflashError *error) {
  if (pos <= end_of(sequence)) return fault_truncate(sequence, pos, error);
  const DflashStatus status = fault_context_reserve(sequence, pos - sequence->context.first, error);
  if (status == DFLASH_OK) sequence->context.len = pos - sequence->context.first;
  return status;
}

DflashStatus fault_truncate_moves_first(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const DflashStatus status = fault_truncate(sequence, pos, error);
  if (status == DFLASH_OK && pos < sequence->context.first) sequence->context.first = pos;
  return status;
}

DflashStatus fault_truncate_ignored(DflashSequence *sequence, int64_t pos, DflashError *error) {
  return pos < sequence->context.first ? DFLASH_OK : fault_truncate(sequence, pos, error);
}

/* ---- reset ---- */

DflashStatus fault_reset_nothing(DflashSequence *sequence, DflashError *error) {
  (void)sequence, (void)error;
  return DFLASH_OK;
}

DflashStatus fault_reset_first_kept(DflashSequence *sequence, DflashError *error) {
  (void)error;
  sequence->context.len = 0;
  return DFLASH_OK;
}

DflashStatus fault_reset_length_kept(DflashSequence *sequence, DflashError *error) {
  (void)error;
  sequence->context.first = 0;
  return DFLASH_OK;
}

/* ---- load ---- */

FAULT_LOAD(fault_load_from_0) {
  (void)first;
  return fault_load(sequence, 0, len, k, v, error);
}

FAULT_LOAD(fault_load_swapped) { return fault_load(sequence, first, len, v, k, error); }

/* Layer l is given the rows of layer l + 1, the last one those of the first. */
FAULT_LOAD(fault_load_layers_turned) {
  const int64_t layers = sequence->model->geometry.layers;
  const float *turned_k[DFLASH_LIST_MAX], *turned_v[DFLASH_LIST_MAX];
  if (layers > DFLASH_LIST_MAX || len == 0) return fault_load(sequence, first, len, k, v, error);
  for (int64_t layer = 0; layer < layers; layer++) {
    turned_k[layer] = k[(layer + 1) % layers];
    turned_v[layer] = v[(layer + 1) % layers];
  }
  return fault_load(sequence, first, len, turned_k, turned_v, error);
}

/* A restored context has no rows of the drafter, yet they count. */
FAULT_LOAD(fault_load_rows_missing) {
  (void)k, (void)v;
  const DflashStatus status = fault_context_reserve(sequence, len, error);
  if (status != DFLASH_OK) return status;
  sequence->context.first = first;
  sequence->context.len = len;
  return DFLASH_OK;
}
