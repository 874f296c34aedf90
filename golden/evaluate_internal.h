/* What the parts of an evaluation share. */
#ifndef DFLASH_GOLDEN_EVALUATE_INTERNAL_H
#define DFLASH_GOLDEN_EVALUATE_INTERNAL_H

#include "golden/oracle.h"

typedef struct DflashEvaluation {
  const DflashEvaluate *options;
  DflashCase *c;
  int64_t *tap_row;  /* [context_len], the row of taps that made each held row */
  int64_t last_push; /* -1: the context stages have no rows */
} DflashEvaluation;

/* Allocates what `stored` lacks and the options ask for, and the value itself when it is computed again. A value
 * that is absent and not to be computed is an error. */
DflashStatus dflash_evaluation_fresh(const DflashEvaluation *e, int32_t stage, int64_t layer, const DflashValue *stored,
                                     DflashValue *fresh, DflashError *error);
/* Tells the visitor, moves into `stored` what it lacks, frees the rest of `fresh`. */
void dflash_evaluation_settle(const DflashEvaluation *e, int32_t stage, int64_t layer, DflashValue *stored,
                              DflashValue *fresh);
void dflash_evaluation_free(DflashValue *fresh);

/* A call of the oracle for the case, without inputs. position: of row 0. */
DflashOracleCall dflash_evaluation_call(const DflashEvaluation *e, int32_t stage, int64_t layer, int64_t position);

/* K and V of every held row, in every layer. */
DflashStatus dflash_evaluation_context_state(const DflashEvaluation *e, DflashError *error);
DflashStatus dflash_evaluation_select(const DflashEvaluation *e, DflashError *error);

#endif
