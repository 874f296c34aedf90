/* Right ways to compute the block that differ from the base's. */
#ifndef DFLASH_FAULTY_FAULTS_LAWFUL_H
#define DFLASH_FAULTY_FAULTS_LAWFUL_H

#include "backends/faulty/kernels.h"

/* Kernels in place of the base's; each may be NULL. */
typedef struct FaultKernels {
  const FaultMatrix *matrix;
  const FaultNorm *norm;
  const FaultConv *conv;
  const FaultAttention *attention;
  const FaultAct *act;
  const FaultSelect *select;
} FaultKernels;

/* Fault.stage for knobs of type FaultKernels; keeps must be "*". */
DflashStatus fault_by_kernels(FaultCall *call);
/* q8_2f by activations times the column field, rounded to f32; q4tp by sums over groups of 32, each scaled once. Other
 * storages by the base. */
DflashStatus fault_by_folding(FaultCall *call);

/* faults_lawful_rows.c */
/* Stages whose rows are independent, in pieces of two rows that overlap. */
DflashStatus fault_by_rows(FaultCall *call);
DflashStatus fault_last_bits_unpromised(FaultCall *call);
DflashStatus fault_unrepeatable(const DflashModel *model, DflashModelInfo *info, DflashError *error);

/* faults_lawful_lazy.c: rows wait until they are needed */
DflashStatus fault_lazy_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                             DflashError *error);
DflashStatus fault_lazy_truncate(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_lazy_reset(DflashSequence *sequence, DflashError *error);
DflashStatus fault_lazy_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                             const float *const *v, DflashError *error);
DflashStatus fault_lazy_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                             DflashError *error);
DflashStatus fault_lazy_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                     float *v, DflashError *error);
DflashStatus fault_lazy_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_lazy_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);

/* faults_lawful_window.c: a sequence that captures nothing lets rows go that no window reaches */
DflashStatus fault_window_open(DflashSequence *sequence, const DflashSequenceDesc *desc);
DflashStatus fault_window_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                               DflashError *error);
DflashStatus fault_window_truncate(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_window_reset(DflashSequence *sequence, DflashError *error);
DflashStatus fault_window_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                               const float *const *v, DflashError *error);
DflashStatus fault_window_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len,
                               int64_t *kept_from, DflashError *error);
DflashStatus fault_window_visible(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                  int64_t *len, const float **k, const float **v, DflashError *error);

#endif
