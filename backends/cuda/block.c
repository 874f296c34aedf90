/* A block: checks, the host's inputs, one launch, its answers. */
#include <string.h>

#include "abi.h"
#include "sequence.h"

static DflashStatus check_sizes(const DflashSequence *s, const DflashBlockCall *c, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  const struct {
    const char *name;
    int64_t value, least, most;
  } fields[] = {{"flags", c->flags, 0, DFLASH_BLOCK_STAMP},
                {"rows", c->rows, 2, g->block},
                {"n_draft", c->n_draft, 1, c->rows - 1},
                {"head_width", c->head_width, g->selector_top, g->vocab},
                {"anchor_pos", c->anchor_pos, 0, CUDA_POSITION_MAX},
                {"anchor_token", c->anchor_token, 0, g->vocab - 1}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: block: %s is %lld, valid is %lld to %lld",
                              fields[i].name, (long long)fields[i].value, (long long)fields[i].least,
                              (long long)fields[i].most);
  return DFLASH_OK;
}

static DflashStatus check_call(const DflashSequence *s, const DflashBlockCall *c, DflashError *error) {
  DflashStatus status = cuda_check_struct(c, sizeof *c, "block: call", error);
  if (!status) status = check_sizes(s, c, error);
  if (!status) status = cuda_check_struct(c->tokens, sizeof *c->tokens, "block: tokens", error);
  if (!status) status = cuda_check_pointer(c->h, "block: h", error);
  if (!status) status = cuda_check_pointer(c->tokens->chosen, "block: chosen", error);
  if (!status) status = cuda_check_pointer(c->tokens->plain, "block: plain", error);
  if (status || s->model->head.rows > 0) return status;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: block: the model was opened without a head");
}

/* ---- what the block sees of the context ---- */

static int64_t window_of(const DflashSequence *s, int64_t layer) {
  const int64_t window = dflash_geometry_window(&s->model->geometry, layer);
  return window > 0 && window <= CUDA_POSITION_MAX ? window : 0;
}

/* First position that the block's first row may see, and the end of what all rows see. */
static int64_t sees_from(const DflashSequence *s, int64_t layer, int64_t anchor) {
  const int64_t window = window_of(s, layer), from = window > 0 ? anchor + 1 - window : s->first;
  return from > s->first ? from : s->first;
}

static int64_t sees_to(const DflashSequence *s, int64_t anchor) {
  return anchor < s->first + s->settled ? anchor : s->first + s->settled;
}

/* Every context row that the block's first row sees must still be there. */
static DflashStatus check_kept(const DflashSequence *s, int64_t anchor, DflashError *error) {
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t from = sees_from(s, layer, anchor), base = s->held[layer].base;
    if (from < sees_to(s, anchor) && from < base)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "cuda: layer %lld keeps positions from %lld on; a block at %lld needs %lld",
                              (long long)layer, (long long)base, (long long)anchor, (long long)from);
  }
  return DFLASH_OK;
}

static CudaVisible visible_of(const DflashSequence *s, int64_t layer, int64_t anchor) {
  const CudaHeld *held = &s->held[layer];
  const int64_t window = window_of(s, layer), end = sees_to(s, anchor), first = sees_from(s, layer, anchor);
  CudaVisible seen = {.k = held->k.at, .v = held->v.at, .from = INT64_MIN / 2};
  if (end <= first) return seen; /* no row */
  seen.first = first - held->base;
  seen.end = end - held->base;
  if (window > 0) seen.from = anchor + 1 - window - held->base;
  return seen;
}

static void write_inputs(const DflashSequence *s, const DflashBlockCall *call) {
  const CudaBlock *b = &s->block;
  const DflashGeometry *g = &s->model->geometry;
  char *host = s->inputs.at;
  const CudaInputs inputs = {.position = call->anchor_pos, .anchor_token = (int32_t)call->anchor_token};
  memcpy(host, &inputs, sizeof inputs);
  for (int64_t layer = 0; layer < g->layers; layer++) {
    const CudaVisible seen = visible_of(s, layer, call->anchor_pos);
    memcpy(host + (cuda_block_visible(b, layer) - b->inputs), &seen, sizeof seen);
  }
  const size_t row = (size_t)g->hidden * sizeof(float), rows = (size_t)call->rows;
  char *h = host + (b->h - b->inputs);
  memcpy(h, call->h, rows * row);
  memset(h + rows * row, 0, ((size_t)cuda_fast_input_rows(s->model, call->rows) - rows) * row);
}

/* ---- answers ---- */

static DflashStatus give_values(DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  CudaDevice *device = &s->model->device;
  const CudaBlock *b = &s->block;
  DflashStatus status = DFLASH_OK;
  if (call->logits)
    status = cuda_download(device, b->stages[DFLASH_STAGE_HEAD_LOGITS], call->logits,
                           (uint64_t)(call->n_draft * call->head_width) * sizeof(float), error);
  if (!status && call->selector_hidden)
    status = cuda_download(device, b->stages[DFLASH_STAGE_SELECTOR_HIDDEN], call->selector_hidden,
                           (uint64_t)(call->n_draft * s->model->geometry.selector_rank) * sizeof(float), error);
  return status;
}

DflashStatus cuda_give_tokens(const int32_t *words, int64_t n_draft, int64_t top, const DflashTokens *tokens,
                              DflashError *error) {
  const size_t rows = (size_t)n_draft, all = rows * (size_t)top;
  if (words[2 * rows + 2 * all] != 0)
    return dflash_error_set(error, DFLASH_NONFINITE, "cuda: select: a logit or a score is NaN");
  memcpy(tokens->chosen, words, rows * sizeof *words);
  memcpy(tokens->plain, words + rows, rows * sizeof *words);
  if (tokens->candidates) memcpy(tokens->candidates, words + 2 * rows, all * sizeof *words);
  if (tokens->scores) memcpy(tokens->scores, words + 2 * rows + all, all * sizeof *words);
  return DFLASH_OK;
}

static DflashStatus run(DflashSequence *s, const DflashBlockCall *call, CudaGraph *graph, DflashError *error) {
  CudaDevice *device = &s->model->device;
  s->block_rows = 0;
  DflashStatus status = CUDA_CALL(device, "launching a block", error, graph_launch, graph->exec, device->stream);
  if (!status) status = cuda_wait(device, "a block", error);
  if (status) return status;
  graph->used = ++s->blocks;
  s->last = graph;
  s->block_rows = call->rows;
  s->block_draft = call->n_draft;
  s->block_head = call->head_width;
  return DFLASH_OK;
}

DflashStatus cuda_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  CudaGraph *graph;
  DflashStatus status = check_call(s, call, error);
  if (!status) status = cuda_settle(s, error);
  if (!status) status = check_kept(s, call->anchor_pos, error);
  if (!status) status = cuda_graph_get(s, call, &graph, error);
  if (status) return status;
  write_inputs(s, call);
  status = run(s, call, graph, error);
  if (!status) status = give_values(s, call, error);
  if (status) return status;
  const int32_t *words = (const int32_t *)((const char *)s->inputs.at + s->host_result);
  return cuda_give_tokens(words, call->n_draft, s->model->geometry.selector_top, call->tokens, error);
}
