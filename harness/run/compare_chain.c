/* An engine's own values from taps and embeddings on, by the chain's scale. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/compare_parts.h"

const DflashCandidateValue *dflash_compare_value(const DflashCompareRun *compare, int32_t stage, int64_t layer) {
  const DflashCandidateCase *v = &compare->values;
  if (stage == DFLASH_STAGE_HELD_K) return &v->held_k[layer];
  if (stage == DFLASH_STAGE_HELD_V) return &v->held_v[layer];
  return &v->stages[stage * v->layers + layer];
}

/* The golden's rows that the file has; NULL when memory is out. */
static float *gather(const float *all, const DflashCandidateValue *value, int64_t width) {
  float *rows = malloc((size_t)(value->count * width) * sizeof *rows);
  for (int64_t i = 0; rows != NULL && i < value->count; i++)
    memcpy(rows + i * width, all + value->rows[i] * width, (size_t)width * sizeof *rows);
  return rows;
}

static void compare_rows(const DflashCompareRun *compare, DflashVerdict *verdict, int32_t stage,
                         const DflashCandidateValue *value, const DflashValue *golden, const float *sigma) {
  static const int storages[] = {DFLASH_STORED_F32, DFLASH_STORED_F16, DFLASH_STORED_BF16};
  const DflashCaseRun *run = &compare->run;
  bool held = verdict->stage == DFLASH_STAGE_NONE && dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  float *golden_rows = value->rows != NULL ? gather(golden->data, value, golden->width) : NULL;
  float *sigma_rows = value->rows != NULL && sigma != NULL ? gather(sigma, value, golden->width) : NULL;
  const DflashCompareCall call = {.geometry = run->session->geometry,
                                  .stage = stage,
                                  .rows = value->count,
                                  .width = golden->width,
                                  .position = held ? run->c.context_first : dflash_case_position(run, stage),
                                  .row_ids = value->rows,
                                  .row_count = golden->rows,
                                  .storage = storages[value->storage],
                                  .got = value->data,
                                  .golden = value->rows != NULL ? golden_rows : golden->data,
                                  .sigma = value->rows != NULL ? sigma_rows : sigma};
  if (value->rows != NULL && (golden_rows == NULL || (sigma != NULL && sigma_rows == NULL))) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for the golden's rows");
  } else {
    dflash_compare_values(&call, &verdict->comparison);
    verdict->compared = true;
    verdict->outcome = verdict->comparison.outcome;
  }
  free(golden_rows);
  free(sigma_rows);
}

void dflash_compare_judge(DflashCompareRun *compare, DflashVerdict *verdict, int32_t stage,
                          const DflashCandidateValue *value, const DflashValue *golden, const float *sigma) {
  const char *why = NULL;
  if (value->data == NULL || value->count == 0) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "not in the file");
    return;
  }
  compare_rows(compare, verdict, stage, value, golden, sigma);
  if (verdict->outcome == DFLASH_OUTCOME_PASS &&
      !dflash_value_trusted(golden->data, golden->rows * golden->width, &why))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_TRUSTED, "agrees, but the golden proves little: %s", why);
  else if (value->rows != NULL && verdict->note[0] == '\0')
    dflash_verdict_note(verdict, verdict->outcome, "%lld of %lld rows are in the file", (long long)value->count,
                        (long long)golden->rows);
}

bool dflash_compare_tokens_open(const DflashCompareRun *compare, DflashTokenBuffers *buffers) {
  const DflashCaseRun *run = &compare->run;
  const DflashCandidateCase *v = &compare->values;
  const DflashTokensValue *golden = &run->c.tokens;
  size_t rows = (size_t)run->c.sizes.n_draft, all = rows * (size_t)run->session->geometry->selector_top;
  if (!dflash_token_buffers_open(buffers, run->session->geometry, run->c.sizes.n_draft)) return false;
  dflash_token_buffers_poison(buffers);
  memcpy(buffers->tokens.chosen, v->chosen != NULL ? v->chosen : golden->chosen, rows * sizeof *golden->chosen);
  memcpy(buffers->tokens.plain, v->plain != NULL ? v->plain : golden->plain, rows * sizeof *golden->plain);
  if (v->candidates != NULL) memcpy(buffers->tokens.candidates, v->candidates, all * sizeof *v->candidates);
  if (v->scores != NULL) memcpy(buffers->tokens.scores, v->scores, all * sizeof *v->scores);
  if (v->candidates == NULL) buffers->tokens.candidates = NULL;
  if (v->scores == NULL) buffers->tokens.scores = NULL;
  return true;
}

/* Which arrays the golden stood in for. */
static void note_missing(const DflashCandidateCase *v, DflashVerdict *verdict) {
  if (verdict->note[0] != '\0') return;
  const char *missing = v->chosen == NULL ? "chosen is" : v->plain == NULL ? "plain is" : NULL;
  if (missing != NULL) dflash_verdict_note(verdict, verdict->outcome, "%s not in the file", missing);
}

static void chain_tokens(DflashCompareRun *compare, DflashVerdict *verdict) {
  DflashCaseRun *run = &compare->run;
  const DflashCandidateCase *v = &compare->values;
  DflashTokenBuffers buffers;
  if (v->chosen == NULL && v->plain == NULL) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "not in the file");
    return;
  }
  if (!dflash_compare_tokens_open(compare, &buffers)) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for tokens");
    return;
  }
  const DflashValue *logits = dflash_case_value(&run->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  const DflashValue *hidden = dflash_case_value(&run->c, DFLASH_STAGE_SELECTOR_HIDDEN, 0);
  dflash_case_judge_tokens(run, verdict, &buffers, &run->c.tokens, logits->data, logits->chain, hidden->data, true);
  note_missing(v, verdict);
  dflash_token_buffers_close(&buffers);
}

static void chain_context(DflashCompareRun *compare, int64_t layer, const char *check, int32_t source,
                          const DflashValue *golden) {
  const DflashCandidateValue *value = dflash_compare_value(compare, source, layer);
  if (value->data == NULL) return; /* an engine's cache need not be in the file */
  DflashVerdict *verdict =
      dflash_verdict_add(&compare->run.verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, layer, check);
  dflash_compare_judge(compare, verdict, DFLASH_STAGE_CONTEXT_K, value, golden, golden->chain);
}

void dflash_compare_chain(DflashCompareRun *compare) {
  DflashCaseRun *run = &compare->run;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    if (!dflash_case_selects(run, stage, layer) || !dflash_case_has(run, stage, layer)) continue;
    DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, stage, layer, NULL);
    const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
    if (stage == DFLASH_STAGE_SELECT)
      chain_tokens(compare, verdict);
    else
      dflash_compare_judge(compare, verdict, stage, dflash_compare_value(compare, stage, layer), golden, golden->chain);
    if (stage != DFLASH_STAGE_CONTEXT_K) continue;
    chain_context(compare, layer, "context_state.k", DFLASH_STAGE_HELD_K, &run->c.held_k[layer]);
    chain_context(compare, layer, "context_state.v", DFLASH_STAGE_HELD_V, &run->c.held_v[layer]);
  }
}
