/* Laws of the context: the same rows held give the same block, however they came there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/laws.h"

/* Beyond so many operations of projecting rows the rows before the last ones are loaded. */
#define PROJECT_MOST 1e9
enum { LAST_ROWS = 8, PUSHES_MOST = 64, KEPT_ROWS = 256 };

/* The rows that are held, and where each came from. */
typedef struct Held {
  int64_t first, len, width; /* width: of a tap row */
  float *taps;               /* [len, width] */
  int64_t loaded;            /* so many first rows are loaded as the golden has them, not pushed */
} Held;

static double project_operations(const DflashGeometry *g, int64_t rows) {
  double width = (double)dflash_geometry_tap_width(g), kv = (double)(g->layers * g->kv_heads * g->head_dim);
  return 2.0 * (double)rows * (double)g->hidden * (width + 2 * kv);
}

static bool held_open(const DflashCaseRun *run, Held *held) {
  const DflashCase *c = &run->c;
  int64_t *tap_row = NULL;
  DflashError error = {0};
  *held = (Held){.width = dflash_geometry_tap_width(run->session->geometry)};
  if (c->sizes.context_len == 0 || run->session->options->load_context) return false;
  if (dflash_context_replay(c->ops, c->op_count, &held->first, &held->len, &tap_row, NULL, &error) != DFLASH_OK)
    return false;
  held->taps = dflash_alloc((size_t)(held->len * held->width), sizeof *held->taps);
  for (int64_t r = 0; held->taps != NULL && r < held->len; r++)
    memcpy(held->taps + r * held->width, c->taps + tap_row[r] * held->width, (size_t)held->width * sizeof(float));
  free(tap_row);
  if (project_operations(run->session->geometry, held->len) > PROJECT_MOST && held->len > LAST_ROWS)
    held->loaded = held->len - LAST_ROWS;
  return held->taps != NULL;
}

static DflashStatus begin(const DflashCaseRun *run, const Held *held, DflashSequence **sequence, DflashError *error) {
  const DflashBackend *b = run->session->backend;
  const float *k[DFLASH_LIST_MAX], *v[DFLASH_LIST_MAX];
  DflashSequenceDesc desc = {.struct_size = sizeof desc};
  DflashStatus status = b->sequence_open(run->session->model, &desc, sequence, error);
  for (int64_t l = 0; l < run->c.layers; l++) {
    k[l] = run->c.held_k[l].data;
    v[l] = run->c.held_v[l].data;
  }
  return status == DFLASH_OK && held->loaded > 0 ? b->load(*sequence, held->first, held->loaded, k, v, error) : status;
}

/* Rows from .. to of what is held, `step` at a time. */
static DflashStatus push(const DflashCaseRun *run, const Held *held, DflashSequence *sequence, int64_t from, int64_t to,
                         int64_t step, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t r = from; status == DFLASH_OK && r < to; r += step) {
    int64_t rows = to - r < step ? to - r : step;
    status = run->session->backend->push(sequence, held->first + r, held->taps + r * held->width, rows, error);
  }
  return status;
}

/* Rows that belong nowhere: those of the context backwards, from position pos on. */
static DflashStatus push_foreign(const DflashCaseRun *run, const Held *held, DflashSequence *sequence, int64_t pos,
                                 int64_t rows, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t r = 0; status == DFLASH_OK && r < rows; r++)
    status = run->session->backend->push(sequence, pos + r, held->taps + (held->len - 1 - r % held->len) * held->width,
                                         1, error);
  return status;
}

/* The rows of one layer, as far as it keeps them from `from` on, against the golden's. */
static DflashStatus check_layer(const DflashCaseRun *run, const Held *held, DflashSequence *sequence, int64_t layer,
                                int64_t from, DflashProduct *again, DflashVerdict *verdict, DflashError *error) {
  const DflashBackend *b = run->session->backend;
  const DflashGuarded *own[] = {&again->k[layer], &again->v[layer]};
  const DflashValue *golden[] = {&run->c.held_k[layer], &run->c.held_v[layer]};
  int64_t first = 0, len = 0, kept = 0, end = held->first + held->len;
  DflashStatus status = b->span(sequence, layer, &first, &len, &kept, error);
  if (status != DFLASH_OK) return status;
  if (first + len != end)
    return dflash_error_set(error, DFLASH_INTERNAL, "the context ends at %lld; right: %lld", (long long)first + len,
                            (long long)end);
  kept = kept > from ? kept : from;
  int64_t rows = end - kept;
  if (rows <= 0) return DFLASH_OK;
  dflash_guarded_poison(&again->k[layer]);
  dflash_guarded_poison(&again->v[layer]);
  status = b->read_context(sequence, layer, kept, rows, again->k[layer].data, again->v[layer].data, error);
  for (int i = 0; status == DFLASH_OK && i < 2; i++) {
    int64_t at = (kept - held->first) * golden[i]->width;
    DflashVerdict value = {.stage = DFLASH_STAGE_CONTEXT_K};
    dflash_case_judge(run, &value, own[i]->data, golden[i]->data + at, golden[i]->chain + at, rows, golden[i]->width,
                      dflash_guarded_damage(own[i]));
    if (!dflash_outcome_is_failure(value.outcome)) continue;
    dflash_verdict_note(verdict, value.outcome, "%s of layer %lld is wrong at position %lld, %s", i == 0 ? "K" : "V",
                        (long long)layer, (long long)kept + value.comparison.worst_row, value.comparison.pattern);
    return DFLASH_OK;
  }
  return status;
}

