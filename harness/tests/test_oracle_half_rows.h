/* Errors in sigmas, gathered over ways of computing into rows of a table. */
#ifndef DFLASH_TESTS_ORACLE_HALF_ROWS_H
#define DFLASH_TESTS_ORACLE_HALF_ROWS_H

#include <stdint.h>

typedef struct Stats {
  double squares, max; /* of z = error / sigma */
  int64_t count;
} Stats;

void stats_measure(Stats *stats, const float *got, const float *golden, const float *sigma, int64_t count);

/* What the ways of a profile show. */
typedef struct Row {
  double rms[4], highest, max;
  int ways;
} Row;

void row_add(Row *row, const Stats *stats);
/* Fails when the highest root mean square leaves least .. 1.4 or the largest z passes 7. DFLASH_TABLE=1 prints it. */
void row_check(const char *what, const Row *row, double least);

#endif
