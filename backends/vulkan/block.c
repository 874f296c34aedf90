/* A block: checks, the host's inputs, the recorded command buffer for its sizes, one submission, its answers. */
#include "block.h"

#include <string.h>
#include <time.h>

#include "abi.h"
#include "base/error.h"

uint64_t vulkan_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static DflashStatus check_call(const DflashSequence *s, const DflashBlockCall *c, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  DflashStatus status = vulkan_check_struct(c, sizeof *c, "block", error);
  if (status) return status;
  const struct {
    const char *name;
    int64_t value, least, most;
  } fields[] = {
      {"rows", c->rows, 2, g->block},
      {"n_draft", c->n_draft, 1, c->rows - 1},
      {"head_width", c->head_width, g->selector_top, g->vocab},
      {"anchor_pos", c->anchor_pos, 0, VULKAN_POSITION_MAX},
      {"anchor_token", c->anchor_token, 0, g->vocab - 1},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: block: %s is %lld, valid is %lld to %lld",
                              fields[i].name, (long long)fields[i].value, (long long)fields[i].least,
                              (long long)fields[i].most);
  status = vulkan_check_struct(c->tokens, sizeof *c->tokens, "block: tokens", error);
  if (status) return status;
  if (!c->h || !c->tokens->chosen || !c->tokens->plain)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: block: no embeddings or no room for tokens");
  if (s->model->head.rows == 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: block: the model was opened without a head");
  return DFLASH_OK;
}

/* First position of the context that row `row` of a block at `anchor` sees in a layer, before the context's end. */
static int64_t sees_from(const DflashSequence *s, int64_t layer, int64_t anchor, int64_t row) {
  const int64_t window = dflash_geometry_window(&s->model->geometry, layer);
  const int64_t from = window > 0 && window <= VULKAN_POSITION_MAX ? anchor + row + 1 - window : s->first;
  return from > s->first ? from : s->first;
}

static int64_t context_end(const DflashSequence *s, int64_t anchor) {
  return anchor < s->first + s->settled ? anchor : s->first + s->settled;
}

/* Every context row that the block's first row sees must still be there. */
static DflashStatus check_kept(const DflashSequence *s, int64_t anchor, DflashError *error) {
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t from = sees_from(s, layer, anchor, 0), kept = s->held[layer].kept;
    if (from < context_end(s, anchor) && from < kept)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "vulkan: layer %lld keeps positions from %lld on; a block at %lld needs %lld",
                              (long long)layer, (long long)kept, (long long)anchor, (long long)from);
  }
  return DFLASH_OK;
}

static void *input_at(const DflashSequence *s, uint64_t offset) { return (char *)s->upload.mapped + offset; }

/* Mapped memory is only written: a read of it is slow where it is not cached. A block before all rows that the buffer
 * holds sees none: begin and end are 0. */
static void write_visible(const DflashSequence *s, const DflashBlockCall *call, int64_t layer) {
  uint32_t *visible = input_at(s, s->input.visible + (uint64_t)layer * s->input.visible_stride);
  const int64_t base = s->held[layer].base, settled = context_end(s, call->anchor_pos);
  const int64_t end = settled > base ? settled - base : 0;
  visible[0] = (uint32_t)end;
  for (int64_t row = 0; row < call->rows; row++) {
    const int64_t from = sees_from(s, layer, call->anchor_pos, row) - base;
    visible[1 + row] = (uint32_t)(from < 0 ? 0 : from < end ? from : end);
  }
}

static DflashStatus write_inputs(const DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  float *positions = input_at(s, s->input.positions);
  const int32_t anchor = (int32_t)call->anchor_token;
  for (int64_t row = 0; row < call->rows; row++) positions[row] = (float)(call->anchor_pos + row);
  for (int64_t layer = 0; layer < g->layers; layer++) write_visible(s, call, layer);
  memcpy(input_at(s, s->input.anchor), &anchor, sizeof anchor);
  memcpy(input_at(s, s->input.h), call->h, (size_t)(call->rows * g->hidden) * sizeof(float));
  return vulkan_buffer_flush(&s->model->device, &s->upload, error);
}

/* ---- recorded blocks ---- */

static bool plan_fits(const DflashSequence *s, const VulkanBlockPlan *plan, const DflashBlockCall *call) {
  return plan->open && plan->generation == s->generation && plan->rows == call->rows &&
         plan->n_draft == call->n_draft && plan->head_width == call->head_width && plan->flags == call->flags &&
         plan->logits == (call->logits != NULL) && plan->hidden == (call->selector_hidden != NULL);
}

