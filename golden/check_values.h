/* The values of one case against themselves, computed again. */
#ifndef DFLASH_GOLDEN_CHECK_VALUES_H
#define DFLASH_GOLDEN_CHECK_VALUES_H

#include <stdio.h>

#include "base/pool.h"
#include "model/case.h"
#include "model/weights.h"

typedef struct DflashChecker {
  FILE *out;
  const char *path, *case_name; /* case_name NULL: the file as a whole */
  const DflashGeometry *geometry;
  DflashCase *c;
  int recompute;
  double scale_limit; /* share by which an error scale may differ from the one computed again */
  int64_t wrong, values;
} DflashChecker;

/* One finding: "FILE: case NAME: ..." on out. */
void dflash_check_report(DflashChecker *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One finding that an error's text, which names the file, already holds. */
void dflash_check_report_error(DflashChecker *k, const DflashError *error);

/* Every stored value of the case is finite. (Its error scales are finite and not negative, or it is not loaded.) */
void dflash_check_finite(DflashChecker *k);

/* Every stage, the context state, tokens and, where stored, error scales. */
DflashStatus dflash_check_again(DflashChecker *k, const DflashWeights *weights, DflashPool *pool, DflashError *error);

/* Stages of profile i8, from the case's inputs: those stored as stages.i8, and the exact ones in place of those that
 * are not. The case is one of profile i8 afterwards. */
DflashStatus dflash_check_i8(DflashChecker *k, const DflashWeights *weights, DflashPool *pool, DflashError *error);

/* One stored value against the computed one; NULL where there is none. */
void dflash_check_value(DflashChecker *k, int32_t stage, const char *label, const float *stored, const float *computed,
                        int64_t count);

/* "row 3, head 5, channel 17": where element `index` of a stage's value lies. */
void dflash_check_place(const DflashGeometry *geometry, int32_t stage, int64_t width, int64_t index, char text[96]);

#endif
