/* Drawn goldens in memory on one backend: many shapes, storages, stresses and operation sequences that nobody chose. */
#ifndef DFLASH_RUN_SWEEP_H
#define DFLASH_RUN_SWEEP_H

#include "golden/sweep_draw.h"
#include "run/options.h"

typedef struct DflashSweepOptions {
  /* backend, backend_path, device, profile, options, modes, repeat, timeout_s, threads, allow_missing, json, command,
   * verbose and quiet count */
  const DflashRunOptions *run;
  uint64_t seed;
  int64_t first, count; /* draws first .. first + count - 1 */
  int64_t jobs;         /* processes side by side, >= 1 */
  int shrink;           /* 1: failures are made smaller */
  const char *save;     /* folder for goldens of failures; NULL: none */
  const char *scores;   /* file for the scores of every draw, JSON lines; NULL: none */
} DflashSweepOptions;

/* Runs to the end, prints, writes records, and returns an exit status: 1 when a draw failed, 3 when every draw was
 * declined or the backend is not there (77 with allow_missing), 4 when nothing ran, 5 when nothing was trusted. */
int dflash_run_sweep(const DflashSweepOptions *options);

#endif
