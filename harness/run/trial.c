#include "run/trial.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/error.h"
#include "run/bench_case.h"
#include "run/case_run.h"
#include "run/isolate.h"
#include "run/verify_together.h"

/* What parent and child share: the child writes, the parent reads when it is over. */
typedef struct Board {
  DflashTrialResult result;
  DflashError refused; /* nothing could be judged */
  int phase;           /* DFLASH_PHASE_* that the child is in */
  int64_t at;          /* the case in work */
  bool finished;
} Board;

typedef struct Work {
  const DflashTrial *trial;
  Board *board;
  char mode[16], stage[64], text[200]; /* where the child is, as it told */
  int64_t layer;
} Work;

/* ---- the child ---- */

static void keep_score(DflashTrialScore *score, const DflashComparison *c) {
  if (c->score > score->score) score->score = c->score;
  if (c->lambda > score->lambda) score->lambda = c->lambda;
  score->elements += c->scaled;
}

static void keep_verdict(DflashTrialResult *result, const DflashVerdict *v) {
  bool pass = v->outcome == DFLASH_OUTCOME_PASS || v->outcome == DFLASH_OUTCOME_NEAR_TIE ||
              v->outcome == DFLASH_OUTCOME_NOT_TRUSTED;
  result->verdicts++;
  result->passed += pass && v->outcome != DFLASH_OUTCOME_NOT_TRUSTED;
  result->failed += dflash_outcome_is_failure(v->outcome);
  if (!pass || !v->compared) return;
  if (v->comparison.score > result->largest_passing) result->largest_passing = v->comparison.score;
  if (v->stage != DFLASH_STAGE_NONE) keep_score(&result->scores[v->mode][v->stage], &v->comparison);
}

static void keep_first(DflashTrialResult *result, const char *name, int64_t index, const DflashVerdict *first) {
  const char *stage = first->stage != DFLASH_STAGE_NONE ? dflash_stage_row(first->stage)->name : first->check;
  result->bad_case = index;
  snprintf(result->name, sizeof result->name, "%s", name);
  snprintf(result->stage, sizeof result->stage, "%s", stage);
  snprintf(result->mode, sizeof result->mode, "%s", dflash_mode_name(first->mode));
  result->layer = first->layer;
  result->failure = first->outcome;
  result->score = first->compared && first->outcome == DFLASH_OUTCOME_MISMATCH ? first->comparison.score : INFINITY;
  dflash_verdict_message(first, result->message, sizeof result->message);
}

/* A failure stands above everything, then what was declined; a pass stands above what did not run. */
static int worst_outcome(int a, int b) {
  static const int rank[DFLASH_OUTCOME_COUNT] = {[DFLASH_OUTCOME_NOT_RUN] = 0,
                                                 [DFLASH_OUTCOME_NOT_TRUSTED] = 1,
                                                 [DFLASH_OUTCOME_PASS] = 2,
                                                 [DFLASH_OUTCOME_UNSUPPORTED] = 3,
                                                 [DFLASH_OUTCOME_UNAVAILABLE] = 3};
  int of_a = dflash_outcome_is_failure(a) ? 4 : rank[a], of_b = dflash_outcome_is_failure(b) ? 4 : rank[b];
  return of_b > of_a ? b : a;
}

static void keep_case(DflashTrialResult *result, const DflashCaseRun *run, int64_t index) {
  for (int64_t i = 0; i < run->verdicts.count; i++) keep_verdict(result, &run->verdicts.at[i]);
  const DflashVerdict *first = dflash_verdicts_first(&run->verdicts);
  int outcome = run->verdicts.failed ? DFLASH_OUTCOME_ERROR : dflash_verdicts_outcome(&run->verdicts, 0);
  result->outcome = worst_outcome(result->outcome, outcome);
  if (first != NULL && result->bad_case < 0) keep_first(result, run->c.name, index, first);
}

static DflashStatus verify(DflashSession *session, Board *board, int64_t index, DflashError *error) {
  DflashCaseRun run;
  DflashStatus status = dflash_case_run_open(&run, session, index, NULL, error);
  if (status == DFLASH_OK) {
    run.brief = true;
    dflash_verify_modes(&run);
    keep_case(&board->result, &run, index);
  }
  dflash_case_run_close(&run);
  return status;
}

/* Several sequences on one model, in turn. */
static DflashStatus verify_together(DflashSession *session, Board *board, int64_t count, DflashError *error) {
  DflashVerdicts verdicts = {0};
  DflashStatus status = dflash_verify_together(session, count, &verdicts, error);
  for (int64_t i = 0; i < verdicts.count; i++) keep_verdict(&board->result, &verdicts.at[i]);
  const DflashVerdict *first = dflash_verdicts_first(&verdicts);
  if (first != NULL) board->result.outcome = worst_outcome(board->result.outcome, first->outcome);
  if (first != NULL && board->result.bad_case < 0) keep_first(&board->result, "all in turn", 0, first);
  dflash_verdicts_close(&verdicts);
  return status;
}

static DflashStatus run_cases(DflashSession *session, const DflashTrial *trial, Board *board, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < trial->case_count; i++) {
    board->at = i;
    dflash_session_read(session, i);
    status = trial->timing ? dflash_bench_case(session, i, error) : verify(session, board, i, error);
    if (trial->until_failure && board->result.bad_case >= 0) return status;
  }
  if (status == DFLASH_OK && trial->case_count > 1 && !trial->timing)
    status = verify_together(session, board, trial->case_count, error);
  return status;
}

