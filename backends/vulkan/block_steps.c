/* The steps of a block, from the host's inputs to the tokens. */
#include <math.h>

#include "attend.h"
#include "held.h"
#include "product.h"

typedef struct Build {
  DflashSequence *s;
  DflashModel *model;
  const DflashGeometry *g;
  const VulkanScratch *t;
  const VulkanBlockPlan *plan;
  VulkanSteps *steps;
  DflashError *error;
  DflashStatus status; /* of the first step that failed; later ones do nothing */
} Build;

static uint32_t ceil_div(int64_t a, int64_t b) { return (uint32_t)((a + b - 1) / b); }

/* The first `bytes` of a range from `offset` on. */
static VulkanRange piece(VulkanRange range, uint64_t offset, uint64_t bytes) {
  return (VulkanRange){range.buffer, range.offset + offset, bytes};
}

static void kernel(Build *b, int id, const uint32_t *constants, uint32_t count, VulkanDispatch dispatch) {
  if (!b->status) b->status = vulkan_steps_kernel(b->model, b->steps, id, constants, count, &dispatch, b->error);
}

#define KERNEL(b, id, stage_, layer_, push_, x_, y_, ...)               \
  kernel(b, VULKAN_KERNEL_##id, NULL, 0,                                \
         (VulkanDispatch){.ranges = (const VulkanRange[]){__VA_ARGS__}, \
                          .push = push_,                                \
                          .groups = {x_, y_, 1},                        \
                          .stage = stage_,                              \
                          .layer = (int32_t)(layer_)})

/* A stage's values are complete: a capturing sequence keeps them. */
static void keep(Build *b, int32_t stage, int64_t layer, VulkanRange values) {
  if (!b->s->capture || b->status) return;
  const VulkanCapture *c = &b->s->captured;
  const uint64_t bytes = (uint64_t)(b->plan->rows * vulkan_stage_width(b->g, stage)) * 4;
  vulkan_steps_copy(b->steps, piece(values, 0, bytes),
                    piece(c->stages[stage], (uint64_t)layer * c->layer_bytes[stage], bytes));
}

/* Products of one activation, one after the other; what they make of it is made once where it serves the next, too. */
static void products(Build *b, VulkanRange x, const VulkanProduct *list, int count) {
  int made = VULKAN_MADE_NOTHING;
  for (int i = 0; i < count && !b->status; i++) {
    VulkanProduct p = list[i];
    p.x = x;
    p.x_stride = p.matrix->cols;
    if (p.rows == 0) p.rows = b->plan->rows;
    if (p.out_rows == 0) p.out_rows = p.matrix->rows;
    p.y_stride = p.out_rows;
    p.words = b->t->words;
    p.scales = b->t->scales;
    p.largest = b->t->largest;
    p.parts = b->t->parts;
    p.factors = b->t->factors;
    p.found = b->t->found;
    p.most_splits = b->s->coop_splits;
    vulkan_product_follow(b->model, &p, &made);
    b->status = vulkan_steps_product(b->model, b->steps, &p, b->error);
  }
}

static void product(Build *b, const VulkanMatrix *matrix, VulkanRange x, VulkanRange y, int32_t stage, int64_t layer) {
  products(b, x, &(VulkanProduct){.matrix = matrix, .y = y, .stage = stage, .layer = (int32_t)layer}, 1);
  keep(b, stage, layer, y);
}

/* ---- parts of a layer ---- */

/* attn.kernel and attn.conv_in, or the MLP's */
static void conv_in(Build *b, const VulkanMatrix *matrix, VulkanRange base, int32_t kernel_stage, int64_t layer) {
  const DflashGeometry *g = b->g;
  const ConvPush push = {(uint32_t)b->plan->rows, (uint32_t)g->hidden, (uint32_t)g->conv_group,
                         (uint32_t)dflash_geometry_groups(g), (uint32_t)g->conv_kernel};
  product(b, matrix, b->t->norm, b->t->kernel, kernel_stage, layer);
  KERNEL(b, CONV, kernel_stage + 1, layer, &push, ceil_div(g->hidden, 256), push.rows, b->t->norm, b->t->kernel, base,
         b->t->conv);
  keep(b, kernel_stage + 1, layer, b->t->conv);
}

