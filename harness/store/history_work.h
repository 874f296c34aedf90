/* Records on their way into a history, run by run, case by case. Internal to the history. */
#ifndef DFLASH_STORE_HISTORY_WORK_H
#define DFLASH_STORE_HISTORY_WORK_H

#include "store/history_parts.h"

struct cJSON;

typedef struct DflashHistoryWork {
  DflashHistory *history;
  bool in_transaction; /* the caller's: none is begun here */
  DflashHistoryCounts counts;
  /* of the run in work */
  struct cJSON *run, *model; /* its first record; the last model opened */
  char *head;                /* the line of run; NULL: no run in work */
  int64_t id, number;        /* 0: not in the file yet; place of the next result */
  /* what no result holds yet: lines, and how much of them would stay without one more case record */
  DflashText lines;
  size_t kept;
  struct cJSON *bench, *draw; /* the last ones waiting; draw, or a defect: what a summary completes */
} DflashHistoryWork;

/* Takes one record, in the order of docs/records.md. A `case` writes its result, a `summary` ends the run; each in one
 * transaction. DFLASH_INVALID_DATA: a record before any `run`. */
DflashStatus dflash_history_work_take(DflashHistoryWork *work, const struct cJSON *record, DflashError *error);
/* Writes a run that has no summary as far as it is known; releases what the work holds. */
DflashStatus dflash_history_work_close(DflashHistoryWork *work, DflashError *error);

/* Everything that `lines` says about one case, with its `record` of type "case" or a sweep's "summary". */
DflashStatus dflash_history_put_result(DflashHistoryWork *work, const struct cJSON *record, const DflashText *lines,
                                       DflashError *error);

/* ---- what columns hold, from records (history_facts.c) ---- */

typedef struct DflashHistorySeries {
  const char *kind, *backend, *device, *device_name, *profile, *case_name, *inputs_hash, *modes;
  char *settings, *machine; /* free() releases */
} DflashHistorySeries;

const char *dflash_history_kind(const struct cJSON *run); /* the command; "" when it is none that is known */
int64_t dflash_history_time(const struct cJSON *run);     /* 0: unknown */
char *dflash_history_machine(const struct cJSON *run);    /* NULL: memory is out */
/* The words of settings that make a series, joined; NULL: memory is out. */
char *dflash_history_settings(const char *settings);
/* The value of a word KEY=VALUE of settings, "" when it is not there. */
void dflash_history_setting(const char *settings, const char *key, char *value, size_t size);
typedef struct DflashHistoryState {
  double load, other_users, throttle; /* NaN: unknown */
} DflashHistoryState;
DflashHistoryState dflash_history_state(const struct cJSON *bench); /* what disturbed a bench; NULL: no bench */
DflashStatus dflash_history_hash(const char *text, size_t size, DflashText *uid, DflashError *error); /* 16 bytes */

#endif
