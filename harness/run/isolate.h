/* Work in a child process: a crash or a hang there is an outcome here. */
#ifndef DFLASH_RUN_ISOLATE_H
#define DFLASH_RUN_ISOLATE_H

#include "dflash/status.h"

struct cJSON;

/* Inside the child: sends one record to the parent (a JSON line through a pipe). Also restarts the time limit. */
typedef struct DflashChild DflashChild;
DflashStatus dflash_child_send(DflashChild *child, const struct cJSON *record);

enum { DFLASH_CHILD_EXITED, DFLASH_CHILD_CRASHED, DFLASH_CHILD_HUNG };

typedef struct DflashChildResult {
  int how;        /* DFLASH_CHILD_* */
  int value;      /* what fn returned, or the signal */
  char text[256]; /* "killed by signal 11 (Segmentation fault)", "no progress for 60 s" */
} DflashChildResult;

/* Forks, runs fn in the child with its own process group, calls record in the parent for each record sent, ends the
 * child when it is silent for longer than timeout_s (0: no limit). The parent must hold no threads. */
DflashStatus dflash_isolate(int (*fn)(void *context, DflashChild *child), void *context, double timeout_s,
                            void (*record)(void *record_context, struct cJSON *record), void *record_context,
                            DflashChildResult *result, DflashError *error);

#endif
