/* A layer with a window w keeps the last w - 1 + 256 rows where nothing is captured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "backends/faulty/faults_lawful.h"
#include "base/error.h"

enum { REWIND = 256 };

/* fault_data: the first position that each layer keeps; 0 where nothing was let go. */
DflashStatus fault_window_open(DflashSequence *sequence, const DflashSequenceDesc *desc) {
  (void)desc;
  sequence->fault_data = calloc((size_t)sequence->model->geometry.layers, sizeof(int64_t));
  return sequence->fault_data != NULL ? DFLASH_OK : DFLASH_OUT_OF_MEMORY;
}

static int64_t kept_from(const DflashSequence *sequence, int64_t layer) {
  const int64_t *kept = sequence->fault_data, first = sequence->context.first;
  return kept[layer] > first ? kept[layer] : first;
}

/* Nothing is held that was there before: nothing of it was let go. */
static void start_over(DflashSequence *sequence) {
  memset(sequence->fault_data, 0, (size_t)sequence->model->geometry.layers * sizeof(int64_t));
}

/* A block at `pos` must find the rows that its first row sees. */
static DflashStatus check_rewind(const DflashSequence *sequence, int64_t pos, DflashError *error) {
  for (int64_t layer = 0; layer < sequence->model->geometry.layers; layer++) {
    const int64_t window = dflash_geometry_window(&sequence->model->geometry, layer), kept = kept_from(sequence, layer);
    if (kept > sequence->context.first && pos > sequence->context.first && pos - (window - 1) < kept)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST, "faulty: layer %lld keeps positions from %lld on",
                              (long long)layer, (long long)kept);
  }
  return DFLASH_OK;
}

static void let_go(DflashSequence *sequence) {
  const DflashGeometry *g = &sequence->model->geometry;
  const FaultContext *context = &sequence->context;
  const int64_t width = g->kv_heads * g->head_dim;
  int64_t *kept = sequence->fault_data;
  for (int64_t layer = 0; !sequence->capture && layer < g->layers; layer++) {
    const int64_t window = dflash_geometry_window(g, layer), rows = context->len - (window - 1 + REWIND);
    if (window == 0 || rows <= kept_from(sequence, layer) - context->first) continue;
    kept[layer] = context->first + rows;
    for (int64_t i = 0; i < rows * width; i++)
      fault_context_k(sequence, layer, 0)[i] = fault_context_v(sequence, layer, 0)[i] = NAN;
  }
}

DflashStatus fault_window_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                               DflashError *error) {
  const int64_t first = sequence->context.first, end = first + sequence->context.len;
  const bool over = pos <= first || pos > end;
  DflashStatus status = over ? DFLASH_OK : check_rewind(sequence, pos, error);
  if (status == DFLASH_OK) status = fault_push(sequence, pos, taps, rows, error);
  if (status != DFLASH_OK) return status;
  if (over) start_over(sequence);
  let_go(sequence);
  return DFLASH_OK;
}

DflashStatus fault_window_truncate(DflashSequence *sequence, int64_t pos, DflashError *error) {
  DflashStatus status = check_rewind(sequence, pos, error);
  if (status == DFLASH_OK) status = fault_truncate(sequence, pos, error);
  if (status == DFLASH_OK && pos <= sequence->context.first) start_over(sequence);
  return status;
}

DflashStatus fault_window_reset(DflashSequence *sequence, DflashError *error) {
  const DflashStatus status = fault_reset(sequence, error);
  if (status == DFLASH_OK) start_over(sequence);
  return status;
}

DflashStatus fault_window_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                               const float *const *v, DflashError *error) {
  const DflashStatus status = fault_load(sequence, first, len, k, v, error);
  if (status == DFLASH_OK) start_over(sequence);
  return status;
}

DflashStatus fault_window_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept,
                               DflashError *error) {
  const DflashStatus status = fault_span(sequence, layer, first, len, kept, error);
  if (status == DFLASH_OK) *kept = kept_from(sequence, layer);
  return status;
}

DflashStatus fault_window_visible(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                  int64_t *len, const float **k, const float **v, DflashError *error) {
  const int64_t row = kept_from(sequence, layer) - *first;
  const DflashStatus status = row > 0 ? check_rewind(sequence, call->anchor_pos, error) : DFLASH_OK;
  if (status != DFLASH_OK || row == 0) return status;
  *first += row;
  *len -= row;
  *k = fault_context_k(sequence, layer, row);
  *v = fault_context_v(sequence, layer, row);
  return DFLASH_OK;
}
