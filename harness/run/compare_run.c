#include "run/compare_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "model/weights.h"
#include "run/compare_parts.h"
#include "run/reproduce.h"

static bool has_mode(const DflashCompareRun *compare, int mode) { return (compare->options.modes & 1u << mode) != 0; }

/* The golden's index of a case; a case that it lacks is a mistake. */
static DflashStatus find_case(const DflashCompareRun *compare, const char *name, int64_t *index, DflashError *error) {
  const DflashGolden *golden = compare->session.golden;
  for (*index = 0; *index < dflash_golden_case_count(golden); (*index)++)
    if (strcmp(dflash_golden_case_name(golden, *index), name) == 0) return DFLASH_OK;
  DflashText known = {0};
  for (int64_t i = 0; i < dflash_golden_case_count(golden); i++)
    dflash_text_append(&known, "%s%s", i > 0 ? ", " : "", dflash_golden_case_name(golden, i));
  DflashStatus status =
      dflash_error_set(error, DFLASH_INVALID_DATA, "%s: case \"%.64s\" is not in %s, which has: %s",
                       compare->offline->file, name, compare->options.golden, known.data != NULL ? known.data : "");
  dflash_text_free(&known);
  return status;
}

/* The golden's side: values of the profile, and the chain's scale. */
static DflashStatus open_golden_case(DflashCompareRun *compare, int64_t index, DflashError *error) {
  DflashCaseRun *run = &compare->run;
  const DflashSession *s = &compare->session;
  int64_t first = 0, len = 0, *tap_row = NULL;
  DflashStatus status = dflash_golden_case(s->golden, index, &run->c, error);
  if (status == DFLASH_OK)
    status = dflash_context_replay(run->c.ops, run->c.op_count, &first, &len, &tap_row, &run->last_push, error);
  free(tap_row);
  if (status != DFLASH_OK) return status;
  if (run->last_push >= 0) {
    run->push_pos = run->c.ops[run->last_push].pos;
    run->push_row = run->c.ops[run->last_push].first_row;
  }
  if (s->options->profile != DFLASH_PROFILE_EXACT)
    status = dflash_case_to_profile(&run->c, s->geometry, s->options->profile, error);
  if (status != DFLASH_OK) return status;
  if (dflash_session_attribute(s, "scales_hash")[0] == '\0') dflash_case_forget_scales(&run->c);
  const DflashEvaluate evaluate = {.geometry = s->geometry,
                                   .weights = s->weights,
                                   .pool = s->pool,
                                   .profile = s->options->profile,
                                   .values = s->options->profile == DFLASH_PROFILE_I8,
                                   .scales_chain = true};
  dflash_offline_progress(compare->offline, "error scales");
  return dflash_evaluate_case(&evaluate, &run->c, error);
}

static char *reproduce(const DflashCompareRun *compare, const DflashVerdict *first) {
  if (first == NULL) return NULL;
  bool is_stage = first->stage != DFLASH_STAGE_NONE;
  const char *stage = is_stage ? dflash_stage_row(first->stage)->name : NULL;
  bool layered = is_stage && dflash_stage_row(first->stage)->scope == DFLASH_SCOPE_LAYER;
  const DflashReproduce what = {.command = "compare",
                                .file = compare->options.golden,
                                .second_file = compare->offline->file,
                                .case_name = compare->run.c.name,
                                .stage = stage,
                                .layer = layered ? first->layer : -1,
                                .mode = dflash_mode_name(first->mode)};
  return dflash_reproduce_command(&compare->options, &what);
}

static bool is_absent(const DflashCompareRun *compare, int32_t stage, int64_t layer) {
  const DflashCandidateCase *v = &compare->values;
  if (stage == DFLASH_STAGE_SELECT) return v->chosen == NULL && v->plain == NULL;
  const DflashCandidateValue *value = dflash_compare_value(compare, stage, layer);
  return value->data == NULL || value->count == 0;
}

static bool is_part(const DflashCompareRun *compare, int32_t stage, int64_t layer) {
  const DflashCandidateCase *v = &compare->values;
  if (stage == DFLASH_STAGE_SELECT) return v->chosen == NULL || v->plain == NULL;
  const DflashCandidateValue *value = dflash_compare_value(compare, stage, layer);
  return value->count < dflash_case_value(&compare->run.c, stage, layer)->rows;
}

/* Stages of the case in work that are asked for and not there; *parts: those that are there in part. */
static int64_t count_absent(const DflashCompareRun *compare, int64_t *parts) {
  int64_t absent = 0, layer;
  int32_t stage;
  *parts = 0;
  for (int64_t i = 0; dflash_stage_walk(compare->session.geometry, i, &stage, &layer); i++) {
    if (!dflash_case_selects(&compare->run, stage, layer) || !dflash_case_has(&compare->run, stage, layer)) continue;
    bool whole = is_absent(compare, stage, layer);
    absent += whole;
    *parts += !whole && is_part(compare, stage, layer);
  }
  return absent;
}