/* The recorded one for this call, else the one to record over: not open, out of date, or longest unused. */
static VulkanBlockPlan *find_plan(DflashSequence *s, const DflashBlockCall *call) {
  VulkanBlockPlan *oldest = &s->plans[0];
  for (int i = 0; i < VULKAN_PLANS; i++)
    if (plan_fits(s, &s->plans[i], call)) return &s->plans[i];
  for (int i = 0; i < VULKAN_PLANS; i++) {
    if (!s->plans[i].open || s->plans[i].generation != s->generation) return &s->plans[i];
    if (s->plans[i].used < oldest->used) oldest = &s->plans[i];
  }
  return oldest;
}

static void drop_plan(DflashSequence *s, VulkanBlockPlan *plan) {
  vulkan_plan_close(&s->model->device, &plan->plan);
  if (s->last == plan) s->last = NULL;
  *plan = (VulkanBlockPlan){0};
}

static DflashStatus record(DflashSequence *s, const DflashBlockCall *call, VulkanBlockPlan *plan, DflashError *error) {
  VulkanSteps steps = {0};
  drop_plan(s, plan);
  plan->rows = call->rows;
  plan->n_draft = call->n_draft;
  plan->head_width = call->head_width;
  plan->flags = call->flags;
  plan->logits = call->logits != NULL;
  plan->hidden = call->selector_hidden != NULL;
  plan->generation = s->generation;
  DflashStatus status = vulkan_block_steps(s, plan, &steps, error);
  if (!status && steps.failed)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for the steps of a block");
  if (!status)
    status = vulkan_plan_open(&s->model->device, &steps, (call->flags & DFLASH_BLOCK_STAMP) != 0,
                              s->model->options.skip_barrier, &plan->plan, error);
  vulkan_steps_close(&steps);
  plan->open = status == DFLASH_OK;
  if (status) drop_plan(s, plan);
  return status;
}

/* ---- answers ---- */

static const void *answer_at(const DflashSequence *s, uint64_t offset) {
  return (const char *)s->readback.mapped + offset;
}

static void give_values(const DflashSequence *s, const DflashBlockCall *call) {
  if (call->logits)
    memcpy(call->logits, answer_at(s, s->readback_logits), (size_t)(call->n_draft * call->head_width) * sizeof(float));
  if (call->selector_hidden)
    memcpy(call->selector_hidden, answer_at(s, s->readback_hidden),
           (size_t)(call->n_draft * s->model->geometry.selector_rank) * sizeof(float));
}

static DflashStatus give_tokens(const DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  const size_t rows = (size_t)call->n_draft, all = rows * (size_t)s->model->geometry.selector_top;
  const int32_t *words = answer_at(s, s->readback_result);
  memcpy(call->tokens->chosen, words, rows * sizeof *words);
  memcpy(call->tokens->plain, words + rows, rows * sizeof *words);
  if (call->tokens->candidates) memcpy(call->tokens->candidates, words + 2 * rows, all * sizeof *words);
  if (call->tokens->scores) memcpy(call->tokens->scores, words + 2 * rows + all, all * sizeof *words);
  if (words[2 * rows + 2 * all] == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_NONFINITE, "vulkan: select: a logit or a score is NaN");
}

DflashStatus vulkan_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = check_call(s, call, error);
  if (!status) status = vulkan_settle(s, error);
  if (!status) status = check_kept(s, call->anchor_pos, error);
  if (status) return status;
  VulkanBlockPlan *plan = find_plan(s, call);
  if (!plan_fits(s, plan, call)) status = record(s, call, plan, error);
  if (!status) status = write_inputs(s, call, error);
  if (status) return status;
  const uint64_t begin = vulkan_now_ns();
  status = vulkan_plan_run(&s->model->device, &plan->plan, error);
  s->block_ns = vulkan_now_ns() - begin;
  s->block_rows = 0;
  if (!status) status = vulkan_buffer_invalidate(&s->model->device, &s->readback, error);
  if (status) return status;
  plan->used = ++s->blocks;
  s->last = plan;
  s->block_rows = call->rows;
  s->block_draft = call->n_draft;
  s->block_head = call->head_width;
  give_values(s, call);
  return give_tokens(s, call, error);
}
