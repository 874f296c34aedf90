/* Options that say what a change is: shared by the commands that compare times. */
#ifndef DFLASH_CLI_RULE_ARGUMENTS_H
#define DFLASH_CLI_RULE_ARGUMENTS_H

#include "cli/arguments.h"
#include "run/runs_compare.h"

/* Appends the rows for rate, share, between and load; the rule begins with its defaults. */
void dflash_rule_arguments_rows(DflashRunsRule *rule, DflashArgument *table, int *count);

#endif
