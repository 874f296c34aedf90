/* Timing one case, inside the child. */
#ifndef DFLASH_RUN_BENCH_CASE_H
#define DFLASH_RUN_BENCH_CASE_H

#include "run/case_run.h"
#include "time/clock.h"
#include "time/sample.h"

#define DFLASH_BENCH_SPANS 4096
#define DFLASH_BENCH_READS 512

/* Channels of a sample: whole block by the device's clock, wall and CPU time of the call, the stamped block,
 * then one per span. */
enum { DFLASH_CHANNEL_DEVICE, DFLASH_CHANNEL_WALL, DFLASH_CHANNEL_CPU, DFLASH_CHANNEL_STAMPED, DFLASH_CHANNEL_SPANS };

typedef struct DflashBenchCase {
  DflashCaseRun run;
  uint64_t begin_ns;
  DflashSequence *sequence;             /* the timed one: captures nothing */
  DflashTokenBuffers tokens;            /* of the last timed block */
  DflashTokenBuffers first;             /* of the first one, which was judged */
  DflashSpan spans[DFLASH_BENCH_SPANS]; /* of the last stamped block */
  uint32_t span_count;
  int64_t round_pos; /* where a round truncates to */
  int64_t *tap_row;  /* of each held position */
  float *round_rows; /* [round, tap_width] */
  DflashSamples samples;
  DflashClockProof proof;
  double read_beside[DFLASH_BENCH_READS]; /* streaming reads taken between the samples */
  int64_t read_count;
  uint64_t read_done_ns, read_cost_ns;
  double read_rate, matrix_rate; /* of the device, 0: not known */
  uint64_t resolution_ns;
  int clock;
  double largest_score; /* of the parity run */
  const char *check;    /* what is being looked at: "block", "clock", "spans", "timed block" */
  uint64_t told_ns;     /* when the parent last heard of the sampling */
  DflashDeviceState before, after;
} DflashBenchCase;

/* Bytes and operations of a whole block, context stages left out: weights as held, activations once. */
typedef struct DflashWork {
  double bytes, operations;
} DflashWork;
DflashWork dflash_bench_block_work(const DflashBenchCase *bench);
/* One timed block (or round) on the timed sequence, in ns; what it wrote is checked, and the time it tells. */
DflashStatus dflash_bench_block(DflashBenchCase *bench, uint32_t flags, double *device, double *wall, double *cpu,
                                DflashError *error);
/* Short and whole blocks in turn: a clock that tells the time of another block shows. */
DflashStatus dflash_bench_alternate(DflashBenchCase *bench, DflashError *error);
/* 1 when the block may live in the last-level cache: its bytes are below 4 times that, and nothing evicts. */
int dflash_bench_is_hot(const DflashBenchCase *bench);

DflashStatus dflash_bench_case(DflashSession *session, int64_t index, DflashError *error);

/* The `bench` record; NULL when memory is out. */
struct cJSON *dflash_bench_record(const DflashBenchCase *bench);

#endif
