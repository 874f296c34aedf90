#include "time/clock.h"

#include <math.h>
#include <time.h>

#include "base/error.h"

enum { PROOF_NS = 20000000, READINGS = 512, PAIR_TRIES = 64 };

static uint64_t read_clock(clockid_t id) {
  struct timespec t;
  if (clock_gettime(id, &t) != 0) return 0; /* a clock that stands still, which the proof refuses */
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t dflash_clock_ns(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t dflash_clock_cpu_ns(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

static uint64_t raw_ns(void) { return read_clock(CLOCK_MONOTONIC_RAW); }

typedef struct Pair {
  uint64_t clock, raw; /* the same moment on both */
} Pair;

/* The reading with the raw clock's two closest around it: being scheduled out in between would look like drift. */
static Pair read_pair(uint64_t (*now)(void)) {
  Pair best = {0};
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < PAIR_TRIES; i++) {
    uint64_t before = raw_ns(), clock = now(), after = raw_ns();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = (Pair){.clock = clock, .raw = before + narrowest / 2};
  }
  return best;
}

typedef struct Steps {
  uint64_t last, smallest; /* smallest: UINT64_MAX before the first step */
  int backwards;
} Steps;

static void watch_steps(uint64_t (*now)(void), Steps *steps) {
  for (int i = 0; i < READINGS; i++) {
    uint64_t reading = now();
    if (reading < steps->last) steps->backwards = 1;
    if (reading > steps->last && reading - steps->last < steps->smallest) steps->smallest = reading - steps->last;
    steps->last = reading;
  }
}

DflashStatus dflash_clock_prove(uint64_t (*now)(void), DflashClockProof *proof, DflashError *error) {
  Pair begin = read_pair(now);
  Steps steps = {.last = begin.clock, .smallest = UINT64_MAX};
  double cost = INFINITY;
  for (uint64_t raw = begin.raw; raw - begin.raw < PROOF_NS && !steps.backwards;) {
    uint64_t from = raw_ns();
    watch_steps(now, &steps);
    raw = raw_ns();
    cost = fmin(cost, (double)(raw - from) / READINGS);
  }
  Pair end = read_pair(now);
  double elapsed = (double)(end.raw - begin.raw);
  if (steps.backwards || end.clock < begin.clock)
    return dflash_error_set(error, DFLASH_INTERNAL, "the clock ran backwards within %.1f ms", elapsed / 1e6);
  if (steps.smallest == UINT64_MAX)
    return dflash_error_set(error, DFLASH_INTERNAL, "the clock stood still for %.1f ms", elapsed / 1e6);
  *proof = (DflashClockProof){.resolution_ns = steps.smallest,
                              .cost_ns = cost,
                              .against_realtime = (double)(end.clock - begin.clock) / elapsed};
  if (fabs(proof->against_realtime - 1) > 0.01)
    return dflash_error_set(error, DFLASH_INTERNAL,
                            "the clock runs at %.4f times the rate of CLOCK_MONOTONIC_RAW; at most 1%% off is valid",
                            proof->against_realtime);
  return DFLASH_OK;
}
