/* The host's clock, and the proof that it ticks. */
#ifndef DFLASH_TIME_CLOCK_H
#define DFLASH_TIME_CLOCK_H

#include <stdint.h>

#include "dflash/status.h"

uint64_t dflash_clock_ns(void);     /* CLOCK_MONOTONIC */
uint64_t dflash_clock_cpu_ns(void); /* CLOCK_PROCESS_CPUTIME_ID: all threads of this process */

typedef struct DflashClockProof {
  uint64_t resolution_ns;  /* smallest step seen */
  double cost_ns;          /* of one reading */
  double against_realtime; /* its rate over that of CLOCK_MONOTONIC_RAW, about 1 */
} DflashClockProof;

/* Measures the clock `now` for about 20 ms; DFLASH_INTERNAL when it stands still, runs backwards or drifts by more
 * than 1% from the raw clock. */
DflashStatus dflash_clock_prove(uint64_t (*now)(void), DflashClockProof *proof, DflashError *error);

#endif