/* Context from position `from` on, then a block. The verdict keeps its first failure. */
static DflashStatus check(DflashCaseRun *run, const Held *held, DflashSequence *sequence, int64_t from,
                          DflashProduct *again, DflashVerdict *verdict, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t l = 0; status == DFLASH_OK && !dflash_outcome_is_failure(verdict->outcome) && l < run->c.layers; l++)
    status = check_layer(run, held, sequence, l, from, again, verdict, error);
  if (status != DFLASH_OK || dflash_outcome_is_failure(verdict->outcome)) return status;
  status = dflash_law_block(run, sequence, again, true, error);
  if (status == DFLASH_OK) dflash_law_judge(run, verdict, again, true, "after it");
  return status;
}

/* Ends a law: a backend's error is its failure; otherwise a failure gets `wrong` before its note, a pass gets `right`.
 */
static void finish(DflashVerdict *verdict, DflashStatus status, const DflashError *error, const char *wrong,
                   const char *right) {
  char note[sizeof verdict->note];
  memcpy(note, verdict->note, sizeof note);
  if (status != DFLASH_OK)
    dflash_verdict_note(verdict, status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR,
                        "%s: %s", wrong, error->message);
  else if (dflash_outcome_is_failure(verdict->outcome))
    dflash_verdict_note(verdict, verdict->outcome, "%s: %.300s", wrong, note);
  else
    dflash_verdict_note(verdict, verdict->outcome, "%s", right);
}

void dflash_law_pushes(DflashCaseRun *run, DflashProduct *again) {
  Held held;
  if (!held_open(run, &held)) return;
  DflashVerdict *verdict = dflash_law_begin(run, DFLASH_MODE_CHAIN, "pushes");
  int64_t rest = held.len - held.loaded, single = (rest + PUSHES_MOST - 1) / PUSHES_MOST;
  const int64_t steps[] = {rest, single};
  DflashStatus status = DFLASH_OK;
  DflashError error = {0};
  for (int i = 0; status == DFLASH_OK && !dflash_outcome_is_failure(verdict->outcome) && i < 2; i++) {
    DflashSequence *sequence = NULL;
    status = begin(run, &held, &sequence, &error);
    if (status == DFLASH_OK) status = push(run, &held, sequence, held.loaded, held.len, steps[i], &error);
    if (status == DFLASH_OK) status = check(run, &held, sequence, held.first, again, verdict, &error);
    run->session->backend->sequence_close(sequence);
  }
  finish(verdict, status, &error, "the same rows in other pushes", "one push, and pushes of single rows");
  free(held.taps);
}

/* Too far and back twice: by truncate, and by a push inside what is held. */
static DflashStatus go_too_far(const DflashCaseRun *run, const Held *held, DflashSequence *sequence,
                               DflashError *error) {
  const DflashBackend *b = run->session->backend;
  int64_t end = held->first + held->len, back = held->len - held->loaded < 3 ? held->len - held->loaded : 3;
  DflashStatus status = push(run, held, sequence, held->loaded, held->len, held->len, error);
  if (status == DFLASH_OK) status = push_foreign(run, held, sequence, end, 5, error);
  if (status == DFLASH_OK) status = b->truncate(sequence, end, error);
  if (status == DFLASH_OK) status = push_foreign(run, held, sequence, end - back, back + 2, error);
  if (status == DFLASH_OK) status = push(run, held, sequence, held->len - back, held->len, back, error);
  return status;
}