/* NULL: nothing is missing, or may be. */
static const char *describe_absent(const DflashCompareRun *compare, int64_t absent, int64_t parts, char text[96]) {
  if (!compare->options.require_all || absent + parts == 0) return NULL;
  size_t used = (size_t)snprintf(text, 96, "not in the file: %lld stage%s", (long long)absent, absent == 1 ? "" : "s");
  if (parts > 0) snprintf(text + used, 96 - used, "; in part: %lld", (long long)parts);
  return text;
}

/* Whose values they are; modes is room for their names. */
static DflashOfflineCase describe_case(const DflashCompareRun *compare, const char *name, char modes[32]) {
  const char *engine = dflash_candidate_text(compare->candidate, "engine");
  return (DflashOfflineCase){.name = name,
                             .modes = dflash_modes_text(compare->options.modes, modes),
                             .backend = engine[0] != '\0' ? engine : "candidate",
                             .device = "",
                             .profile = dflash_profile_name(compare->options.profile),
                             .inputs_hash = dflash_session_attribute(&compare->session, "inputs_hash")};
}

static DflashStatus report(DflashCompareRun *compare, DflashError *error) {
  char modes[32], missing[96];
  int64_t parts, absent = count_absent(compare, &parts);
  compare->absent.stages += absent;
  char *command = reproduce(compare, dflash_verdicts_first(&compare->run.verdicts));
  DflashOfflineCase c = describe_case(compare, compare->run.c.name, modes);
  c.reproduce = command;
  c.required = describe_absent(compare, absent, parts, missing);
  DflashStatus status = dflash_offline_case(compare->offline, &c, &compare->run.verdicts, error);
  free(command);
  return status;
}

static void close_case(DflashCompareRun *compare) {
  dflash_candidate_case_close(&compare->values);
  dflash_verdicts_close(&compare->run.verdicts);
  dflash_case_close(&compare->run.c);
  compare->run = (DflashCaseRun){.session = &compare->session};
}

static DflashStatus compare_case(DflashCompareRun *compare, int64_t index, int64_t golden_index, DflashError *error) {
  DflashCaseRun *run = &compare->run;
  DflashStatus status = open_golden_case(compare, golden_index, error);
  if (status == DFLASH_OK) {
    status = dflash_candidate_case(compare->candidate, index, compare->session.geometry, &run->c.sizes,
                                   &compare->values, error);
    if (status != DFLASH_OK) dflash_error_prefix(error, "%s", compare->offline->file);
  }
  if (status == DFLASH_OK && has_mode(compare, DFLASH_MODE_LOCAL)) dflash_compare_local(compare);
  if (status == DFLASH_OK && has_mode(compare, DFLASH_MODE_CHAIN)) dflash_compare_chain(compare);
  if (status == DFLASH_OK) {
    dflash_verdicts_inherit(&run->verdicts);
    status = report(compare, error);
  }
  close_case(compare);
  return status;
}

/* The profile asked for, else the file's own, else exact. */
static DflashStatus choose_profile(DflashCompareRun *compare, DflashError *error) {
  const char *own = dflash_candidate_text(compare->candidate, "profile");
  if (compare->options.profile >= 0) return DFLASH_OK;
  compare->options.profile = DFLASH_PROFILE_EXACT;
  if (own[0] == '\0' || dflash_profile_parse(own, &compare->options.profile, error) == DFLASH_OK) return DFLASH_OK;
  error->status = DFLASH_INVALID_DATA;
  return dflash_error_prefix(error, "%s: attribute profile", compare->offline->file);
}

/* i8 rounds what q4tp matrices multiply: without one it is exact under another name. Backends decline it, too. */
static void check_profile(DflashCompareRun *compare) {
  int32_t stage;
  int64_t layer;
  DflashText line = {0};
  if (compare->options.profile != DFLASH_PROFILE_I8) return;
  for (int64_t i = 0; dflash_stage_walk(compare->session.geometry, i, &stage, &layer); i++) {
    const DflashTensor *weight = dflash_stage_weight(compare->session.weights, stage, layer);
    if (weight != NULL && weight->data != NULL && weight->storage == DFLASH_STORAGE_Q4TP) return;
  }
  snprintf(compare->declined, sizeof compare->declined,
           "profile i8 is for q4tp matrices, and no matrix of the golden is q4tp");
  dflash_text_append(&line, "%s: %s", compare->offline->file, compare->declined);
  if (line.data != NULL) dflash_offline_say(compare->offline, DFLASH_LOG_ERROR, line.data);
  dflash_text_free(&line);
}

/* Without both hashes nothing tells that the values are of these inputs. */
static void tell_unchecked(const DflashCompareRun *compare, const char *without) {
  DflashText line = {0};
  dflash_text_append(&line, "%s has no inputs_hash: not checked whether both files are of the same inputs", without);
  if (line.data != NULL) dflash_offline_say(compare->offline, DFLASH_LOG_WARNING, line.data);
  dflash_text_free(&line);
}

