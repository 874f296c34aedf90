#include "run/against.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "run/against_parts.h"
#include "run/compare_runs.h"
#include "run/run_record.h"
#include "run/runs_report.h"
#include "time/clock.h"

/* Results move when more are read: the lists are made anew at each look. */
static DflashStatus look(DflashAgainst *a, DflashError *error) {
  DflashRunsRule rule = a->options->rule;
  int64_t counts[2] = {0, 0};
  rule.across = true;
  rule.compare.rate = dflash_times_look_rate(a->options->rule.compare.rate, a->look++);
  dflash_runs_comparison_close(&a->comparison);
  const DflashResult **left = dflash_runs_side(&a->runs, "A", &counts[0]);
  const DflashResult **right = dflash_runs_side(&a->runs, "B", &counts[1]);
  DflashStatus status = left != NULL && right != NULL
                            ? dflash_runs_compare(left, counts[0], right, counts[1], &rule, &a->comparison, error)
                            : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for results");
  free(left);
  free(right);
  return status;
}

static bool budget_allows(const DflashAgainst *a) {
  const double spent = (double)(dflash_clock_ns() - a->begin_ns + a->pair_ns) * 1e-9;
  return spent <= a->options->run->budget_s;
}

/* Looks at half as many pairs again each time, each with half the rate of the one before; the last look is at what the
 * budget gave. */
static DflashStatus run_until_told(DflashAgainst *a, DflashError *error) {
  int64_t target = dflash_times_first_look(a->options->rule.compare.rate, DFLASH_GROUP_COUNT);
  DflashStatus status = DFLASH_OK;
  a->begin_ns = dflash_clock_ns();
  status = dflash_against_record(a, dflash_run_record(a->options->run), error);
  for (bool go = true; go && status == DFLASH_OK;) {
    while (status == DFLASH_OK && a->pairs < target && (a->pairs == 0 || budget_allows(a)))
      status = dflash_against_pair(a, error);
    if (status == DFLASH_OK) status = look(a, error);
    go = a->pairs == target && dflash_runs_comparison_exit(&a->comparison) == DFLASH_EXIT_CANNOT_TELL &&
         target < DFLASH_TIMES_UNITS && budget_allows(a);
    target = dflash_times_next_look(target);
  }
  dflash_progress_done();
  return status;
}

static cJSON *summary_record(const DflashAgainst *a, int exit_status) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "summary");
  cJSON_AddNumberToObject(record, "pairs", (double)a->pairs);
  cJSON_AddNumberToObject(record, "looks", (double)a->look);
  cJSON_AddNumberToObject(record, "exit", exit_status);
  cJSON_AddNumberToObject(record, "elapsed_s", (double)(dflash_clock_ns() - a->begin_ns) * 1e-9);
  return record;
}

/* What the pairs said, after the last of them. */
static DflashStatus record_end(DflashAgainst *a, int exit_status, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < a->comparison.count && status == DFLASH_OK; i++)
    status = dflash_against_record(a, dflash_case_comparison_record(&a->comparison.cases[i]), error);
  return status == DFLASH_OK ? dflash_against_record(a, summary_record(a, exit_status), error) : status;
}

static void print(const DflashAgainst *a, int exit_status) {
  if (a->options->run->quiet) return;
  dflash_runs_print(stdout, &a->comparison);
  printf("%lld pairs, looked at %lld time%s: of the rate of %.3g%% the last look had %.3g%%; %.1f s; exit status %d\n",
         (long long)a->pairs, (long long)a->look, a->look == 1 ? "" : "s", 100 * a->options->rule.compare.rate,
         100 * a->comparison.rule.compare.rate, (double)(dflash_clock_ns() - a->begin_ns) * 1e-9, exit_status);
}

int dflash_run_against(const DflashAgainstOptions *options) {
  DflashAgainst a = {.options = options};
  DflashError error = {0};
  DflashStatus status = dflash_against_open(&a, &error);
  if (status == DFLASH_OK) status = run_until_told(&a, &error);
  int result = status == DFLASH_OK ? dflash_runs_comparison_exit(&a.comparison) : 0;
  if (status == DFLASH_OK) print(&a, result);
  if (status == DFLASH_OK) status = record_end(&a, result, &error);
  if (status == DFLASH_OK) status = dflash_against_close_store(&a, &error);
  if (status != DFLASH_OK) {
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
    result = a.process_exit != 0 ? a.process_exit : dflash_status_exit(status);
  }
  dflash_against_close(&a);
  return result;
}
