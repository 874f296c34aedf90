/* Text from a child: commands that read untrusted files or load foreign code print through this. */
#ifndef DFLASH_RUN_REPORT_H
#define DFLASH_RUN_REPORT_H

#include <stdio.h>

#include "run/isolate.h"

/* Runs fn in a child; what it prints to `out` appears on stdout. Returns fn's exit status; a crash or a hang prints
 * "WHAT: ..." and gives `crash_exit`. */
typedef int (*DflashReportFn)(void *context, FILE *out);
int dflash_report(DflashReportFn fn, void *context, double timeout_s, const char *what, int crash_exit);

#endif