/* attn.out or mlp.out, and the norm of what follows */
static void out(Build *b, VulkanRange x, VulkanRange base, VulkanRange weight, int32_t stage, int64_t layer) {
  const DflashGeometry *g = b->g;
  const OutPush push = {(uint32_t)g->hidden, (uint32_t)g->conv_group, (uint32_t)dflash_geometry_groups(g),
                        (uint32_t)g->conv_kernel, (float)g->eps};
  KERNEL(b, OUT, stage, layer, &push, (uint32_t)b->plan->rows, 1, b->t->h, x, b->t->kernel, base, weight, b->t->norm);
  keep(b, stage, layer, b->t->h);
}

static void heads(Build *b, VulkanRange x, VulkanRange weight, VulkanRange y, int64_t count, int32_t stage,
                  int64_t layer) {
  const DflashGeometry *g = b->g;
  const HeadsPush push = {(uint32_t)count, (uint32_t)g->head_dim, (uint32_t)dflash_geometry_rotary(g, layer), 0,
                          (float)g->eps};
  KERNEL(b, HEADS, stage, layer, &push, push.heads, (uint32_t)b->plan->rows, x, weight, b->t->table, y);
  keep(b, stage, layer, y);
}

/* Rows of a layer's context that one binding shows, and the parts of attention that are theirs. */
typedef struct Segment {
  int64_t first, rows;
  uint32_t part, splits;
  bool last; /* followed by the part of the block itself */
} Segment;

/* The i-th of `count` segments, among which the splits are divided. A row can be in another part, and a sum in another
 * order, where the context's buffer has other segments. */
static Segment segment_at(const Build *b, const VulkanHeld *held, int64_t i, int64_t count) {
  const int64_t most = vulkan_held_segment(b->g, &b->model->device.traits), left = held->capacity - i * most;
  const int64_t part = i * b->s->splits / count, next = (i + 1) * b->s->splits / count;
  return (Segment){i * most, left < most ? left : most, (uint32_t)part, (uint32_t)(next - part), i + 1 == count};
}

static VulkanRange segment_range(const Build *b, const VulkanBuffer *buffer, const Segment *segment) {
  const uint64_t row = vulkan_held_row_bytes(b->g);
  if (segment->rows == 0) return b->t->k; /* nothing is read then, and something must be bound */
  return vulkan_buffer_range(buffer, (uint64_t)segment->first * row, (uint64_t)segment->rows * row);
}

static void attend(Build *b, int64_t layer, const Segment *segment) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const VulkanHeld *held = &b->s->held[layer];
  uint32_t constants[3];
  vulkan_attend_constants(b->model, b->plan->rows, constants);
  const uint32_t rows = (uint32_t)b->plan->rows;
  const AttendPush push = {.rows = rows,
                           .heads = (uint32_t)g->heads,
                           .kv_heads = (uint32_t)g->kv_heads,
                           .head_dim = (uint32_t)g->head_dim,
                           .splits = segment->splits,
                           .scale = (float)(1 / sqrt((double)g->head_dim)),
                           .row_first = (uint32_t)segment->first,
                           .row_count = (uint32_t)segment->rows,
                           .part_first = segment->part};
  const VulkanRange ranges[] = {
      t->q,
      segment_range(b, &held->k, segment),
      segment_range(b, &held->v, segment),
      t->k,
      t->v_proj,
      piece(t->visible, (uint64_t)layer * b->s->input.visible_stride, (uint64_t)(rows + 1) * 4),
      t->sums,
      t->mixes};
  kernel(b, VULKAN_KERNEL_ATTEND, constants, 3,
         (VulkanDispatch){.ranges = ranges,
                          .push = &push,
                          .groups = {push.kv_heads, segment->splits + segment->last,
                                     ceil_div(b->plan->rows * dflash_geometry_rep(g), constants[1])},
                          .stage = DFLASH_STAGE_ATTN_MIX,
                          .layer = (int32_t)layer});
}

static void attention(Build *b, int64_t layer) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const VulkanHeld *held = &b->s->held[layer];
  const int64_t segments =
      held->capacity == 0 ? 1 : ceil_div(held->capacity, vulkan_held_segment(g, &b->model->device.traits));
  for (int64_t i = 0; i < segments; i++) {
    const Segment segment = segment_at(b, held, i, segments);
    attend(b, layer, &segment);
  }
  const uint32_t rows = (uint32_t)b->plan->rows;
  const MixPush mix = {rows, (uint32_t)g->heads, (uint32_t)g->head_dim, b->s->splits + 1};
  KERNEL(b, MIX, DFLASH_STAGE_ATTN_MIX, layer, &mix, mix.heads, rows, t->sums, t->mixes, t->mix);
  keep(b, DFLASH_STAGE_ATTN_MIX, layer, t->mix);
}

