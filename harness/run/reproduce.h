/* The command that repeats what a record tells. */
#ifndef DFLASH_RUN_REPRODUCE_H
#define DFLASH_RUN_REPRODUCE_H

#include "run/options.h"

typedef struct DflashReproduce {
  const char *command;          /* "verify" or "bench" */
  const char *file, *case_name; /* NULL: none */
  const char *second_file;      /* "compare": the values; NULL: none */
  const char *stage;            /* NULL: as it was asked for */
  int64_t layer;                /* -1: none; counts with a stage only */
  const char *mode;             /* NULL: as it was asked for */
} DflashReproduce;

/* With backend, device, profile and options as they were given. free() releases; NULL when memory is out. */
char *dflash_reproduce_command(const DflashRunOptions *options, const DflashReproduce *what);

#endif
