/* Text from a child: commands that read untrusted files or load foreign code print through this. */
#ifndef DFLASH_RUN_REPORT_H
#define DFLASH_RUN_REPORT_H

#include <stdio.h>

#include "run/isolate.h"

/* Runs fn in a child. What it prints to `out` appears on stdout, what it puts into *error as an error line; its return
 * value is the exit status. A crash or a hang is the line "WHAT crashed with ..." and gives `crash_exit`. */
typedef int (*DflashReportFn)(void *context, FILE *out, DflashError *error);
int dflash_report(DflashReportFn fn, void *context, double timeout_s, const char *what, int crash_exit);

#endif
