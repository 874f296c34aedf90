/* Is a backend's clock believable? What it says of its blocks against the harness's own clock around the calls. */
#ifndef DFLASH_RUN_BENCH_CLOCK_H
#define DFLASH_RUN_BENCH_CLOCK_H

#include "run/bench_case.h"

/* What one call of block told. */
typedef struct DflashCallTime {
  double device_ns;  /* by the backend */
  double wall_ns;    /* around the call, by the harness */
  double context_ns; /* settling of rows, which device_ns leaves out */
} DflashCallTime;

/* Each is DFLASH_INTERNAL with the numbers. A host's clock is the harness's own: no block lasts longer than its call. A
 * device's clock runs beside it and is granted a hundredth and 0.1 ms. */
DflashStatus dflash_bench_check_call(const DflashBenchCase *bench, const DflashCallTime *time, DflashError *error);
/* Spans of a stamped block of device_ns: known stages, in order of begin, none outside the block, none that ends before
 * it begins; on a host none that overlaps another. */
DflashStatus dflash_bench_check_spans(const DflashBenchCase *bench, double device_ns, DflashError *error);
/* On a host the clock covers what calls take, but for entering and leaving them. */
DflashStatus dflash_bench_check_cover(const DflashBenchCase *bench, double device_ns, double wall_ns,
                                      DflashError *error);
/* Every stage of the block lies in a span, its own or that of its dispatch. */
DflashStatus dflash_bench_check_whole(const DflashBenchCase *bench, DflashError *error);
/* All samples: the clock moves, and covers the calls' medians. */
DflashStatus dflash_bench_check_samples(const DflashBenchCase *bench, DflashError *error);

#endif