void dflash_law_rewind(DflashCaseRun *run, DflashProduct *again) {
  Held held;
  if (!held_open(run, &held)) return;
  DflashVerdict *verdict = dflash_law_begin(run, DFLASH_MODE_CHAIN, "rewind");
  DflashSequence *sequence = NULL;
  DflashError error = {0};
  DflashStatus status = begin(run, &held, &sequence, &error);
  if (status == DFLASH_OK) status = go_too_far(run, &held, sequence, &error);
  if (status == DFLASH_OK) status = check(run, &held, sequence, held.first, again, verdict, &error);
  finish(verdict, status, &error, "rows pushed too far and taken back", "rows taken back leave no trace");
  run->session->backend->sequence_close(sequence);
  free(held.taps);
}

/* The first position that any row of the block sees in any layer; first when a layer has no window. */
static int64_t first_seen(const DflashCaseRun *run, int64_t first) {
  const DflashGeometry *g = run->session->geometry;
  int64_t seen = INT64_MAX;
  for (int64_t l = 0; l < g->layers; l++) {
    int64_t window = dflash_geometry_window(g, l);
    int64_t from = window > 0 ? run->c.anchor_pos + 1 - window : first;
    seen = from < seen ? from : seen;
  }
  return seen > first ? seen : first;
}

static int64_t widest_window(const DflashGeometry *g) {
  int64_t widest = 0;
  for (int64_t l = 0; l < g->layers; l++) {
    int64_t window = dflash_geometry_window(g, l);
    if (window == 0) return 0;
    widest = window > widest ? window : widest;
  }
  return widest;
}

void dflash_law_let_go(DflashCaseRun *run, DflashProduct *again) {
  Held held;
  if (!held_open(run, &held)) return;
  int64_t seen = first_seen(run, held.first), widest = widest_window(run->session->geometry);
  int64_t before = widest > 0 && run->c.anchor_pos + 1 - widest >= held.first ? widest + KEPT_ROWS + 40 : 0;
  before = before > held.first ? held.first : before;
  bool later = seen > held.first && seen < held.first + held.len;
  if (held.loaded > 0 || (!later && before == 0) || project_operations(run->session->geometry, before) > PROJECT_MOST) {
    free(held.taps);
    return;
  }
  DflashVerdict *verdict = dflash_law_begin(run, DFLASH_MODE_CHAIN, "let-go");
  DflashSequence *sequence = NULL;
  DflashError error = {0};
  DflashStatus status = begin(run, &held, &sequence, &error);
  if (status == DFLASH_OK && before > 0)
    status = push_foreign(run, &held, sequence, held.first - before, before, &error);
  int64_t from = before == 0 && later ? seen - held.first : 0;
  if (status == DFLASH_OK) status = push(run, &held, sequence, from, held.len, held.len, &error);
  if (status == DFLASH_OK) status = check(run, &held, sequence, held.first + from, again, verdict, &error);
  finish(verdict, status, &error,
         before > 0 ? "other rows before those that are seen" : "rows that are not seen left out",
         "rows that no window reaches do not matter");
  run->session->backend->sequence_close(sequence);
  free(held.taps);
}

/* As little of a block as there is, at another anchor. Its result is nobody's concern, but what it leaves behind is. */
static DflashStatus small_block(const DflashCaseRun *run, DflashSequence *sequence, int64_t anchor_pos,
                                DflashProduct *again, DflashError *error) {
  DflashBlockCall call = {.struct_size = sizeof call,
                          .anchor_pos = anchor_pos,
                          .anchor_token = run->c.anchor_token,
                          .rows = 2,
                          .n_draft = 1,
                          .head_width = run->c.sizes.head_width,
                          .tokens = &again->tokens.tokens};
  DflashStatus status = dflash_case_block(run, sequence, &call, error);
  return status == DFLASH_NONFINITE ? DFLASH_OK : status;
}

void dflash_law_rounds(DflashCaseRun *run, DflashProduct *again) {
  Held held;
  if (!held_open(run, &held)) return;
  DflashVerdict *verdict = dflash_law_begin(run, DFLASH_MODE_CHAIN, "rounds");
  DflashSequence *sequence = NULL;
  DflashError error = {0};
  int64_t last = held.len - held.loaded < 3 ? held.len - held.loaded : 3, before = held.len - last;
  DflashStatus status = begin(run, &held, &sequence, &error);
  if (status == DFLASH_OK) status = push(run, &held, sequence, held.loaded, before, held.len, &error);
  if (status == DFLASH_OK) status = small_block(run, sequence, held.first + before, again, &error);
  if (status == DFLASH_OK) status = push(run, &held, sequence, before, held.len, last, &error);
  if (status == DFLASH_OK) status = check(run, &held, sequence, held.first, again, verdict, &error);
  finish(verdict, status, &error, "a small block, the last rows, then the block",
         "blocks between pushes leave no trace");
  run->session->backend->sequence_close(sequence);
  free(held.taps);
}
