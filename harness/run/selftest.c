#include "run/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "run/selftest_parts.h"
#include "time/clock.h"

/* Trials live in memory that workers share: room for all is taken at once, and only touched where it is used. */
enum { TRIALS_MOST = 1 << 14, TIMED_MOST = 4 };

enum { TRIAL_ALL, TRIAL_END, TRIAL_TIMING };

static DflashStatus add_trial(DflashSelfTest *test, const DflashDefect *defect, const DflashSelfGolden *golden,
                              int kind, DflashError *error) {
  if (test->trial_count == TRIALS_MOST)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a catalogue of more than %d trials", TRIALS_MOST);
  test->trials[test->trial_count++] =
      (DflashSelfTrial){.defect = defect, .golden = golden, .end = kind == TRIAL_END, .timing = kind == TRIAL_TIMING};
  return DFLASH_OK;
}

/* A defect runs on its first golden, a lawful variant on all. Where one runs, the base must pass. */
static DflashStatus plan_defect(DflashSelfTest *test, const DflashDefect *defect, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (const char *at = defect->goldens; status == DFLASH_OK && *at != '\0';) {
    char name[128];
    size_t length = strcspn(at, " ");
    const DflashSelfGolden *golden = NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    status = dflash_self_golden(&test->goldens, name, defect->profile, &golden, error);
    if (status == DFLASH_OK) status = add_trial(test, defect, golden, defect->timing ? TRIAL_TIMING : TRIAL_ALL, error);
    if (status == DFLASH_OK && !defect->lawful && defect->hidden == NULL && !defect->timing)
      status = add_trial(test, defect, golden, TRIAL_END, error);
    if (!defect->lawful) break;
    at += length + strspn(at + length, " ");
  }
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "defect %s", defect->id);
}

/* The base alone: on every golden, on every golden's end values, and timed. */
static DflashStatus plan_base(DflashSelfTest *test, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < test->goldens.count; i++)
    status = add_trial(test, NULL, test->goldens.at[i], TRIAL_ALL, error);
  for (int64_t i = 0; status == DFLASH_OK && i < test->goldens.count; i++)
    status = add_trial(test, NULL, test->goldens.at[i], TRIAL_END, error);
  for (int64_t i = 0; status == DFLASH_OK && i < test->goldens.count && i < TIMED_MOST; i++)
    status = add_trial(test, NULL, test->goldens.at[i], TRIAL_TIMING, error);
  return status;
}

/* The first trial runs before all other goldens are made: a base or an option that is refused ends it at once. */
static DflashStatus run_first(DflashSelfTest *test, DflashError *error) {
  DflashSelfTrial *first = &test->trials[0];
  dflash_self_run(test, dflash_self_material(&test->goldens, first->golden), first);
  return dflash_self_refusal(first, error);
}

static DflashStatus plan(DflashSelfTest *test, DflashError *error) {
  size_t bytes = (size_t)TRIALS_MOST * sizeof *test->trials;
  void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for trials");
  test->trials = shared;
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < test->defect_count; i++) {
    dflash_progress("goldens for %lld/%lld defects", (long long)i + 1, (long long)test->defect_count);
    status = plan_defect(test, test->defects[i], error);
    if (status == DFLASH_OK && i == 0) status = run_first(test, error);
  }
  return status == DFLASH_OK ? plan_base(test, error) : status;
}

static void list_more(const DflashDefect *d) {
  printf("    origin: %s\n    goldens: %s\n", d->origin, d->goldens);
  if (d->exposed_by != NULL) printf("    exposed by: %s\n", d->exposed_by);
  if (d->hidden != NULL) printf("    hidden from end values: %s\n", d->hidden);
}

static void list(const DflashSelfTest *test) {
  for (int64_t i = 0; i < test->defect_count; i++) {
    const DflashDefect *d = test->defects[i];
    printf("%-36s %-12s %-20s %s\n", d->id, d->kind, d->lawful ? "(lawful)" : d->stage, d->about);
    if (test->options->run->verbose) list_more(d);
  }
  printf("%lld entr%s\n", (long long)test->defect_count, test->defect_count == 1 ? "y" : "ies");
}

static void close_test(DflashSelfTest *test) {
  dflash_self_goldens_close(&test->goldens);
  if (test->trials != NULL) munmap(test->trials, (size_t)TRIALS_MOST * sizeof *test->trials);
  if (test->rates != NULL) munmap(test->rates, (size_t)(test->defect_count + 1) * sizeof *test->rates);
  free(test->defects);
  dflash_backend_unload(&test->loaded);
}

static DflashStatus run_trials(DflashSelfTest *test, DflashError *error) {
  DflashStatus status = plan(test, error);
  dflash_progress_done();
  if (status == DFLASH_OK) status = dflash_self_run_all(test, error);
  if (status == DFLASH_OK && test->options->draws > 0) status = dflash_self_draw_all(test, error);
  return status;
}

/* The file of records is opened first: a bad path fails before the trials. */
static DflashStatus run(DflashSelfTest *test, DflashSelfSummary *summary, DflashError *error) {
  DflashStatus status = dflash_self_records_open(test, error);
  if (status == DFLASH_OK) status = run_trials(test, error);
  if (status == DFLASH_OK) dflash_self_report(test, summary);
  if (status == DFLASH_OK) status = dflash_self_records_write(test, summary, error);
  DflashStatus closed = dflash_self_records_close(test, status == DFLASH_OK ? error : NULL);
  return status == DFLASH_OK ? closed : status;
}

int dflash_run_selftest(const DflashSelftestOptions *options) {
  DflashSelfTest test = {.options = options, .begin = dflash_clock_ns()};
  DflashSelfSummary summary = {.exit = DFLASH_EXIT_OK};
  DflashError error = {0};
  DflashStatus status = dflash_self_catalogue(&test, &error);
  if (status == DFLASH_OK && options->list)
    list(&test);
  else if (status == DFLASH_OK)
    status = run(&test, &summary, &error);
  if (status != DFLASH_OK) dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  close_test(&test);
  return status == DFLASH_OK ? summary.exit : dflash_status_exit(status);
}
