/* The history of runs: one SQLite file (docs/history.md). A run is one call of the program; each of its cases is a
 * result, which belongs to a series: the same thing done again on the same machine. A result keeps all its records. */
#ifndef DFLASH_STORE_HISTORY_H
#define DFLASH_STORE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dflash/status.h"

struct cJSON;

typedef struct DflashHistory DflashHistory;

#define DFLASH_HISTORY_VERSION 2

/* READ wants a file that is there; WRITE makes one that is missing and brings an older version up to date. A file that
 * is no history, is damaged or comes from a newer version is DFLASH_INVALID_DATA and left as it is; DFLASH_IO: it
 * cannot be opened, locked or written. Every message begins with the path. */
typedef enum DflashHistoryAccess { DFLASH_HISTORY_READ, DFLASH_HISTORY_WRITE } DflashHistoryAccess;
DflashStatus dflash_history_open(const char *path, DflashHistoryAccess access, DflashHistory **history,
                                 DflashError *error);
void dflash_history_close(DflashHistory *history); /* NULL is allowed */

/* ---- reading ---- */

/* What is asked for; all zeros: everything. Texts are shell patterns joined by ',' as in --case, NULL: all. */
typedef struct DflashHistoryFilter {
  const char *kind, *backend, *device, *profile, *case_name, *outcome, *machine;
  const char *golden;   /* patterns over the file's name without folder; or the first 8 or more digits of inputs_hash */
  const char *revision; /* first digits of a commit */
  const char *dirty;    /* "no": only builds without changes */
  int64_t since, until; /* run.time, seconds since 1970 UTC: since <= time < until; 0: no bound */
  int64_t run, series;  /* 0: all */
  int64_t limit;        /* the newest N; 0: all */
  bool oldest_first;    /* order of what comes; the limit takes the newest all the same */
} DflashHistoryFilter;

/* One result. Texts belong to the history and hold until the callback returns; "" where unknown, numbers NaN or 0. */
typedef struct DflashHistoryResult {
  int64_t id, run, number, series, time; /* time: of the run */
  const char *kind;                      /* "verify", "bench", "sweep", ... */
  const char *backend, *device, *device_name, *profile, *case_name;
  const char *golden; /* file name without folder */
  const char *inputs_hash, *values_hash;
  const char *modes, *settings; /* settings: those that make the series */
  const char *machine, *host, *tool, *command;
  const char *revision, *dirty;                        /* of the build that was timed, or else of the tool */
  const char *backend_version, *backend_file, *driver; /* backend_file: hash of the shared object */
  const char *outcome;                                 /* of the case record */
  int64_t passed, failed, other;
  double largest_score, elapsed_s;
  /* bench */
  const char *stopped_by;                             /* "confidence", "budget", "count"; "" for what is no bench */
  const char *side;                                   /* "A" or "B" of a pair of processes, "" for a run by itself */
  int64_t pair;                                       /* number of the pair */
  int64_t samples;                                    /* unstamped blocks; 0 for what is no bench */
  double median_ns, low_ns, high_ns, wall_ns, cpu_ns; /* block.device, and the medians of wall and cpu */
  double load;                                        /* of the machine, over the last minute */
  double other_users;                                 /* of the device, the larger of before and after */
  double throttle;                                    /* bits, of before and after */
} DflashHistoryResult;

/* Calls take for each result, newest first (by time, then id). take returns 0 to go on; another value ends the listing,
 * which then is DFLASH_OK. take must not write to this history, and be quick: while it runs no other program can. */
typedef int (*DflashHistoryTake)(void *context, const DflashHistoryResult *result);
DflashStatus dflash_history_list(DflashHistory *history, const DflashHistoryFilter *filter, DflashHistoryTake take,
                                 void *context, DflashError *error);

/* Everything that result recorded, in order: [model], then verdicts or a bench, then its case. An array;
 * cJSON_Delete releases. Damaged records are DFLASH_INVALID_DATA. */
DflashStatus dflash_history_records(DflashHistory *history, int64_t result, struct cJSON **records, DflashError *error);
/* The last record of that type alone ("bench", "case"); *record NULL when there is none. cJSON_Delete releases. */
DflashStatus dflash_history_record(DflashHistory *history, int64_t result, const char *type, struct cJSON **record,
                                   DflashError *error);
/* The raw block samples of a bench result in ns, in order; *count 0 when it has none. free() releases. */
DflashStatus dflash_history_samples(DflashHistory *history, int64_t result, double **samples, int64_t *count,
                                    DflashError *error);
/* The records of a run that belong to no result: first its `run` record, then what came after the last case. */
DflashStatus dflash_history_run(DflashHistory *history, int64_t run, struct cJSON **records, DflashError *error);

/* ---- moving and removing ---- */

/* The records of everything that matches, run by run in the order of the file, as --json would have written them; a
 * run's own records stand around those of its results. Without any filter also runs that have no result. emit returns 0
 * to go on. *results: how many were told. */
typedef int (*DflashHistoryEmit)(void *context, const struct cJSON *record);
DflashStatus dflash_history_export(DflashHistory *history, const DflashHistoryFilter *filter, DflashHistoryEmit emit,
                                   void *context, int64_t *results, DflashError *error);

typedef struct DflashHistoryCounts {
  int64_t runs, results;         /* taken */
  int64_t old_runs, old_results; /* the history had them already */
} DflashHistoryCounts;

/* Adds the JSON lines of a file, whole or not at all. Runs and results that are there already stay as they are: doing
 * it twice adds nothing. A last line that broke off while it was written is left out. */
DflashStatus dflash_history_import(DflashHistory *history, const char *path, DflashHistoryCounts *counts,
                                   DflashError *error);
/* The same from text of `size` bytes; `name` stands in messages. */
DflashStatus dflash_history_import_text(DflashHistory *history, const char *name, const char *text, uint64_t size,
                                        DflashHistoryCounts *counts, DflashError *error);

typedef struct DflashHistoryPrune {
  int64_t before; /* results of runs before this time; 0: of any time */
  int64_t keep;   /* but never one of the newest `keep` of its series; 0: none is kept for that */
  bool dry_run;   /* only counts */
} DflashHistoryPrune;

/* Removes results, and runs that have none left, in one transaction; then gives the room back to the file system. */
DflashStatus dflash_history_prune(DflashHistory *history, const DflashHistoryPrune *what, int64_t *results,
                                  int64_t *runs, DflashError *error);

#endif
