#include "cli/rule_arguments.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* A share from 0 on: nothing is allowed for, or nothing is too busy. */
static DflashStatus take_between(void *context, const char *value, DflashError *error) {
  double *between = context;
  if (strcmp(value, "0") == 0 || strcmp(value, "0%") == 0) {
    *between = 0;
    return DFLASH_OK;
  }
  if (dflash_parse_share(value, between)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--between: '%s' is not a share such as 0, 1%% or 0.01",
                          value);
}

/* Given, it holds for all. */
static DflashStatus take_share(void *context, const char *value, DflashError *error) {
  DflashRunsRule *rule = context;
  if (!dflash_parse_share(value, &rule->compare.share))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--share: '%s' is not a share such as 1%% or 0.01", value);
  rule->apart = rule->compare.share;
  return DFLASH_OK;
}

static DflashStatus take_load(void *context, const char *value, DflashError *error) {
  double *load = context;
  if (dflash_parse_f64(value, load) && *load >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--max-load: '%s' is not a number from 0", value);
}

void dflash_rule_arguments_rows(DflashRunsRule *rule, DflashArgument *table, int *count) {
  dflash_runs_rule_default(rule);
  const DflashArgument rows[] = {
      {"rate", "SHARE", "chance that anything is called changed where nothing is (0.5%)", DFLASH_ARGUMENT_SHARE,
       &rule->compare.rate, 0},
      {"share", "SHARE", "a change is larger than this (1%; 5% where one side ran after the other)",
       DFLASH_ARGUMENT_CALL, rule, take_share},
      {"between", "SHARE", "standard deviation allowed to a side that ran apart from the other (1%)",
       DFLASH_ARGUMENT_CALL, &rule->between, take_between},
      {"max-load", "N", "load per CPU above which a run is left out, unless pairs ran in turn (1.5; 0: none is)",
       DFLASH_ARGUMENT_CALL, &rule->load, take_load},
  };
  memcpy(table + *count, rows, sizeof rows);
  *count += (int)(sizeof rows / sizeof *rows);
}
