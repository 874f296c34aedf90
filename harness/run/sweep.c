#include "run/sweep.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "compare/compare.h"
#include "run/run_record.h"
#include "run/sweep_parts.h"
#include "store/fields.h"
#include "store/store.h"
#include "time/clock.h"

typedef struct Sweep {
  const DflashSweepOptions *options;
  DflashStore *store;
  FILE *scores;
  int64_t done, passed, failed, declined, not_trusted, not_run;
  double elements, largest;
  int exit; /* of what ends a sweep early; -1: nothing did */
  DflashError error;
  uint64_t begin;
} Sweep;

/* ---- console ---- */

static void print_recipe(const cJSON *record) {
  const cJSON *recipe = cJSON_GetObjectItem(record, "recipe");
  char *text = recipe != NULL ? cJSON_PrintUnformatted(recipe) : NULL;
  if (text != NULL) printf("    recipe: %s\n", text);
  free(text);
}

/* The message names stage, mode, place and score. */
static void print_first(const char *before, const cJSON *record) {
  const cJSON *first = cJSON_GetObjectItem(record, "first");
  printf("%s%s%s%s%s\n", before, first != NULL ? "case " : "", dflash_field_text(first, "case"),
         first != NULL ? ": " : "", dflash_field_text(record, "message"));
}

static void print_failure(const cJSON *record) {
  const cJSON *smallest = cJSON_GetObjectItem(record, "smallest");
  printf("draw %.0f: %s\n", dflash_field_number(record, "draw"), dflash_field_text(record, "outcome"));
  print_first("    first: ", record);
  if (smallest != NULL) {
    printf("    smallest that fails alike, after %.0f trials:\n", dflash_field_number(smallest, "trials"));
    print_first("      first: ", smallest);
  }
  print_recipe(smallest != NULL ? smallest : record);
  if (cJSON_GetObjectItem(record, "saved") != NULL)
    printf("    saved: %s\n    reproduce the file: %s\n", dflash_field_text(record, "saved"),
           dflash_field_text(record, "reproduce_saved"));
  if (cJSON_GetObjectItem(record, "save_error") != NULL)
    printf("    not saved: %s\n", dflash_field_text(record, "save_error"));
  printf("    reproduce the draw: %s\n", dflash_field_text(record, "reproduce"));
}

static void print_other(const Sweep *sweep, const cJSON *record, bool declined) {
  const DflashRunOptions *o = sweep->options->run;
  if (o->quiet || (!o->verbose && !declined)) return;
  printf("draw %.0f: %s%s%s", dflash_field_number(record, "draw"), declined ? "declined" : "",
         declined ? ": " : dflash_field_text(record, "outcome"), declined ? dflash_field_text(record, "message") : "");
  if (!declined)
    printf(", %.0f elements, largest passing score %.3g", dflash_field_number(record, "elements"),
           dflash_field_number(record, "largest_score"));
  printf("\n");
}

/* ---- files ---- */

/* After the first record that cannot be written there are no more. */
static int keep(Sweep *sweep, cJSON *record) {
  if (sweep->store == NULL) return 0;
  if (sweep->error.status == DFLASH_OK) dflash_store_record(sweep->store, record, &sweep->error);
  return sweep->error.status != DFLASH_OK;
}

/* Every row with what tells it from others, a line each. */
static int write_scores(Sweep *sweep, const cJSON *record, const cJSON *scores) {
  static const char *const members[] = {"backend", "profile", "seed", "draw", "outcome"};
  DflashText lines = {0};
  const cJSON *row;
  cJSON_ArrayForEach(row, scores) {
    cJSON *line = cJSON_Duplicate(row, 1);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
      cJSON_AddItemToObject(line, members[i], cJSON_Duplicate(cJSON_GetObjectItem(record, members[i]), 1));
    char *text = dflash_record_line(line);
    if (text != NULL) dflash_text_append(&lines, "%s\n", text);
    free(text);
    cJSON_Delete(line);
  }
  if (lines.failed || (lines.size > 0 && fwrite(lines.data, 1, lines.size, sweep->scores) != lines.size) ||
      fflush(sweep->scores) != 0)
    dflash_error_set(&sweep->error, DFLASH_IO, "%s: cannot write: %s", sweep->options->scores, strerror(errno));
  dflash_text_free(&lines);
  return sweep->error.status != DFLASH_OK;
}

