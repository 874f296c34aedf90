/* Work in a child process: a crash or a hang there is an outcome here. */
#ifndef DFLASH_RUN_ISOLATE_H
#define DFLASH_RUN_ISOLATE_H

#include "dflash/status.h"

struct cJSON;

/* Inside the child: sends one record to the parent (a JSON line through a pipe). Also restarts the time limit. */
typedef struct DflashChild DflashChild;
DflashStatus dflash_child_send(DflashChild *child, const struct cJSON *record);
/* Inside the child: drops what is written to stderr from now on (1), or lets it through again (0). A library that
 * chokes on a damaged file prints a last word of its own; the parent's line is the one that counts. */
void dflash_child_hush(DflashChild *child, int hushed);

enum { DFLASH_CHILD_EXITED, DFLASH_CHILD_CRASHED, DFLASH_CHILD_HUNG, DFLASH_CHILD_STOPPED };

typedef struct DflashChildResult {
  int how;        /* DFLASH_CHILD_*; EXITED only when fn returned */
  int value;      /* what fn returned, the signal, or the status of an exit inside fn */
  char text[256]; /* "crashed with signal 11 (Segmentation fault)", "made no progress for 60 s" */
} DflashChildResult;

/* In the parent, for each record; not 0: the child is not needed any more, and is ended. */
typedef int (*DflashRecordFn)(void *context, struct cJSON *record);

/* Forks and runs fn in the child, in a process group of its own, with stdout going to stderr: stdout is the parent's.
 * Ends the child, and every process of its group, when it is silent for longer than timeout_s (0: no limit). The parent
 * must hold no threads. */
DflashStatus dflash_isolate(int (*fn)(void *context, DflashChild *child), void *context, double timeout_s,
                            DflashRecordFn record, void *record_context, DflashChildResult *result, DflashError *error);

#endif
