/* The parts of a self test. Internal to it. */
#ifndef DFLASH_RUN_SELFTEST_PARTS_H
#define DFLASH_RUN_SELFTEST_PARTS_H

#include <stdbool.h>

#include "dflash/catalogue.h"
#include "golden/generate.h"
#include "run/loader.h"
#include "run/selftest.h"
#include "run/trial.h"

/* ---- goldens in memory ---- */

/* One case of a shape in one profile. */
typedef struct DflashSelfGolden {
  char name[128]; /* "windows-mixed/main" */
  int32_t profile;
  int64_t shape; /* index of the material */
  DflashCase c;
  bool ready;
} DflashSelfGolden;

typedef struct DflashSelfGoldens {
  struct DflashSelfShape {
    char name[64];
    DflashMaterial *material;
  } * shapes;
  int64_t shape_count, shape_capacity;
  DflashSelfGolden **at;
  int64_t count, capacity;
} DflashSelfGoldens;

/* The golden SHAPE/CASE, made when it is asked for the first time. */
DflashStatus dflash_self_golden(DflashSelfGoldens *goldens, const char *name, int32_t profile,
                                const DflashSelfGolden **golden, DflashError *error);
const DflashMaterial *dflash_self_material(const DflashSelfGoldens *goldens, const DflashSelfGolden *golden);
void dflash_self_goldens_close(DflashSelfGoldens *goldens);

/* ---- trials ---- */

typedef struct DflashSelfTrial {
  const DflashDefect *defect; /* NULL: the base without a defect */
  const DflashSelfGolden *golden;
  bool end;    /* end values only */
  bool timing; /* times a block, too */
  /* what came out */
  bool ran;
  DflashTrialResult result;
  DflashError error; /* when nothing could be judged */
} DflashSelfTrial;

/* Over drawn goldens. */
typedef struct DflashSelfRate {
  int64_t tried, found, broken;
} DflashSelfRate;

enum { DFLASH_SELF_NOT_TRIED, DFLASH_SELF_PASSED, DFLASH_SELF_FOUND, DFLASH_SELF_BROKEN };

typedef struct DflashSelfTest {
  const DflashSelftestOptions *options;
  DflashLoaded loaded;
  const DflashDefect **defects; /* selected */
  int64_t defect_count;
  DflashSelfGoldens goldens;
  DflashSelfTrial *trials; /* shared with the workers */
  int64_t trial_count;
  DflashSelfRate *rates;     /* [defect_count + 1], the last is the base's; shared with the workers; NULL: no draws */
  struct DflashStore *store; /* NULL: no --json */
  uint64_t begin;            /* dflash_clock_ns() */
} DflashSelfTest;

/* The selected part of the backend's catalogue; a backend without one is DFLASH_UNSUPPORTED. */
DflashStatus dflash_self_catalogue(DflashSelfTest *test, DflashError *error);
/* One trial of one golden, in this process's child. */
void dflash_self_run(const DflashSelfTest *test, const DflashMaterial *material, DflashSelfTrial *trial);
/* A backend, base or option that is refused: its own words and status. A profile that the base has not is none. */
DflashStatus dflash_self_refusal(const DflashSelfTrial *trial, DflashError *error);
/* All trials that did not run yet, `jobs` processes side by side; ends early at a refusal. */
DflashStatus dflash_self_run_all(DflashSelfTest *test, DflashError *error);
/* The options of a run with this defect (NULL: none). */
DflashRunOptions dflash_self_options(const DflashSelfTest *test, const DflashDefect *defect, int32_t profile, bool end);
/* Runs work(test, w) in process w of as many as there are jobs, and waits for all. */
DflashStatus dflash_self_workers(const DflashSelfTest *test, void (*work)(const DflashSelfTest *, int64_t),
                                 DflashError *error);
/* Every defect on every draw. */
DflashStatus dflash_self_draw_all(DflashSelfTest *test, DflashError *error);
/* Judged: something was compared. Found at all: something failed. At its stage: and the first divergence is where the
 * catalogue says. */
bool dflash_self_judged(const DflashSelfTrial *trial);
bool dflash_self_found(const DflashSelfTrial *trial);
bool dflash_self_placed(const DflashSelfTrial *trial);

/* ---- report ---- */

enum { DFLASH_SELF_KINDS = 32 };

typedef struct DflashSelfCounts {
  const char *kind;
  int64_t defects, found, placed, end, end_found, excused;
} DflashSelfCounts;

typedef struct DflashSelfSummary {
  DflashSelfCounts kinds[DFLASH_SELF_KINDS], all;
  int kind_count;
  int64_t lawful, correct, alarms; /* judged trials of lawful variants and of the base alone, and those that failed */
  int64_t declined;                /* more of those, in profiles that the base has not */
  int64_t broken;                  /* trials that could not be judged */
  double smallest, largest;        /* score of a defect that was found, of a correct run that passed */
  const char *smallest_of, *largest_at;
  int exit; /* status of the command */
} DflashSelfSummary;

/* Counts and prints. */
void dflash_self_report(const DflashSelfTest *test, DflashSelfSummary *summary);

/* ---- records: all do nothing without --json ---- */

DflashStatus dflash_self_records_open(DflashSelfTest *test, DflashError *error); /* and writes the `run` record */
/* Every trial, every rate, the summary. */
DflashStatus dflash_self_records_write(DflashSelfTest *test, const DflashSelfSummary *summary, DflashError *error);
DflashStatus dflash_self_records_close(DflashSelfTest *test, DflashError *error);

#endif