/* ---- counting ---- */

static void count(Sweep *sweep, const cJSON *record, int outcome) {
  double largest = dflash_field_number(record, "largest_score");
  sweep->done++;
  sweep->elements += dflash_field_number(record, "elements");
  if (largest > sweep->largest) sweep->largest = largest;
  sweep->passed += outcome == DFLASH_OUTCOME_PASS;
  sweep->failed += dflash_outcome_is_failure(outcome);
  sweep->declined += outcome == DFLASH_OUTCOME_UNSUPPORTED || outcome == DFLASH_OUTCOME_UNAVAILABLE;
  sweep->not_trusted += outcome == DFLASH_OUTCOME_NOT_TRUSTED;
  sweep->not_run += outcome == DFLASH_OUTCOME_NOT_RUN;
}

/* A backend that is not there, or options that it does not know: no draw will run. */
static int refuse(Sweep *sweep, const cJSON *record) {
  sweep->exit = (int)dflash_field_number(record, "exit");
  dflash_progress_done();
  dflash_log(DFLASH_LOG_ERROR, "draw %.0f: %s", dflash_field_number(record, "draw"),
             dflash_field_text(record, "message"));
  return 1;
}

static int take(void *context, cJSON *record) {
  Sweep *sweep = context;
  if (cJSON_GetObjectItem(record, "exit") != NULL) return refuse(sweep, record);
  int outcome = dflash_outcome_find(dflash_field_text(record, "outcome"));
  cJSON *scores = cJSON_DetachItemFromObject(record, "scores");
  count(sweep, record, outcome);
  dflash_progress_done();
  if (dflash_outcome_is_failure(outcome))
    print_failure(record);
  else
    print_other(sweep, record, outcome == DFLASH_OUTCOME_UNSUPPORTED || outcome == DFLASH_OUTCOME_UNAVAILABLE);
  fflush(stdout);
  if (!sweep->options->run->quiet)
    dflash_progress("sweep %" PRId64 "/%" PRId64 ", %" PRId64 " failed", sweep->done, sweep->options->count,
                    sweep->failed);
  int stop = keep(sweep, record);
  if (!stop && sweep->scores != NULL) stop = write_scores(sweep, record, scores);
  cJSON_Delete(scores);
  return stop;
}

static int exit_of(const Sweep *sweep) {
  bool missing = sweep->options->run->allow_missing;
  if (sweep->failed > 0) return DFLASH_EXIT_WRONG;
  if (sweep->error.status != DFLASH_OK) return dflash_status_exit(sweep->error.status);
  if (sweep->exit >= 0)
    return sweep->exit == DFLASH_EXIT_UNAVAILABLE && missing && sweep->passed == 0 ? DFLASH_EXIT_SKIPPED : sweep->exit;
  if (sweep->passed > 0) return DFLASH_EXIT_OK;
  if (sweep->not_trusted > 0) return DFLASH_EXIT_CANNOT_TELL;
  if (sweep->declined > 0) return missing ? DFLASH_EXIT_SKIPPED : DFLASH_EXIT_UNAVAILABLE;
  return DFLASH_EXIT_NOTHING;
}

/* ---- the run ---- */

/* Scores are written over an older file of scores, and over nothing else; a device holds none. */
static DflashStatus check_scores_file(const char *path, DflashError *error) {
  struct stat about;
  FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
  if (file == NULL) return DFLASH_OK;
  int first = fgetc(file);
  fclose(file);
  if (first == EOF || first == '{') return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: holds something else than scores: not written over",
                          path);
}

static DflashStatus open_files(Sweep *sweep, DflashError *error) {
  const DflashSweepOptions *o = sweep->options;
  DflashStoreOptions store = {.json_path = o->run->json, .history_path = o->run->history};
  if (o->run->json != NULL || o->run->history != NULL) {
    DflashStatus status = dflash_store_open(&store, &sweep->store, error);
    if (status != DFLASH_OK) return status;
  }
  if (o->scores == NULL) return DFLASH_OK;
  DflashStatus status = check_scores_file(o->scores, error);
  if (status != DFLASH_OK) return status;
  sweep->scores = fopen(o->scores, "we");
  if (sweep->scores == NULL)
    return dflash_error_set(error, DFLASH_IO, "%s: cannot open: %s", o->scores, strerror(errno));
  return DFLASH_OK;
}

