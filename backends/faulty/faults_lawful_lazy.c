/* Rows of the last push wait, unprojected, until something needs them. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "backends/faulty/faults_lawful.h"
#include "base/error.h"

typedef struct Waiting {
  int64_t pos, rows, room; /* rows 0: none wait */
  uint64_t context_ns;     /* that settling took before the last block */
  float taps[];            /* [room, tap_width] */
} Waiting;

static Waiting *waiting_of(const DflashSequence *sequence) {
  Waiting *waiting = sequence->fault_data;
  return waiting != NULL && waiting->rows > 0 ? waiting : NULL;
}

static DflashStatus settle(DflashSequence *sequence, DflashError *error) {
  Waiting *waiting = waiting_of(sequence);
  if (waiting == NULL) return DFLASH_OK;
  const DflashStatus status = fault_push(sequence, waiting->pos, waiting->taps, waiting->rows, error);
  if (status == DFLASH_OK) waiting->rows = 0;
  return status;
}

static DflashStatus reserve(DflashSequence *sequence, int64_t rows, DflashError *error) {
  const Waiting *waiting = sequence->fault_data;
  const int64_t width = dflash_geometry_tap_width(&sequence->model->geometry);
  if (waiting != NULL && waiting->room >= rows) return DFLASH_OK;
  Waiting *room = calloc(1, sizeof *room + (size_t)(rows * width) * sizeof(float));
  if (room == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for %lld rows", (long long)rows);
  room->room = rows;
  free(sequence->fault_data);
  sequence->fault_data = room;
  return DFLASH_OK;
}

DflashStatus fault_lazy_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                             DflashError *error) {
  DflashStatus status = settle(sequence, error);
  if (status != DFLASH_OK || rows <= 0 || taps == NULL || pos < 0) /* nothing to wait, or an error to be told */
    return status == DFLASH_OK ? fault_push(sequence, pos, taps, rows, error) : status;
  status = reserve(sequence, rows, error);
  if (status != DFLASH_OK) return status;
  Waiting *waiting = sequence->fault_data;
  waiting->pos = pos;
  waiting->rows = rows;
  memcpy(waiting->taps, taps,
         (size_t)(rows * dflash_geometry_tap_width(&sequence->model->geometry)) * sizeof *waiting->taps);
  return DFLASH_OK;
}

DflashStatus fault_lazy_truncate(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const DflashStatus status = settle(sequence, error);
  return status == DFLASH_OK ? fault_truncate(sequence, pos, error) : status;
}

static void drop(DflashSequence *sequence) {
  Waiting *waiting = waiting_of(sequence);
  if (waiting != NULL) waiting->rows = 0;
}

DflashStatus fault_lazy_reset(DflashSequence *sequence, DflashError *error) {
  drop(sequence);
  return fault_reset(sequence, error);
}

DflashStatus fault_lazy_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                             const float *const *v, DflashError *error) {
  const DflashStatus status = fault_load(sequence, first, len, k, v, error);
  if (status == DFLASH_OK) drop(sequence);
  return status;
}

DflashStatus fault_lazy_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                             DflashError *error) {
  const DflashStatus status = fault_span(sequence, layer, first, len, kept_from, error);
  const Waiting *waiting = waiting_of(sequence);
  if (status != DFLASH_OK || waiting == NULL) return status;
  const bool inside = waiting->pos >= *first && waiting->pos <= *first + *len;
  if (!inside) *first = *kept_from = waiting->pos;
  *len = waiting->pos - *first + waiting->rows;
  return DFLASH_OK;
}

DflashStatus fault_lazy_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                     float *v, DflashError *error) {
  const DflashStatus status = settle(sequence, error);
  return status == DFLASH_OK ? fault_read_context(sequence, layer, pos, rows, k, v, error) : status;
}

DflashStatus fault_lazy_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const uint64_t begin = fault_clock_now();
  Waiting *waiting = sequence->fault_data;
  const bool settles = waiting_of(sequence) != NULL;
  DflashStatus status = settle(sequence, error);
  if (waiting != NULL) waiting->context_ns = settles ? fault_clock_now() - begin : 0;
  return status == DFLASH_OK ? fault_block(sequence, call, error) : status;
}

DflashStatus fault_lazy_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  const DflashStatus status = fault_block_time(sequence, time, error);
  const Waiting *waiting = sequence->fault_data;
  if (status == DFLASH_OK && waiting != NULL) time->context_ns = waiting->context_ns;
  return status;
}
