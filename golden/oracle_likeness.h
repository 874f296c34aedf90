/* Rows of a block that are alike have errors that are alike. docs/error-scale.md tells where it counts. */
#ifndef DFLASH_GOLDEN_ORACLE_LIKENESS_H
#define DFLASH_GOLDEN_ORACLE_LIKENESS_H

#include <stdint.h>

/* out[r]: the cosine between row r of values [rows, width] and the mean of all rows' directions, 0 where it is negative
 * or the row is 0. Errors that rows r and s inherit are taken to correlate by out[r] * out[s]. */
void dflash_likeness(const float *values, int64_t rows, int64_t width, double *out);

#endif
