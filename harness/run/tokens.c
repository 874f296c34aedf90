#include <stdlib.h>
#include <string.h>

#include "run/case_run.h"

bool dflash_token_buffers_open(DflashTokenBuffers *b, const DflashGeometry *g, int64_t n_draft) {
  memset(b, 0, sizeof *b);
  size_t rows = (size_t)n_draft, all = (size_t)(n_draft * g->selector_top);
  if (!dflash_guarded_open(&b->chosen, rows) || !dflash_guarded_open(&b->plain, rows) ||
      !dflash_guarded_open(&b->candidates, all) || !dflash_guarded_open(&b->scores, all)) {
    dflash_token_buffers_close(b);
    return false;
  }
  /* ids share the guarded memory of floats: both have 32 bits, and the pattern is no valid id */
  b->tokens = (DflashTokens){.struct_size = sizeof(DflashTokens),
                             .chosen = (int32_t *)(void *)b->chosen.data,
                             .plain = (int32_t *)(void *)b->plain.data,
                             .candidates = (int32_t *)(void *)b->candidates.data,
                             .scores = b->scores.data};
  return true;
}

void dflash_token_buffers_poison(DflashTokenBuffers *b) {
  dflash_guarded_poison(&b->chosen);
  dflash_guarded_poison(&b->plain);
  dflash_guarded_poison(&b->candidates);
  dflash_guarded_poison(&b->scores);
}

int64_t dflash_token_buffers_damage(const DflashTokenBuffers *b) {
  const DflashGuarded *all[] = {&b->chosen, &b->plain, &b->candidates, &b->scores};
  for (int i = 0; i < 4; i++) {
    int64_t damage = dflash_guarded_damage(all[i]);
    if (damage != 0) return damage;
  }
  return 0;
}

void dflash_token_buffers_close(DflashTokenBuffers *b) {
  dflash_guarded_close(&b->chosen);
  dflash_guarded_close(&b->plain);
  dflash_guarded_close(&b->candidates);
  dflash_guarded_close(&b->scores);
}

typedef struct Walk {
  DflashOracleSelect select;
  bool chain;
} Walk;

static double walk_score(void *context, int64_t row, int32_t previous, int32_t candidate, double *sigma) {
  Walk *walk = context;
  float alone = 0, chain = 0;
  double score = dflash_oracle_score(&walk->select, row, previous, candidate, &alone, &chain);
  *sigma = (double)(walk->chain ? chain : alone);
  return score;
}

void dflash_case_judge_tokens(DflashCaseRun *run, DflashVerdict *verdict, const DflashTokenBuffers *got,
                              const DflashTokensValue *golden, const float *logits, const float *logits_sigma,
                              const float *hidden, bool chain) {
  const DflashCase *c = &run->c;
  int64_t damage = dflash_token_buffers_damage(got);
  if (damage != 0) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "wrote %lld elements outside a token array",
                        (long long)damage);
    return;
  }
  DflashError error = {0};
  float *rounded = NULL;
  if (!chain && dflash_oracle_logits_rounded(run->session->options->profile, logits,
                                             c->sizes.n_draft * c->sizes.head_width, &rounded, &error) != DFLASH_OK) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "%s", error.message);
    return;
  }
  const DflashValue *hidden_value = dflash_case_value(c, DFLASH_STAGE_SELECTOR_HIDDEN, 0);
  Walk walk = {.chain = chain,
               .select = {.geometry = run->session->geometry,
                          .weights = run->session->weights,
                          .sizes = c->sizes,
                          .anchor_token = c->anchor_token,
                          .logits = logits,
                          .hidden = hidden,
                          .logits_sigma = chain ? logits_sigma : NULL,
                          .hidden_sigma = chain ? hidden_value->chain : NULL,
                          .profile = run->session->options->profile}};
  DflashTokenCall call = {.geometry = run->session->geometry,
                          .sizes = c->sizes,
                          .anchor_token = c->anchor_token,
                          .golden_logits = logits,
                          .logits_sigma = chain ? logits_sigma : rounded,
                          .golden = golden,
                          .chain = chain,
                          .chosen = got->tokens.chosen,
                          .plain = got->tokens.plain,
                          .candidates = got->tokens.candidates,
                          .scores = got->tokens.scores,
                          .score = walk_score,
                          .score_context = &walk};
  DflashTokenVerdict result;
  dflash_compare_tokens(&call, &result);
  free(rounded);
  dflash_verdict_note(verdict, result.outcome, "%s", result.message);
  verdict->compared = true;
  verdict->comparison = (DflashComparison){.outcome = result.outcome,
                                           .score = result.score,
                                           .elements = c->sizes.n_draft,
                                           .bad = dflash_outcome_is_failure(result.outcome) ? 1 : 0,
                                           .first_row = result.row,
                                           .worst_row = result.row};
}
