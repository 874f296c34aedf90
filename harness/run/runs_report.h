/* Comparisons for a person and as records. */
#ifndef DFLASH_RUN_RUNS_REPORT_H
#define DFLASH_RUN_RUNS_REPORT_H

#include <stdio.h>

#include "base/text.h"
#include "run/runs_compare.h"

/* Tables and verdicts of all cases. */
void dflash_runs_print(FILE *file, const DflashRunsComparison *comparison);
/* The same as Markdown. */
void dflash_runs_markdown(DflashText *out, const DflashRunsComparison *comparison);
/* "main: blas on cpu, profile exact" */
void dflash_case_comparison_title(const DflashCaseComparison *one, DflashText *out);
/* "slower: the block by 2.1% (1.7% to 2.4%), in qkv" */
void dflash_case_comparison_line(const DflashCaseComparison *one, DflashText *out);
/* "16 pairs that ran in turn; nothing else is assumed" */
void dflash_case_comparison_assumed(const DflashCaseComparison *one, DflashText *out);
/* What was built or set differently, "revision a -> b, ..."; nothing when nothing was. */
void dflash_case_comparison_made(const DflashCaseComparison *one, DflashText *out);
/* "would see 1.4% in 98 of 100; ..." */
void dflash_case_comparison_visible(const DflashRunsComparison *comparison, const DflashCaseComparison *one,
                                    DflashText *out);

/* One line of JSON; NULL counts as memory that is out. The second takes a record over that has no schema yet. */
void dflash_runs_append(DflashText *out, const struct cJSON *record);
void dflash_runs_append_new(DflashText *out, struct cJSON *record);

/* A `comparison` record (docs/records.md). */
struct cJSON *dflash_case_comparison_record(const DflashCaseComparison *one);
/* One record a case, written as JSON lines, then a `summary` with the exit status. */
DflashStatus dflash_runs_write(const char *path, const DflashRunsComparison *comparison, int exit_status,
                               DflashError *error);

#endif
