/* The child's side of dflash_isolate. Internal to it. */
#ifndef DFLASH_RUN_ISOLATE_CHILD_H
#define DFLASH_RUN_ISOLATE_CHILD_H

#include <sys/types.h>

#include "run/isolate.h"

/* The last line of a child whose fn returned: an exit inside fn looks the same otherwise. No JSON. */
#define DFLASH_CHILD_RETURNED "returned"

/* Does not return. */
_Noreturn void dflash_child_run(int (*fn)(void *context, DflashChild *child), void *context, int descriptor,
                                pid_t parent);

#endif
