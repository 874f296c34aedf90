/* Options of a command as a table: one row gives the parsing and the help. */
#ifndef DFLASH_CLI_ARGUMENTS_H
#define DFLASH_CLI_ARGUMENTS_H

#include <stdint.h>

#include "dflash/status.h"

enum {
  DFLASH_ARGUMENT_FLAG,    /* int *: set to 1 */
  DFLASH_ARGUMENT_TEXT,    /* const char ** */
  DFLASH_ARGUMENT_NUMBER,  /* int64_t * */
  DFLASH_ARGUMENT_THREADS, /* int64_t *: 0 to DFLASH_THREADS_MAX */
  DFLASH_ARGUMENT_SHARE,   /* double *: "1%" */
  DFLASH_ARGUMENT_SECONDS, /* double *: "60s" */
  DFLASH_ARGUMENT_CALL     /* take(context, value, error) */
};

#define DFLASH_THREADS_MAX 1024

/* What --seed was given: decimal digits alone, below 2^64; leading zeros change nothing. NULL: *seed stays. */
DflashStatus dflash_argument_seed(const char *value, uint64_t *seed, DflashError *error);

typedef struct DflashArgument {
  const char *name;  /* without dashes; a short form stands after a comma: "output,o" */
  const char *value; /* what the help calls it; NULL for a flag */
  const char *help;
  int kind;
  void *target;
  DflashStatus (*take)(void *context, const char *value, DflashError *error);
} DflashArgument;

/* Parses argv[1 ..]; operands (what is no option) come to the front of argv, *operands counts them from argv[1].
 * "--help" prints `usage` and the table on stdout and gives DFLASH_OK with *helped 1, unless a
 * bad option stands before it. */
DflashStatus dflash_arguments_parse(int argc, char **argv, const char *usage, const DflashArgument *table, int count,
                                    int *operands, int *helped, DflashError *error);

#endif
