#include "select.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

bool dflash_selection_open(DflashSelection *s, const DflashGeometry *g) {
  const size_t rows = (size_t)g->block;
  int64_t count;
  *s = (DflashSelection){0};
  if (!dflash_mul_i64(g->block, g->selector_top, &count)) return false;
  s->candidates = dflash_alloc((size_t)count, sizeof *s->candidates);
  s->chosen = dflash_alloc(rows, sizeof *s->chosen);
  s->found_nan = dflash_alloc(rows, sizeof *s->found_nan);
  s->predecessor = dflash_alloc((size_t)g->selector_rank, sizeof(float));
  s->successor = dflash_alloc((size_t)g->selector_rank, sizeof(float));
  return s->candidates && s->chosen && s->found_nan && s->predecessor && s->successor;
}

void dflash_selection_close(DflashSelection *s) {
  free(s->candidates);
  free(s->chosen);
  free(s->found_nan);
  free(s->predecessor);
  free(s->successor);
  *s = (DflashSelection){0};
}

/* ---- the largest logits of a row: a heap with the worst on top ---- */

static int is_worse(DflashCandidate a, DflashCandidate b) {
  return a.logit < b.logit || (a.logit == b.logit && a.token > b.token);
}

static void sift_down(DflashCandidate *heap, int64_t count, int64_t at) {
  const DflashCandidate moved = heap[at];
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && is_worse(heap[child + 1], heap[child])) child++;
    if (!is_worse(heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

/* Takes the worst off again and again: what is left in the array is best first. */
static void sort_heap(DflashCandidate *heap, int64_t count) {
  while (count > 1) {
    const DflashCandidate worst = heap[0];
    heap[0] = heap[--count];
    heap[count] = worst;
    sift_down(heap, count, 0);
  }
}

/* Tokens come in rising order, so an equal logit never replaces. */
static int offer(DflashCandidate *heap, int64_t top, const float *logits, int64_t begin, int64_t end) {
  int found_nan = 0;
  for (int64_t i = begin; i < end; i++) {
    found_nan |= isnan(logits[i]);
    if (!(logits[i] > heap[0].logit)) continue;
    heap[0] = (DflashCandidate){logits[i], (int32_t)i};
    sift_down(heap, top, 0);
  }
  return found_nan;
}

/* 1 when any of count logits is above the threshold or NaN. */
static int any_above(const float *logits, int count, float threshold) {
  int any = 0;
  for (int i = 0; i < count; i++) any |= !(logits[i] <= threshold);
  return any;
}

static int find_largest(const float *logits, int64_t width, int64_t top, DflashCandidate *heap) {
  enum { PIECE = 128 };
  int found_nan = 0;
  for (int64_t i = 0; i < top; i++) {
    heap[i] = (DflashCandidate){logits[i], (int32_t)i};
    found_nan |= isnan(logits[i]);
  }
  for (int64_t i = top / 2; i-- > 0;) sift_down(heap, top, i);
  int64_t i = top;
  for (; i + PIECE <= width; i += PIECE)
    if (any_above(logits + i, PIECE, heap[0].logit)) found_nan |= offer(heap, top, logits, i, i + PIECE);
  found_nan |= offer(heap, top, logits, i, width);
  sort_heap(heap, top);
  return found_nan;
}

typedef struct Search {
  const DflashSelection *selection;
  const DflashSelectCall *call;
} Search;

static void search_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Search *search = context;
  const int64_t top = search->call->model->geometry.selector_top, width = search->call->head_width;
  (void)worker;
  for (int64_t j = begin; j < end; j++)
    search->selection->found_nan[j] =
        find_largest(search->call->logits + j * width, width, top, search->selection->candidates + j * top);
}

/* ---- the walk ---- */

static double score(const DflashSelection *s, const DflashSelectCall *call, DflashCandidate candidate,
                    const float *hidden) {
  const int64_t rank = call->model->geometry.selector_rank;
  dflash_codebook_row(&call->model->successor, candidate.token, s->successor);
  double sum = 0;
  for (int64_t i = 0; i < rank; i++) sum += (double)s->predecessor[i] * hidden[i] * s->successor[i];
  return candidate.logit + sum;
}

/* The place of the best candidate of row j, or -1 when a score is NaN. */
static int64_t choose(const DflashSelection *s, const DflashSelectCall *call, int64_t j, int64_t previous) {
  const DflashGeometry *g = &call->model->geometry;
  dflash_codebook_row(&call->model->predecessor, previous, s->predecessor);
  int64_t best = 0;
  double best_score = 0;
  for (int64_t c = 0; c < g->selector_top; c++) {
    const double value = score(s, call, s->candidates[j * g->selector_top + c], call->hidden + j * g->selector_rank);
    if (isnan(value)) return -1;
    if (c == 0 || value > best_score) {
      best = c;
      best_score = value;
    }
    if (call->scores) call->scores[j * g->selector_top + c] = (float)value;
  }
  return best;
}

static void give_tokens(const DflashSelection *s, const DflashSelectCall *call) {
  const int64_t top = call->model->geometry.selector_top;
  DflashTokens *tokens = call->tokens;
  for (int64_t j = 0; j < call->n_draft; j++) {
    tokens->chosen[j] = s->chosen[j];
    tokens->plain[j] = s->candidates[j * top].token;
    for (int64_t c = 0; c < top; c++) {
      if (tokens->candidates) tokens->candidates[j * top + c] = s->candidates[j * top + c].token;
      if (tokens->scores) tokens->scores[j * top + c] = call->scores[j * top + c];
    }
  }
}

DflashStatus dflash_select(const DflashSelection *s, const DflashSelectCall *call, DflashError *error) {
  const int64_t top = call->model->geometry.selector_top;
  Search search = {s, call};
  dflash_pool_run(call->model->pool, call->n_draft, 1, search_rows, &search);
  for (int64_t j = 0; j < call->n_draft; j++)
    if (s->found_nan[j])
      return dflash_error_set(error, DFLASH_NONFINITE, "blas: select: a logit of row %lld is NaN", (long long)j);
  int64_t previous = call->anchor_token;
  for (int64_t j = 0; j < call->n_draft; j++) {
    const int64_t best = choose(s, call, j, previous);
    if (best < 0)
      return dflash_error_set(error, DFLASH_NONFINITE, "blas: select: a score of row %lld is NaN", (long long)j);
    s->chosen[j] = s->candidates[j * top + best].token;
    previous = s->chosen[j];
  }
  give_tokens(s, call);
  return DFLASH_OK;
}
