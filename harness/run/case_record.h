/* The `case` record that verdicts come to. */
#ifndef DFLASH_RUN_CASE_RECORD_H
#define DFLASH_RUN_CASE_RECORD_H

#include "run/verdict.h"

/* type, case, modes, outcome, message and first (of a failure), passed, failed, other, largest_score. NULL when memory
 * is out. */
struct cJSON *dflash_case_record(const DflashVerdicts *verdicts, const char *case_name, const char *modes,
                                 int allow_missing);

#endif
