/* The context that a call is about to leave behind, and the device memory of its rows. */
#ifndef DFLASH_CUDA_HELD_H
#define DFLASH_CUDA_HELD_H

#include "sequence.h"

/* A call works on a change: the sequence stays as it is until cuda_change_keep, which cannot fail. The change shares
 * the sequence's buffers where the rows that they hold stay untouched, and has fresh ones where they would not. */
typedef struct CudaChange {
  DflashSequence *s;
  int64_t first, len, settled;
  CudaHeld *held; /* [layers] */
  bool keeps;     /* no rows are let go */
} CudaChange;

DflashStatus cuda_change_begin(DflashSequence *s, CudaChange *change, DflashError *error);
void cuda_change_keep(CudaChange *change);
void cuda_change_drop(CudaChange *change); /* after a failure */

/* Where only the bookkeeping changes and nothing can fail: the sequence's own rows. */
CudaChange cuda_change_in_place(DflashSequence *s);
void cuda_change_keep_in_place(const CudaChange *change);

/* Holds nothing; the next row is that of position `first`. */
void cuda_change_restart(CudaChange *change, int64_t first);
/* Forgets positions from pos on; first <= pos. */
void cuda_change_cut(CudaChange *change, int64_t pos);

enum {
  CUDA_RESERVE_WAIT,  /* rows that are written after the call, when the change is kept */
  CUDA_RESERVE_WRITE, /* rows that are written before: what the sequence holds must survive that */
  CUDA_RESERVE_ALL    /* the same, and a windowed layer lets none of them go */
};

/* Room for `rows` rows after the settled ones. A windowed layer has room for CUDA_SETTLE_ROWS of more than that: ask
 * again before each piece. It lets old rows go where it needs other memory anyway. */
DflashStatus cuda_change_reserve(CudaChange *change, int64_t rows, int how, DflashError *error);

/* waiting.c: memory for rows that wait, where it is not there yet. */
DflashStatus cuda_waiting_open(DflashSequence *s, DflashError *error);
/* Queues the copy of rows that will be those that wait from row `first` on: settling has nothing to copy then. What
 * waits now stays as it is. */
DflashStatus cuda_waiting_send(DflashSequence *s, int64_t first, const float *taps, int64_t rows, DflashError *error);
/* They are what waits from now on. */
void cuda_waiting_keep(DflashSequence *s, int64_t first, const float *taps, int64_t rows);
/* Before the host writes to the pinned memory of a piece. */
DflashStatus cuda_waiting_sent(DflashSequence *s, DflashError *error);
void cuda_waiting_close(DflashSequence *s);

/* Taps of rows that follow the settled ones. Without values, what is computed on the way is not kept. */
typedef struct CudaTaps {
  const float *at;
  int64_t rows;
  bool waited;                  /* they are those that wait */
  const CudaPushValues *values; /* for these rows */
} CudaTaps;

/* settle.c: projects them, in pieces; *ns (may be NULL) grows by the device's time. */
DflashStatus cuda_change_settle(CudaChange *change, const CudaTaps *taps, uint64_t *ns, DflashError *error);
/* settle_open.c: the memory of a piece, where it is not there yet. */
DflashStatus cuda_settle_open(DflashSequence *s, DflashError *error);
/* Memory for the values of context.*, of every layer or of one. */
DflashStatus cuda_push_values_open(DflashModel *model, int64_t rows, bool every_layer, CudaPushValues *values,
                                   DflashError *error);

/* Where the host writes a piece's taps. */
static inline void *cuda_piece_taps(const DflashSequence *s) {
  return (char *)s->piece_taps.at + (s->piece.h - s->piece.inputs);
}

static inline uint64_t cuda_held_row_bytes(const DflashGeometry *g) {
  return (uint64_t)(g->kv_heads * g->head_dim) * sizeof(float);
}

/* Where position pos of a layer's K or V lies. */
static inline CudaAddress cuda_held_at(const DflashGeometry *g, const CudaHeld *held, const CudaBuffer *buffer,
                                       int64_t pos) {
  return buffer->at + (uint64_t)(pos - held->base) * cuda_held_row_bytes(g);
}

#endif