static int child(void *context, DflashChild *own) {
  const Work *work = context;
  Board *board = work->board;
  const DflashTrial *trial = work->trial;
  DflashSession session = {.options = trial->options,
                           .file = "memory",
                           .settings = "",
                           .child = own,
                           .cases = trial->cases,
                           .geometry = trial->geometry,
                           .weights = trial->weights};
  DflashError error = {0};
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* crashes are expected here by the hundred */
  board->phase = DFLASH_PHASE_BACKEND;
  DflashStatus status = dflash_session_backend(&session, &error);
  board->phase = DFLASH_PHASE_MODEL;
  if (status == DFLASH_OK) status = dflash_session_model(&session, &error);
  board->phase = DFLASH_PHASE_CASE;
  if (status == DFLASH_OK) status = run_cases(&session, trial, board, &error);
  if (status != DFLASH_OK) board->refused = error;
  board->phase = DFLASH_PHASE_CLOSE;
  dflash_session_close(&session);
  board->finished = true;
  return 0;
}

/* ---- the parent ---- */

static const char *text_of(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
  return text != NULL ? text : "";
}

/* What a timed case ended with. */
static void take_timed(Work *work, const cJSON *record) {
  DflashTrialResult *result = &work->board->result;
  int outcome = dflash_outcome_find(text_of(record, "outcome"));
  if (outcome < 0) outcome = DFLASH_OUTCOME_ERROR;
  result->outcome = worst_outcome(result->outcome, outcome);
  result->verdicts++;
  result->passed += outcome == DFLASH_OUTCOME_PASS;
  result->failed += dflash_outcome_is_failure(outcome);
  if (outcome == DFLASH_OUTCOME_PASS || result->bad_case >= 0) return;
  result->bad_case = work->board->at;
  result->failure = outcome;
  result->score = INFINITY;
  snprintf(result->name, sizeof result->name, "%s", text_of(record, "case"));
  snprintf(result->mode, sizeof result->mode, "bench");
  snprintf(result->stage, sizeof result->stage, "%s", text_of(record, "check"));
  snprintf(result->message, sizeof result->message, "%s", text_of(record, "message"));
}

static int take(void *context, cJSON *record) {
  Work *work = context;
  const char *type = text_of(record, "type");
  if (strcmp(type, "progress") == 0) {
    double layer = cJSON_GetNumberValue(cJSON_GetObjectItem(record, "layer"));
    snprintf(work->mode, sizeof work->mode, "%s", text_of(record, "mode"));
    snprintf(work->stage, sizeof work->stage, "%s", text_of(record, "stage"));
    snprintf(work->text, sizeof work->text, "%s", text_of(record, "text"));
    work->layer = fabs(layer) < 1e6 ? (int64_t)layer : -1;
  } else if (strcmp(type, "case") == 0 && work->trial->timing) {
    take_timed(work, record);
  }
  return 0;
}

/* The child ended by itself before it was finished. What it had found before in this case counts. */
static void settle_end(Work *work, const DflashChildResult *ended) {
  static const char *const doing[DFLASH_PHASE_COUNT] = {[DFLASH_PHASE_BACKEND] = "while it was loaded",
                                                        [DFLASH_PHASE_MODEL] = "while it opened the model",
                                                        [DFLASH_PHASE_CLOSE] = "while it closed the model"};
  DflashTrialResult *result = &work->board->result;
  int phase = work->board->phase;
  const char *where = doing[phase] != NULL ? doing[phase] : work->text;
  result->outcome = ended->how == DFLASH_CHILD_HUNG ? DFLASH_OUTCOME_HUNG : DFLASH_OUTCOME_CRASHED;
  result->failed++;
  if (result->bad_case >= 0) return;
  result->bad_case = work->board->at;
  result->failure = result->outcome;
  result->score = INFINITY;
  result->layer = work->layer;
  snprintf(result->name, sizeof result->name, "%s", work->trial->cases[result->bad_case]->name);
  snprintf(result->mode, sizeof result->mode, "%s", work->mode);
  snprintf(result->stage, sizeof result->stage, "%s", doing[phase] != NULL ? dflash_phase_name(phase) : work->stage);
  snprintf(result->message, sizeof result->message, "the backend %s %s%s", ended->text,
           doing[phase] == NULL && where[0] != '\0' ? "in " : "", where);
}

DflashStatus dflash_trial_profile(const DflashGeometry *geometry, const DflashWeights *weights, int32_t profile,
                                  DflashCase *c, DflashError *error) {
  const DflashEvaluate evaluate = {.geometry = geometry,
                                   .weights = weights,
                                   .profile = profile,
                                   .scales_alone = true,
                                   .scales_chain = true,
                                   .values = true};
  if (profile == DFLASH_PROFILE_EXACT) return DFLASH_OK;
  DflashStatus status = dflash_case_to_profile(c, geometry, profile, error);
  return status == DFLASH_OK ? dflash_evaluate_case(&evaluate, c, error) : status;
}

DflashStatus dflash_trial_run(const DflashTrial *trial, DflashTrialResult *result, DflashError *error) {
  Work work = {.trial = trial, .layer = -1};
  DflashChildResult ended = {0};
  void *shared = mmap(NULL, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a trial");
  work.board = shared;
  work.board->result.outcome = DFLASH_OUTCOME_NOT_RUN;
  work.board->result.bad_case = work.board->result.layer = -1;
  DflashStatus status = dflash_isolate(child, &work, trial->options->timeout_s, take, &work, &ended, error);
  if (status == DFLASH_OK && !work.board->finished) settle_end(&work, &ended);
  if (status == DFLASH_OK && work.board->finished && ended.how != DFLASH_CHILD_EXITED) settle_end(&work, &ended);
  *result = work.board->result;
  if (status == DFLASH_OK && work.board->finished && work.board->refused.status != DFLASH_OK) {
    if (error != NULL) *error = work.board->refused;
    status = work.board->refused.status;
  }
  munmap(shared, sizeof(Board));
  return status;
}