static void attention_layer(Build *b, const VulkanLayer *l, int64_t layer) {
  const VulkanScratch *t = b->t;
  conv_in(b, &l->attn_kernel, l->attn_base, DFLASH_STAGE_ATTN_KERNEL, layer);
  const VulkanProduct qkv[] = {
      {.matrix = &l->q, .y = t->q_proj, .stage = DFLASH_STAGE_ATTN_Q_PROJ, .layer = (int32_t)layer},
      {.matrix = &l->k, .y = t->k_proj, .stage = DFLASH_STAGE_ATTN_K_PROJ, .layer = (int32_t)layer},
      {.matrix = &l->v, .y = t->v_proj, .stage = DFLASH_STAGE_ATTN_V_PROJ, .layer = (int32_t)layer}};
  products(b, t->conv, qkv, 3);
  for (int i = 0; i < 3; i++) keep(b, qkv[i].stage, layer, qkv[i].y);
  heads(b, t->q_proj, l->q_norm, t->q, b->g->heads, DFLASH_STAGE_ATTN_Q, layer);
  heads(b, t->k_proj, l->k_norm, t->k, b->g->kv_heads, DFLASH_STAGE_ATTN_K, layer);
  attention(b, layer);
  product(b, &l->o, t->mix, t->o_proj, DFLASH_STAGE_ATTN_O_PROJ, layer);
  out(b, t->o_proj, l->attn_base, l->post_norm, DFLASH_STAGE_ATTN_OUT, layer);
  keep(b, DFLASH_STAGE_MLP_NORM, layer, t->norm);
}

static void mlp_layer(Build *b, const VulkanLayer *l, int64_t layer) {
  const VulkanScratch *t = b->t;
  const int64_t elements = b->plan->rows * b->g->intermediate;
  const bool last = layer + 1 == b->g->layers;
  conv_in(b, &l->mlp_kernel, l->mlp_base, DFLASH_STAGE_MLP_KERNEL, layer);
  const VulkanProduct gate_up[] = {
      {.matrix = &l->gate, .y = t->gate, .stage = DFLASH_STAGE_MLP_GATE, .layer = (int32_t)layer},
      {.matrix = &l->up, .y = t->up, .stage = DFLASH_STAGE_MLP_UP, .layer = (int32_t)layer}};
  products(b, t->conv, gate_up, 2);
  for (int i = 0; i < 2; i++) keep(b, gate_up[i].stage, layer, gate_up[i].y);
  const ActPush push = {(uint32_t)elements};
  const uint32_t most = b->model->device.traits.max_groups[0], groups = ceil_div(elements, 256);
  KERNEL(b, ACT, DFLASH_STAGE_MLP_ACT, layer, &push, groups < most ? groups : most, 1, t->gate, t->up, t->act);
  keep(b, DFLASH_STAGE_MLP_ACT, layer, t->act);
  product(b, &l->down, t->act, t->down, DFLASH_STAGE_MLP_DOWN, layer);
  out(b, t->down, l->mlp_base, last ? b->model->norm : b->model->layers[layer + 1].input_norm, DFLASH_STAGE_MLP_OUT,
      layer);
  keep(b, last ? DFLASH_STAGE_FINAL_NORM : DFLASH_STAGE_ATTN_NORM, last ? 0 : layer + 1, t->norm);
}

/* ---- before and after the layers ---- */

static void begin(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const uint32_t rows = (uint32_t)b->plan->rows;
  const uint64_t words = t->anchor.offset + t->anchor.bytes, h_bytes = (uint64_t)(b->plan->rows * g->hidden) * 4;
  const VulkanRange all = vulkan_buffer_range(&b->s->device_scratch, 0, b->s->device_scratch.bytes);
  vulkan_steps_copy(b->steps, vulkan_buffer_range(&b->s->upload, 0, words), piece(all, 0, words));
  vulkan_steps_copy(b->steps, vulkan_buffer_range(&b->s->upload, b->s->input.h, h_bytes), piece(t->h, 0, h_bytes));
  vulkan_steps_fill(b->steps, t->flags, 0);
  const NormPush norm = {(uint32_t)g->hidden, (float)g->eps};
  KERNEL(b, NORM, DFLASH_STAGE_ATTN_NORM, 0, &norm, rows, 1, t->h, b->model->layers[0].input_norm, t->norm);
  keep(b, DFLASH_STAGE_ATTN_NORM, 0, t->norm);
  const RotationPush push = {rows, (uint32_t)g->head_dim / 2};
  KERNEL(b, ROTATION, DFLASH_STAGE_ATTN_NORM, 0, &push, ceil_div((int64_t)rows * push.half_dim, 64), 1, t->positions,
         b->model->inv_freq, t->table);
}

