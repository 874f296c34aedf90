/* Files that are judged without a backend: dumps, and values that another engine wrote. Each file is read in a child
 * process, its verdicts go to the store, and an exit status comes of all. */
#ifndef DFLASH_RUN_OFFLINE_H
#define DFLASH_RUN_OFFLINE_H

#include "run/case_record.h"
#include "run/isolate.h"

struct cJSON;

/* One file's work, in the child. */
typedef struct DflashOffline {
  const DflashRunOptions *options;
  const char *file; /* as records name it */
  DflashChild *child;
  uint64_t begun; /* when the case in work was, dflash_clock_ns */
} DflashOffline;

/* Judges offline->file; an error it returns makes the file bad input, or what its status says. */
typedef DflashStatus (*DflashOfflineFn)(DflashOffline *offline, DflashError *error);

/* Judges the first file_count of the options' files; the exit status. what: "dump" for messages. */
int dflash_offline_run(const DflashRunOptions *options, int64_t file_count, const char *what, DflashOfflineFn judge);

/* Inside the child. Every case of the file, asked for or not: a name that none has is a mistake. */
void dflash_offline_known(DflashOffline *offline, const char *case_name);
/* A line of the log for whoever looks on, DFLASH_LOG_ERROR or DFLASH_LOG_WARNING; a warning is not told with --quiet.
 */
void dflash_offline_say(DflashOffline *offline, int level, const char *text);
/* Restarts the time limit. */
void dflash_offline_progress(DflashOffline *offline, const char *text);

/* Whose values they are, for records. */
typedef struct DflashOfflineCase {
  const char *name, *modes, *backend, *device, *profile;
  const char *inputs_hash, *reproduce; /* may be NULL */
  const char *required;                /* what is not there and fails a case that is right otherwise; NULL: nothing */
} DflashOfflineCase;
/* What was asked for and a file has not. */
typedef struct DflashAbsent {
  int64_t stages;          /* of the cases that it has: stages and layers */
  int64_t cases, of_cases; /* of the golden's cases */
} DflashAbsent;
/* Of this file, for the summary. */
void dflash_offline_absent(DflashOffline *offline, const DflashAbsent *absent);

/* All verdicts of a case, then its record. */
DflashStatus dflash_offline_case(DflashOffline *offline, const DflashOfflineCase *c, const DflashVerdicts *verdicts,
                                 DflashError *error);

#endif
