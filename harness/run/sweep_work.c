/* One draw and its record (docs/records.md). */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "compare/compare.h"
#include "model/stage_table.h"
#include "run/reproduce.h"
#include "run/sweep_parts.h"

enum { SHRINK_TRIALS = 600 };

char *dflash_sweep_reproduce(const DflashSweepOptions *options, int64_t draw) {
  DflashReproduce what = {.command = "sweep", .layer = -1};
  char *command = dflash_reproduce_command(options->run, &what);
  DflashText text = {0};
  if (command != NULL) dflash_text_append(&text, "%s --seed %" PRIu64 " --draw %" PRId64, command, options->seed, draw);
  free(command);
  if (text.failed) dflash_text_free(&text);
  return text.data;
}

/* ---- members ---- */

static void add_seed(cJSON *record, uint64_t seed) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, seed);
  if (seed <= UINT64_C(1) << 53)
    cJSON_AddNumberToObject(record, "seed", (double)seed);
  else
    cJSON_AddStringToObject(record, "seed", text);
}

/* Infinity and NaN as records have them, which a pipe of JSON keeps. */
static void add_number(cJSON *record, const char *name, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(record, name, value);
  else
    cJSON_AddStringToObject(record, name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void add_first(cJSON *record, const DflashTrialResult *result) {
  cJSON *first = cJSON_AddObjectToObject(record, "first");
  cJSON_AddStringToObject(first, "case", result->name);
  cJSON_AddStringToObject(first, "stage", result->stage);
  if (result->layer >= 0) cJSON_AddNumberToObject(first, "layer", (double)result->layer);
  cJSON_AddStringToObject(first, "mode", result->mode);
  cJSON_AddStringToObject(first, "outcome", dflash_outcome_name(result->failure));
  add_number(first, "score", result->score);
}

static void add_result(cJSON *record, const DflashTrialResult *result) {
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(result->outcome));
  cJSON_AddNumberToObject(record, "verdicts", (double)result->verdicts);
  cJSON_AddNumberToObject(record, "passed", (double)result->passed);
  cJSON_AddNumberToObject(record, "failed", (double)result->failed);
  add_number(record, "largest_score", result->largest_passing);
  if (result->message[0] != '\0') cJSON_AddStringToObject(record, "message", result->message);
  if (result->bad_case >= 0) add_first(record, result);
}

static void add_outcome(cJSON *record, const DflashSweepOutcome *outcome) {
  cJSON_AddNumberToObject(record, "elements", (double)outcome->elements);
  add_number(record, "made_s", outcome->made_s);
  add_number(record, "ran_s", outcome->ran_s);
  if (outcome->how == DFLASH_SWEEP_JUDGED) {
    add_result(record, &outcome->result);
    return;
  }
  bool declined = dflash_sweep_declined(outcome);
  cJSON_AddStringToObject(record, "outcome",
                          dflash_outcome_name(declined ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR));
  cJSON_AddStringToObject(record, "message", outcome->error.message);
  if (!declined && outcome->how == DFLASH_SWEEP_NOT_RUN)
    cJSON_AddNumberToObject(record, "exit", dflash_status_exit(outcome->error.status));
}

/* A row per mode and kind of stage that was compared. */
static void add_scores(cJSON *record, const DflashTrialResult *result) {
  cJSON *list = cJSON_AddArrayToObject(record, "scores");
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
      const DflashTrialScore *score = &result->scores[mode][stage];
      if (score->elements == 0) continue;
      cJSON *row = cJSON_CreateObject();
      cJSON_AddStringToObject(row, "mode", dflash_mode_name(mode));
      cJSON_AddStringToObject(row, "stage", dflash_stage_row(stage)->name);
      cJSON_AddNumberToObject(row, "elements", (double)score->elements);
      add_number(row, "score", score->score);
      add_number(row, "lambda", score->lambda);
      cJSON_AddItemToArray(list, row);
    }
}

static void add_recipe(cJSON *record, const DflashRecipe *recipe) {
  char *text = dflash_recipe_to_json(recipe);
  if (text != NULL) cJSON_AddItemToObject(record, "recipe", cJSON_Parse(text));
  free(text);
}

/* ---- failures ---- */

