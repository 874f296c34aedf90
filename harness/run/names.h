/* A set of names in the order in which they came: what a message lists, what a selection is checked against. */
#ifndef DFLASH_RUN_NAMES_H
#define DFLASH_RUN_NAMES_H

#include "base/text.h"

typedef struct DflashNames {
  char **at;
  size_t count;
} DflashNames;

void dflash_names_add(DflashNames *names, const char *name); /* once; not at all when memory is out */
void dflash_names_close(DflashNames *names);
/* "cut, main, rewind" */
void dflash_names_list(const DflashNames *names, DflashText *text);
/* The first word of `patterns` (joined by ',') that matches no name; NULL when each matches one. *length: its bytes.
 * Words with wildcards count only when `wild` is set. */
const char *dflash_names_unmatched(const DflashNames *names, const char *patterns, int wild, int *length);

#endif
