/* Laws that need no golden: equal calls give equal bits, whatever ran between them, captured or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/laws.h"

#define OTHER_POISON 0x7fa5a5a5u /* another NaN than the first run's: a stale read changes bits */

DflashVerdict *dflash_law_begin(DflashCaseRun *run, int mode, const char *name) {
  dflash_session_check(run->session, mode, name);
  return dflash_verdict_add(&run->verdicts, mode, DFLASH_STAGE_NONE, -1, name);
}

static DflashVerdict *law(DflashCaseRun *run, const char *name) {
  return dflash_law_begin(run, DFLASH_MODE_CHAIN, name);
}

/* 1 when a guard band of this run is damaged; the verdict says so. */
static bool judge_damage(const DflashCaseRun *run, DflashVerdict *verdict, const DflashProduct *product) {
  char label[64];
  int64_t damage = dflash_product_damage(run, product, label);
  if (damage == 0) return false;
  dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "%s: wrote outside its output: element %lld %s", label,
                      (long long)(damage < 0 ? -damage : damage), damage < 0 ? "before its start" : "past its end");
  return true;
}

typedef struct RepeatCount {
  int64_t runs, differing, failing;
  char differs_at[64], fails_at[64];
} RepeatCount;

static void count_failing(RepeatCount *count, const char *label) {
  if (count->failing++ == 0) snprintf(count->fails_at, sizeof count->fails_at, "%s", label);
}

/* With --repeat the first run counts too, and one with its bits fails like it. */
static DflashStatus count_repeats(DflashCaseRun *run, DflashProduct *again, RepeatCount *count, DflashError *error) {
  int64_t repeat = run->session->options->repeat;
  bool chain = (run->modes & 1u << DFLASH_MODE_CHAIN) != 0;
  char label[64], first[64];
  bool first_fails = chain && repeat > 1 && dflash_product_fails(run, &run->product, first);
  if (first_fails) count_failing(count, first);
  for (int64_t r = 1; r < (repeat > 1 ? repeat : 2); r++) {
    dflash_session_check(run->session, DFLASH_MODE_CHAIN, "repeat");
    DflashStatus status = dflash_product_run(run, run->sequence, again, OTHER_POISON + (uint32_t)r, error);
    if (status != DFLASH_OK) return status;
    count->runs++;
    if (dflash_product_damage(run, again, label) != 0) return DFLASH_OK; /* the caller looks at the bands */
    if (!dflash_product_differs(run, &run->product, again, label)) {
      if (first_fails) count_failing(count, first);
      continue;
    }
    if (count->differing++ == 0) memcpy(count->differs_at, label, sizeof label);
    if (chain && dflash_product_fails(run, again, label)) count_failing(count, label);
  }
  return DFLASH_OK;
}

static void judge_repeats(DflashCaseRun *run, DflashProduct *again) {
  DflashVerdict *verdict = law(run, "repeat");
  RepeatCount count = {0};
  DflashError error = {0};
  if (count_repeats(run, again, &count, &error) != DFLASH_OK) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "run %lld of the same block: %s", (long long)count.runs + 2,
                        error.message);
    return;
  }
  verdict->runs = count.runs + 1;
  verdict->failed_runs = count.failing;
  if (judge_damage(run, verdict, again)) return;
  if (count.failing > 0)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "%lld of %lld runs fail, first at %s",
                        (long long)count.failing, (long long)verdict->runs, count.fails_at);
  else if (count.differing > 0 && run->session->info.repeatable)
    dflash_verdict_note(
        verdict, DFLASH_OUTCOME_UNREPEATABLE,
        "%lld of %lld repeated runs gave other bits, first at %s, though the backend promises equal ones",
        (long long)count.differing, (long long)count.runs, count.differs_at);
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "%lld runs%s", (long long)verdict->runs,
                        count.differing > 0 ? ", bits differ as the backend declares" : ", equal bits");
}