/* Values of other inputs would be wrong at every stage. */
static DflashStatus check_inputs(const DflashCompareRun *compare, DflashError *error) {
  const char *own = dflash_candidate_text(compare->candidate, "inputs_hash");
  const char *golden = dflash_session_attribute(&compare->session, "inputs_hash");
  if (own[0] == '\0' || golden[0] == '\0')
    tell_unchecked(compare, own[0] == '\0' ? compare->offline->file : compare->options.golden);
  if (own[0] == '\0' || golden[0] == '\0' || strcmp(own, golden) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "%s: inputs_hash is %.16s..., the golden's %.16s...: other inputs", compare->offline->file,
                          own, golden);
}

static bool candidate_has(const DflashCompareRun *compare, const char *name) {
  for (int64_t i = 0; i < dflash_candidate_case_count(compare->candidate); i++)
    if (strcmp(dflash_candidate_case_name(compare->candidate, i), name) == 0) return true;
  return false;
}

static DflashStatus report_absent_case(DflashCompareRun *compare, const char *name, DflashError *error) {
  char modes[32];
  const DflashVerdicts none = {0};
  DflashOfflineCase c = describe_case(compare, name, modes);
  c.required = "not in the file";
  return dflash_offline_case(compare->offline, &c, &none, error);
}

/* As verify tells of a backend that declines. */
static DflashStatus report_declined_case(DflashCompareRun *compare, const char *name, DflashError *error) {
  char modes[32];
  DflashVerdicts verdicts = {0};
  const DflashOfflineCase c = describe_case(compare, name, modes);
  const int mode = has_mode(compare, DFLASH_MODE_CHAIN) ? DFLASH_MODE_CHAIN : DFLASH_MODE_LOCAL;
  DflashVerdict *v = dflash_verdict_add(&verdicts, mode, DFLASH_STAGE_NONE, -1, "profile");
  dflash_verdict_note(v, DFLASH_OUTCOME_UNSUPPORTED, "%s", compare->declined);
  DflashStatus status = dflash_offline_case(compare->offline, &c, &verdicts, error);
  dflash_verdicts_close(&verdicts);
  return status;
}

/* The golden's cases that are asked for: how many the file has not. */
static DflashStatus count_cases(DflashCompareRun *compare, DflashError *error) {
  const DflashGolden *golden = compare->session.golden;
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < dflash_golden_case_count(golden); i++) {
    const char *name = dflash_golden_case_name(golden, i);
    if (compare->options.require_all) dflash_offline_known(compare->offline, name);
    if (!dflash_glob_match(compare->options.cases, name)) continue;
    compare->absent.of_cases++;
    if (candidate_has(compare, name)) continue;
    compare->absent.cases++;
    if (compare->options.require_all) status = report_absent_case(compare, name, error);
  }
  dflash_offline_absent(compare->offline, &compare->absent);
  return status;
}

static DflashStatus compare_cases(DflashCompareRun *compare, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < dflash_candidate_case_count(compare->candidate); i++) {
    const char *name = dflash_candidate_case_name(compare->candidate, i);
    int64_t index = 0;
    status = find_case(compare, name, &index, error);
    dflash_offline_known(compare->offline, name);
    if (status != DFLASH_OK || !dflash_glob_match(compare->options.cases, name)) continue;
    status = compare->declined[0] != '\0' ? report_declined_case(compare, name, error)
                                          : compare_case(compare, i, index, error);
  }
  return status == DFLASH_OK ? count_cases(compare, error) : status;
}

static DflashStatus compare_file(DflashOffline *offline, DflashError *error) {
  DflashCompareRun *compare = calloc(1, sizeof *compare);
  if (compare == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to compare");
  compare->offline = offline;
  compare->options = *offline->options;
  if (compare->options.modes == 0) compare->options.modes = 1u << DFLASH_MODE_CHAIN;
  compare->session =
      (DflashSession){.options = &compare->options, .file = compare->options.golden, .child = offline->child};
  compare->run.session = &compare->session;
  DflashStatus status = dflash_session_golden(&compare->session, error);
  if (status == DFLASH_OK) status = dflash_session_hashes(&compare->session, error);
  if (status == DFLASH_OK) status = dflash_candidate_open(offline->file, &compare->candidate, error);
  if (status == DFLASH_OK) status = choose_profile(compare, error);
  if (status == DFLASH_OK) status = check_inputs(compare, error);
  if (status == DFLASH_OK) check_profile(compare);
  if (status == DFLASH_OK) status = compare_cases(compare, error);
  dflash_candidate_close(compare->candidate);
  dflash_session_close(&compare->session);
  free(compare);
  return status;
}

int dflash_run_compare(const DflashRunOptions *options) {
  return dflash_offline_run(options, options->file_count, "file of values", compare_file);
}
