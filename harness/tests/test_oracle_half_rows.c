#include "test_oracle_half_rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compare/compare.h"

static double rms(const Stats *s) { return s->count ? sqrt(s->squares / (double)s->count) : 0; }

void stats_measure(Stats *stats, const float *got, const float *golden, const float *sigma, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - (double)golden[i]);
    assert_false(isnan(error) || isnan(sigma[i]));
    double z = sigma[i] > 0 ? error / sigma[i] : error > 0 ? INFINITY : 0;
    stats->squares += z * z;
    stats->max = fmax(stats->max, z);
    stats->count++;
  }
}

void row_add(Row *row, const Stats *stats) {
  row->rms[row->ways++] = rms(stats);
  row->highest = fmax(row->highest, rms(stats));
  row->max = fmax(row->max, stats->max);
}

static void show_row(const char *what, const Row *row) {
  char text[128] = "";
  if (!getenv("DFLASH_TABLE")) return;
  for (int i = 0, at = 0; i < row->ways; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, " %.2f |", row->rms[i]);
  print_message("| %s |%s %.1f | %.2f |\n", what, text, row->max, row->max / DFLASH_LAMBDA);
}

void row_check(const char *what, const Row *row, double least) {
  show_row(what, row);
  if (row->max > 7 || row->highest > 1.4 || row->highest < least)
    fail_msg("%s: highest rms %g, largest z %g", what, row->highest, row->max);
}