/* Verifies the saved golden where it fails. A check that is no stage is not asked for by name. */
static void add_reproduce_saved(const DflashSweepOptions *options, const char *path, const DflashTrialResult *result,
                                cJSON *record) {
  bool named = dflash_stage_find(result->stage) != DFLASH_STAGE_NONE;
  const DflashReproduce what = {.command = "verify",
                                .file = path,
                                .case_name = named ? result->name : NULL,
                                .stage = named ? result->stage : NULL,
                                .layer = result->layer,
                                .mode = named ? result->mode : NULL};
  char *command = dflash_reproduce_command(options->run, &what);
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce_saved", command);
  free(command);
}

static void save(const DflashSweepOptions *options, const DflashRecipe *recipe, const DflashTrialResult *result,
                 int64_t draw, cJSON *record) {
  char *path = NULL;
  DflashError error = {0};
  if (asprintf(&path, "%s/sweep-%" PRIu64 "-%" PRId64 ".h5", options->save, options->seed, draw) < 0) return;
  if (dflash_sweep_save(options->run, recipe, path, &error) == DFLASH_OK) {
    cJSON_AddStringToObject(record, "saved", path);
    add_reproduce_saved(options, path, result, record);
  } else {
    cJSON_AddStringToObject(record, "save_error", error.message);
  }
  free(path);
}

/* A hang would hang in every trial, each for the whole time limit. */
static bool can_shrink(const DflashSweepOptions *options, const DflashSweepOutcome *outcome) {
  return options->shrink && dflash_sweep_failed(outcome) && outcome->result.outcome != DFLASH_OUTCOME_HUNG;
}

static void add_failure(const DflashSweepOptions *options, int64_t draw, DflashRecipe *recipe,
                        DflashSweepOutcome *outcome, cJSON *record) {
  char *command = dflash_sweep_reproduce(options, draw);
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce", command);
  free(command);
  if (can_shrink(options, outcome)) {
    int64_t trials = dflash_sweep_shrink(options->run, SHRINK_TRIALS, recipe, outcome);
    cJSON *smallest = cJSON_AddObjectToObject(record, "smallest");
    cJSON_AddNumberToObject(smallest, "trials", (double)trials);
    add_outcome(smallest, outcome);
    add_recipe(smallest, recipe);
  }
  if (options->save != NULL && dflash_sweep_failed(outcome)) save(options, recipe, &outcome->result, draw, record);
}

static bool must_explain(const DflashSweepOutcome *outcome) {
  return outcome->how == DFLASH_SWEEP_NOT_MADE || dflash_sweep_failed(outcome);
}

cJSON *dflash_sweep_work(const DflashSweepOptions *options, int64_t draw) {
  cJSON *record = cJSON_CreateObject();
  DflashRecipe *recipe = malloc(sizeof *recipe);
  DflashSweepOutcome *outcome = malloc(sizeof *outcome);
  if (record != NULL && recipe != NULL && outcome != NULL) {
    memset(recipe, 0, sizeof *recipe);
    DflashSweepLimits limits = dflash_sweep_limits;
    limits.quantised = options->run->profile == DFLASH_PROFILE_I8;
    limits.sixteen = options->run->profile == DFLASH_PROFILE_F16 || options->run->profile == DFLASH_PROFILE_BF16;
    dflash_sweep_draw(options->seed, (uint64_t)draw, &limits, recipe);
    dflash_sweep_try(options->run, recipe, outcome);
    cJSON_AddStringToObject(record, "type", "draw");
    cJSON_AddStringToObject(record, "backend", options->run->backend);
    cJSON_AddStringToObject(record, "profile", dflash_profile_name(options->run->profile));
    add_seed(record, options->seed);
    cJSON_AddNumberToObject(record, "draw", (double)draw);
    cJSON_AddNumberToObject(record, "sequences", (double)recipe->plan_count);
    add_outcome(record, outcome);
    if (options->scores != NULL) add_scores(record, &outcome->result);
    if (must_explain(outcome)) add_recipe(record, recipe);
    if (must_explain(outcome)) add_failure(options, draw, recipe, outcome, record);
  }
  free(outcome);
  free(recipe);
  return record;
}
