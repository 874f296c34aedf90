/* What git knows of a branch. */
#ifndef DFLASH_RUN_GIT_REVISIONS_H
#define DFLASH_RUN_GIT_REVISIONS_H

#include <stdbool.h>

#include "dflash/status.h"

/* The revisions that `git rev-list BRANCH` names, a line each, here and now; free() releases. DFLASH_UNAVAILABLE: git
 * is not there, or knows no such branch. */
DflashStatus dflash_revisions_of(const char *branch, char **revisions, DflashError *error);
bool dflash_revisions_have(const char *revisions, const char *revision); /* a whole one */

#endif