static void gather(Build *b, const VulkanMatrix *codebook, bool predecessor, VulkanRange y) {
  const DflashGeometry *g = b->g;
  const uint32_t drafts = (uint32_t)b->plan->n_draft, top = (uint32_t)g->selector_top;
  for (uint32_t i = 0; i < codebook->part_count; i++) {
    const VulkanPart *part = &codebook->parts[i];
    const GatherPush push = {drafts,
                             top,
                             (uint32_t)g->selector_rank,
                             (uint32_t)codebook->storage,
                             (uint32_t)part->first,
                             (uint32_t)part->rows,
                             predecessor};
    KERNEL(b, GATHER, DFLASH_STAGE_SELECT, 0, &push, drafts, top, part->weights, b->t->best_tokens, b->t->anchor, y);
  }
}

static void select_tokens(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const int32_t select = DFLASH_STAGE_SELECT;
  const uint32_t drafts = (uint32_t)b->plan->n_draft, top = (uint32_t)g->selector_top;
  const uint32_t chunks = ceil_div(b->plan->head_width, VULKAN_TOP_CHUNK);
  const TopPush first = {(uint32_t)b->plan->head_width, VULKAN_TOP_CHUNK, chunks, top};
  const TopMergePush merge = {chunks * top, top};
  const PairsPush pairs = {drafts, top, (uint32_t)g->selector_rank};
  const ChoosePush choose = {drafts, top, (uint32_t)g->selector_rank};
  KERNEL(b, TOP, select, 0, &first, chunks, drafts, t->logits, t->top_values, t->top_tokens, t->flags);
  KERNEL(b, TOP_MERGE, select, 0, &merge, drafts, 1, t->top_values, t->top_tokens, t->best_values, t->best_tokens);
  gather(b, &b->model->predecessor, true, t->predecessors);
  gather(b, &b->model->successor, false, t->successors);
  KERNEL(b, PAIRS, select, 0, &pairs, top, drafts, t->predecessors, t->successors, t->hidden, t->pairs);
  KERNEL(b, CHOOSE, select, 0, &choose, 1, 1, t->best_values, t->best_tokens, t->pairs, t->hidden, t->flags, t->result);
}

static void read_back(Build *b, VulkanRange from, uint64_t to, uint64_t bytes) {
  vulkan_steps_copy(b->steps, piece(from, 0, bytes), vulkan_buffer_range(&b->s->readback, to, bytes));
}

static void end(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const int64_t drafts = b->plan->n_draft;
  const VulkanProduct head[] = {{.matrix = &b->model->head,
                                 .y = t->logits,
                                 .rows = drafts,
                                 .x_first = 1,
                                 .out_rows = b->plan->head_width,
                                 .stage = DFLASH_STAGE_HEAD_LOGITS}};
  const VulkanProduct selector[] = {{.matrix = &b->model->selector,
                                     .y = t->hidden,
                                     .rows = drafts,
                                     .x_first = 1,
                                     .stage = DFLASH_STAGE_SELECTOR_HIDDEN}};
  products(b, t->norm, head, 1);
  products(b, t->norm, selector, 1);
  select_tokens(b);
  if (b->status) return;
  read_back(b, t->result, b->s->readback_result, (uint64_t)vulkan_result_words(drafts, g->selector_top) * 4);
  if (b->plan->logits) read_back(b, t->logits, b->s->readback_logits, (uint64_t)(drafts * b->plan->head_width) * 4);
  if (b->plan->hidden) read_back(b, t->hidden, b->s->readback_hidden, (uint64_t)(drafts * g->selector_rank) * 4);
}

DflashStatus vulkan_block_steps(DflashSequence *s, const VulkanBlockPlan *plan, VulkanSteps *steps,
                                DflashError *error) {
  Build b = {.s = s,
             .model = s->model,
             .g = &s->model->geometry,
             .t = &s->scratch,
             .plan = plan,
             .steps = steps,
             .error = error};
  begin(&b);
  for (int64_t layer = 0; layer < b.g->layers; layer++) {
    attention_layer(&b, &s->model->layers[layer], layer);
    mlp_layer(&b, &s->model->layers[layer], layer);
  }
  end(&b);
  return b.status;
}