static void send_run(Sweep *sweep) {
  cJSON *record = dflash_run_record(sweep->options->run);
  keep(sweep, record);
  cJSON_Delete(record);
}

static void send_summary(Sweep *sweep, int exit, double elapsed_s) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "summary");
  cJSON_AddNumberToObject(record, "draws", (double)sweep->done);
  cJSON_AddNumberToObject(record, "passed", (double)sweep->passed);
  cJSON_AddNumberToObject(record, "failed", (double)sweep->failed);
  cJSON_AddNumberToObject(record, "skipped", (double)sweep->declined);
  cJSON_AddNumberToObject(record, "not_run", (double)sweep->not_run);
  cJSON_AddNumberToObject(record, "not_trusted", (double)sweep->not_trusted);
  cJSON_AddNumberToObject(record, "elements", sweep->elements);
  cJSON_AddNumberToObject(record, "largest_score", sweep->largest);
  cJSON_AddNumberToObject(record, "exit", exit);
  cJSON_AddNumberToObject(record, "elapsed_s", elapsed_s);
  keep(sweep, record);
  cJSON_Delete(record);
}

static void print_summary(const Sweep *sweep, int exit, double elapsed_s) {
  const DflashSweepOptions *o = sweep->options;
  if (o->run->quiet && exit == DFLASH_EXIT_OK) return;
  printf("%" PRId64 " draw%s, seed %" PRIu64 ", %s, profile %s: %" PRId64 " passed, %" PRId64 " failed, %" PRId64
         " declined",
         sweep->done, sweep->done == 1 ? "" : "s", o->seed, o->run->backend, dflash_profile_name(o->run->profile),
         sweep->passed, sweep->failed, sweep->declined);
  if (sweep->not_trusted + sweep->not_run > 0)
    printf(", %" PRId64 " not trusted, %" PRId64 " not run", sweep->not_trusted, sweep->not_run);
  printf("; %.3g elements compared, largest passing score %.3g; %.1f s; exit status %d\n", sweep->elements,
         sweep->largest, elapsed_s, exit);
}

static void close_scores(Sweep *sweep) {
  if (sweep->scores == NULL || fclose(sweep->scores) == 0 || sweep->error.status != DFLASH_OK) return;
  dflash_error_set(&sweep->error, DFLASH_IO, "%s: cannot write: %s", sweep->options->scores, strerror(errno));
}

static void close_store(Sweep *sweep) {
  if (sweep->store != NULL) dflash_store_close(sweep->store, sweep->error.status == DFLASH_OK ? &sweep->error : NULL);
}

/* The files are closed before the summary is printed: it tells the exit status. */
static int finish(Sweep *sweep) {
  double elapsed_s = (double)(dflash_clock_ns() - sweep->begin) * 1e-9;
  dflash_progress_done();
  close_scores(sweep);
  send_summary(sweep, exit_of(sweep), elapsed_s);
  close_store(sweep);
  print_summary(sweep, exit_of(sweep), elapsed_s);
  if (sweep->error.status != DFLASH_OK) dflash_log(DFLASH_LOG_ERROR, "%s", sweep->error.message);
  return exit_of(sweep);
}

int dflash_run_sweep(const DflashSweepOptions *options) {
  Sweep sweep = {.options = options, .exit = -1, .begin = dflash_clock_ns()};
  if (open_files(&sweep, &sweep.error) != DFLASH_OK) {
    close_scores(&sweep);
    close_store(&sweep);
    dflash_log(DFLASH_LOG_ERROR, "%s", sweep.error.message);
    return dflash_status_exit(sweep.error.status);
  }
  send_run(&sweep);
  DflashError error = {0};
  if (sweep.error.status == DFLASH_OK && dflash_sweep_jobs(options, take, &sweep, &error) != DFLASH_OK &&
      sweep.error.status == DFLASH_OK)
    sweep.error = error;
  return finish(&sweep);
}
