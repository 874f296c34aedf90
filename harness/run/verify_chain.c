#include <string.h>

#include "base/error.h"
#include "run/case_run.h"
#include "run/dump.h"

/* stage: whose terms name the places; a check that is no stage borrows one. */
static void judge(DflashCaseRun *run, DflashVerdict *verdict, int32_t stage, const DflashDumpValues *values) {
  int32_t own = verdict->stage;
  verdict->stage = stage;
  dflash_case_judge(run, verdict, values->got, values->expected, values->sigma, values->rows, values->width,
                    values->damage);
  verdict->stage = own;
  dflash_dump_verdict(run, verdict, values);
}

/* The values of a stage as the block gave them, against a golden of the same size. */
static DflashDumpValues values_of(const DflashCaseRun *run, int32_t stage, const DflashGuarded *own,
                                  const float *expected, const float *sigma) {
  const DflashGeometry *g = run->session->geometry;
  return (DflashDumpValues){.stage = stage,
                            .rows = dflash_stage_rows(g, &run->c.sizes, stage),
                            .width = dflash_stage_width(g, &run->c.sizes, stage),
                            .damage = dflash_guarded_damage(own),
                            .got = own->data,
                            .expected = expected,
                            .sigma = sigma};
}

static void chain_stage(DflashCaseRun *run, int32_t stage, int64_t layer) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, stage, layer, NULL);
  const DflashGuarded *own = dflash_product_judged(run, verdict);
  if (own == NULL) return;
  const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
  DflashDumpValues values = values_of(run, stage, own, golden->data, golden->chain);
  judge(run, verdict, stage, &values);
}

static void chain_tokens(DflashCaseRun *run) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_SELECT, 0, NULL);
  if (run->block_error.status != DFLASH_OK) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NONFINITE, "%s", run->block_error.message);
    return;
  }
  const DflashValue *logits = dflash_case_value(&run->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  const DflashValue *hidden = dflash_case_value(&run->c, DFLASH_STAGE_SELECTOR_HIDDEN, 0);
  dflash_case_judge_tokens(run, verdict, &run->product.tokens, &run->c.tokens, logits->data, logits->chain,
                           hidden->data, true);
}

/* What the context holds, rows of earlier pushes and rewinds included. */
static void chain_context(DflashCaseRun *run, int64_t layer, const char *check, const DflashGuarded *own,
                          const DflashValue *golden) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, layer, check);
  bool loaded = run->session->options->load_context != 0;
  DflashDumpValues values = values_of(run, DFLASH_STAGE_CONTEXT_K, own, golden->data, loaded ? NULL : golden->chain);
  values.rows = run->c.sizes.context_len;
  judge(run, verdict, DFLASH_STAGE_CONTEXT_K, &values);
}

/* The block's own outputs must be the values that read_stage gives. */
static void chain_outputs(DflashCaseRun *run, int32_t stage, const DflashGuarded *output) {
  const float *value = dflash_product_value(&run->product, stage, 0);
  DflashVerdict *verdict =
      dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1,
                         stage == DFLASH_STAGE_HEAD_LOGITS ? "block.logits" : "block.selector_hidden");
  const DflashValue *golden = dflash_case_value(&run->c, stage, 0);
  DflashDumpValues values =
      values_of(run, stage, output, value != NULL ? value : golden->data, value != NULL ? NULL : golden->chain);
  judge(run, verdict, stage, &values);
}

void dflash_verify_chain(DflashCaseRun *run) {
  const DflashRunOptions *o = run->session->options;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    if (!dflash_case_selects(run, stage, layer) || !dflash_case_has(run, stage, layer)) continue;
    if (stage == DFLASH_STAGE_SELECT)
      chain_tokens(run);
    else
      chain_stage(run, stage, layer);
    if (stage == DFLASH_STAGE_CONTEXT_K && run->c.sizes.context_len > 0) {
      chain_context(run, layer, "context_state.k", &run->product.k[layer], &run->c.held_k[layer]);
      chain_context(run, layer, "context_state.v", &run->product.v[layer], &run->c.held_v[layer]);
    }
  }
  if (o->stages != NULL || o->layer >= 0) return;
  chain_outputs(run, DFLASH_STAGE_HEAD_LOGITS, &run->product.logits);
  chain_outputs(run, DFLASH_STAGE_SELECTOR_HIDDEN, &run->product.selector);
}