/* Another context and another block on the same model: the taps backwards at a shifted position. */
static DflashStatus disturb(DflashCaseRun *run, DflashSequence *other, DflashTokenBuffers *buffers,
                            DflashError *error) {
  const DflashCase *c = &run->c;
  const DflashGeometry *g = run->session->geometry;
  const DflashBackend *b = run->session->backend;
  int64_t width = dflash_geometry_tap_width(g), rows = c->tap_rows < 40 ? c->tap_rows : 40;
  int64_t first = c->anchor_pos > 7 ? 7 : 0;
  float *taps = dflash_alloc((size_t)(rows * width + c->sizes.rows * g->hidden), sizeof *taps);
  if (taps == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for another sequence");
  float *h = taps + rows * width;
  for (int64_t r = 0; r < rows; r++)
    memcpy(taps + r * width, c->taps + (c->tap_rows - 1 - r) * width, (size_t)width * sizeof *taps);
  for (int64_t r = 0; r < c->sizes.rows; r++)
    memcpy(h + r * g->hidden, c->h + (c->sizes.rows - 1 - r) * g->hidden, (size_t)g->hidden * sizeof *h);
  DflashStatus status = rows > 0 ? b->push(other, first, taps, rows, error) : DFLASH_OK;
  DflashBlockCall call = {.struct_size = sizeof call,
                          .anchor_pos = first + rows,
                          .anchor_token = c->anchor_token,
                          .rows = c->sizes.rows,
                          .n_draft = c->sizes.n_draft,
                          .head_width = c->sizes.head_width,
                          .h = h,
                          .tokens = &buffers->tokens};
  if (status == DFLASH_OK) status = b->block(other, &call, error);
  free(taps);
  return status == DFLASH_NONFINITE ? DFLASH_OK : status; /* its values are nobody's concern here */
}

static void judge_sequences(DflashCaseRun *run, DflashProduct *again) {
  DflashSession *s = run->session;
  DflashVerdict *verdict = law(run, "sequences");
  DflashSequence *other = NULL;
  DflashSequenceDesc desc = {.struct_size = sizeof desc};
  DflashError error = {0};
  char label[64];
  DflashStatus status = s->backend->sequence_open(s->model, &desc, &other, &error);
  if (status == DFLASH_OK) status = disturb(run, other, &again->tokens, &error);
  if (status == DFLASH_OK) status = dflash_product_run(run, run->sequence, again, OTHER_POISON, &error);
  if (status != DFLASH_OK)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "with a second sequence: %s", error.message);
  else if (judge_damage(run, verdict, again))
    return s->backend->sequence_close(other);
  else if (!dflash_product_differs(run, &run->product, again, label))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "two sequences in turn, equal bits");
  else if (s->info.repeatable ||
           ((run->modes & 1u << DFLASH_MODE_CHAIN) != 0 && dflash_product_fails(run, again, label)))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "a block of another sequence in between changes %s", label);
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "two sequences in turn, within the error");
  s->backend->sequence_close(other);
}

DflashStatus dflash_law_block(DflashCaseRun *run, DflashSequence *sequence, DflashProduct *again, bool outputs,
                              DflashError *error) {
  dflash_token_buffers_poison(&again->tokens);
  dflash_guarded_poison(&again->logits);
  dflash_guarded_poison(&again->selector);
  DflashTokens bare = {
      .struct_size = sizeof bare, .chosen = again->tokens.tokens.chosen, .plain = again->tokens.tokens.plain};
  DflashBlockCall call = {.struct_size = sizeof call,
                          .anchor_pos = run->c.anchor_pos,
                          .anchor_token = run->c.anchor_token,
                          .rows = run->c.sizes.rows,
                          .n_draft = run->c.sizes.n_draft,
                          .head_width = run->c.sizes.head_width,
                          .tokens = outputs ? &again->tokens.tokens : &bare,
                          .logits = outputs ? again->logits.data : NULL,
                          .selector_hidden = outputs ? again->selector.data : NULL};
  return dflash_case_block(run, sequence, &call, error);
}

/* Tokens equal to the captured block's, or right by themselves. */
static void judge_tokens(DflashCaseRun *run, DflashVerdict *verdict, const DflashProduct *again, bool outputs) {
  const DflashValue *logits = dflash_case_value(&run->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  DflashTokenBuffers got = again->tokens; /* a view: what was not asked for is not there */
  if (!outputs) got.tokens.candidates = NULL, got.tokens.scores = NULL;
  if (outputs && dflash_token_buffers_equal(&run->product.tokens, &again->tokens))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "the same tokens and scores");
  else
    dflash_case_judge_tokens(run, verdict, &got, &run->c.tokens, logits->data, logits->chain,
                             dflash_case_value(&run->c, DFLASH_STAGE_SELECTOR_HIDDEN, 0)->data, true);
}

/* Logits and selector rows equal to the captured block's, or right by themselves. */
static void judge_outputs(DflashCaseRun *run, DflashVerdict *verdict, const DflashProduct *again, const char *what) {
  static const int32_t stages[] = {DFLASH_STAGE_HEAD_LOGITS, DFLASH_STAGE_SELECTOR_HIDDEN};
  const DflashGuarded *own[] = {&again->logits, &again->selector};
  const DflashGuarded *captured[] = {&run->product.logits, &run->product.selector};
  for (int i = 0; i < 2; i++) {
    if (dflash_guarded_equal(own[i], captured[i])) continue;
    const DflashValue *golden = dflash_case_value(&run->c, stages[i], 0);
    DflashVerdict value = {.stage = stages[i], .mode = DFLASH_MODE_CHAIN};
    dflash_case_judge(run, &value, own[i]->data, golden->data, golden->chain, golden->rows, golden->width, 0);
    if (!dflash_outcome_is_failure(value.outcome)) continue;
    dflash_verdict_note(verdict, value.outcome, "%s of a block %s: %s", dflash_stage_row(stages[i])->name, what,
                        value.comparison.place);
    verdict->comparison.score = value.comparison.score;
    return;
  }
}

