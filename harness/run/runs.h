/* Records of earlier runs, read back: results, each one case of one run, with what it was made by. */
#ifndef DFLASH_RUN_RUNS_H
#define DFLASH_RUN_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dflash/status.h"

struct cJSON;

typedef struct DflashResult {
  const char *source;      /* the file, or the history and its run */
  const struct cJSON *run; /* the `run` record above it, the last `model` record, NULL when there is none */
  const struct cJSON *model;
  const struct cJSON *bench; /* NULL: nothing was timed */
  const struct cJSON *done;  /* the `case` record */
  int64_t first, end;        /* records of this case in DflashRuns.records: verdicts among them */
} DflashResult;

typedef struct DflashRuns {
  struct cJSON **records; /* all, in order */
  int64_t record_count, record_capacity;
  DflashResult *results;
  int64_t count, capacity;
  char **sources;
  int64_t source_count;
} DflashRuns;

/* Adds what a place holds: a file of JSON lines, several joined by ',' (unless a file has that very name), or
 * HISTORY.db#RUN. DFLASH_IO and DFLASH_INVALID_DATA name file and line. What was read stays after a failure. Start with
 * zeros. */
DflashStatus dflash_runs_read(DflashRuns *runs, const char *place, DflashError *error);
/* Adds the records of one text of JSON lines; `source` names it. */
DflashStatus dflash_runs_parse(DflashRuns *runs, const char *text, uint64_t size, const char *source,
                               DflashError *error);
void dflash_runs_close(DflashRuns *runs);

/* ---- what makes two results comparable ---- */

enum {
  DFLASH_KEY_CASE,
  DFLASH_KEY_WHAT, /* "block", "round=4" */
  DFLASH_KEY_PROFILE,
  DFLASH_KEY_GOLDEN,
  DFLASH_KEY_CACHES,  /* "cold", "cache-hot", "caches as they were" */
  DFLASH_KEY_MACHINE, /* processor, CPUs allowed, the device's name */
  DFLASH_KEY_BACKEND,
  DFLASH_KEY_DEVICE,
  DFLASH_KEY_COUNT
};
enum { DFLASH_KEY_TEXT = 256 };
const char *dflash_key_name(int key); /* "golden" */
/* The golden: its hashes where it has them, else the file's name and size. */
const char *dflash_result_key(const DflashResult *result, int key, char text[DFLASH_KEY_TEXT]);
/* Bit 1 << key for each key in which two results differ. */
unsigned dflash_result_differs(const DflashResult *a, const DflashResult *b);

/* Why the times of a result say nothing: "" when they do. It did not pass; or, unless it is one of a pair, whose other
 * half saw the same, the device was throttled, a device that is not the host held other processes, or the load per CPU
 * was above `load` (0: not looked at). */
const char *dflash_result_disturbed(const DflashResult *result, bool paired, double load, char text[DFLASH_KEY_TEXT]);
/* A member of what made a result: "revision", "compiler", "driver", "settings", ...; "" when unknown. */
const char *dflash_result_made(const DflashResult *result, const char *name, char text[DFLASH_KEY_TEXT]);

#endif
