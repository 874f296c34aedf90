/* One case end to end, inside the child. */
#ifndef DFLASH_RUN_VERIFY_CASE_H
#define DFLASH_RUN_VERIFY_CASE_H

#include "run/case_run.h"

/* Runs the modes asked for and sends a record per verdict, then the `case` record. A case that cannot be read
 * or judged at all is an error; a backend's failure is a verdict. */
DflashStatus dflash_verify_case(DflashSession *session, int64_t index, DflashError *error);
/* The command that shows a failure again, and only it; the caller's; NULL: no memory. */
char *dflash_verify_reproduce(const DflashCaseRun *run, const DflashVerdict *failure);

#endif