void dflash_law_judge(DflashCaseRun *run, DflashVerdict *verdict, const DflashProduct *again, bool outputs,
                      const char *what) {
  if (judge_damage(run, verdict, again)) return;
  judge_tokens(run, verdict, again, outputs);
  if (outputs && !dflash_outcome_is_failure(verdict->outcome)) judge_outputs(run, verdict, again, what);
}

/* What ships is a sequence that captures nothing: two blocks of it are judged as well. */
static void judge_uncaptured(DflashCaseRun *run, DflashProduct *again) {
  DflashSession *s = run->session;
  DflashVerdict *verdict = law(run, "uncaptured");
  DflashSequence *plain = NULL;
  DflashError error = {0};
  DflashStatus status = dflash_case_sequence(run, 0, &plain, &error);
  for (int block = 0; block < 2 && !dflash_outcome_is_failure(verdict->outcome); block++) {
    if (status == DFLASH_OK) status = dflash_law_block(run, plain, again, block == 1, &error);
    if (status != DFLASH_OK) break;
    dflash_law_judge(run, verdict, again, block == 1, "without capture");
  }
  if (status != DFLASH_OK && status == run->block_error.status)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "the captured block failed the same way");
  else if (status != DFLASH_OK)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "without capture: %s", error.message);
  s->backend->sequence_close(plain);
}

/* A block that sees what was loaded. */
static void block_after_load(DflashCaseRun *run, DflashSequence *sequence, DflashVerdict *verdict,
                             DflashProduct *again) {
  DflashError error = {0};
  DflashStatus status = dflash_law_block(run, sequence, again, true, &error);
  if (status == DFLASH_OK)
    dflash_law_judge(run, verdict, again, true, "on the loaded context");
  else if (status == run->block_error.status)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "held as loaded; the block fails as before");
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "a block on the loaded context: %s", error.message);
  if (!dflash_outcome_is_failure(verdict->outcome) && status == DFLASH_OK)
    dflash_verdict_note(verdict, verdict->outcome, "held as loaded, and seen by a block");
}

/* Context given directly is held as it was given, and a block sees it. */
static void judge_load(DflashCaseRun *run, DflashProduct *again) {
  DflashSession *s = run->session;
  DflashVerdict *verdict = law(run, "load");
  DflashSequence *sequence = NULL;
  DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = DFLASH_SEQUENCE_CAPTURE};
  DflashError error = {0};
  int64_t len = run->c.sizes.context_len, bad = -1;
  DflashStatus status = s->backend->sequence_open(s->model, &desc, &sequence, &error);
  if (status == DFLASH_OK) status = dflash_case_load(run, sequence, &error);
  for (int64_t l = 0; status == DFLASH_OK && bad < 0 && l < run->product.layers; l++) {
    status =
        s->backend->read_context(sequence, l, run->c.context_first, len, again->k[l].data, again->v[l].data, &error);
    size_t bytes = again->k[l].count * sizeof(float);
    if (status == DFLASH_OK && (memcmp(again->k[l].data, run->c.held_k[l].data, bytes) != 0 ||
                                memcmp(again->v[l].data, run->c.held_v[l].data, bytes) != 0))
      bad = l;
  }
  if (status != DFLASH_OK)
    dflash_verdict_note(verdict, status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR, "%s",
                        error.message);
  else if (bad >= 0)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "layer %lld does not hold the rows that were loaded",
                        (long long)bad);
  else
    block_after_load(run, sequence, verdict, again);
  s->backend->sequence_close(sequence);
}

static void judge_chain_laws(DflashCaseRun *run, DflashProduct *again) {
  judge_uncaptured(run, again);
  if (run->block_error.status != DFLASH_OK) return;
  dflash_law_pushes(run, again);
  dflash_law_rewind(run, again);
  dflash_law_rounds(run, again);
  dflash_law_let_go(run, again);
  dflash_law_cut(run);
}

void dflash_verify_laws(DflashCaseRun *run) {
  DflashProduct again = {0};
  DflashError error = {0};
  if (dflash_product_open(run, &again, &error) != DFLASH_OK) {
    dflash_verdict_note(law(run, "repeat"), DFLASH_OUTCOME_ERROR, "%s", error.message);
    return;
  }
  judge_repeats(run, &again);
  if (run->session->options->stages == NULL && run->session->options->layer < 0) {
    judge_sequences(run, &again);
    if ((run->modes & 1u << DFLASH_MODE_CHAIN) != 0) judge_chain_laws(run, &again);
    if (run->c.sizes.context_len > 0) judge_load(run, &again);
  }
  dflash_product_close(&again);
}
