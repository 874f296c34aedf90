/* The steps of a block, from the host's inputs to the tokens. */
#include <math.h>

#include <string.h>

#include "attend.h"
#include "fragments.h"
#include "held.h"
#include "product.h"
#include "rows.h"
#include "select.h"
#include "units.h"

typedef struct Build {
  DflashSequence *s;
  DflashModel *model;
  const DflashGeometry *g;
  const VulkanScratch *t;
  const VulkanBlockPlan *plan;
  VulkanSteps *steps;
  VulkanMade made[VULKAN_FORMS]; /* of the activation that was made last: in scratch.fragments */
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

static uint32_t row_constants(const Build *b, int id, uint32_t constants[VULKAN_MAX_CONSTANTS]) {
  return vulkan_row_constants(&b->model->device.traits, b->g, id, constants);
}

/* One with constants of rows, or with none. */
static void row_kernel(Build *b, int id, VulkanDispatch dispatch) {
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = row_constants(b, id, constants);
  kernel(b, id, constants, count, dispatch);
}

/* Workgroups along x of a kernel that shares a row among them. */
static uint32_t row_groups(const Build *b, int id, int64_t width) {
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  (void)row_constants(b, id, constants);
  return vulkan_row_groups(constants, width);
}

#define KERNEL(b, id, stage_, layer_, push_, x_, y_, ...)                   \
  row_kernel(b, VULKAN_KERNEL_##id,                                         \
             (VulkanDispatch){.ranges = (const VulkanRange[]){__VA_ARGS__}, \
                              .push = push_,                                \
                              .groups = {x_, y_, 1},                        \
                              .stage = stage_,                              \
                              .layer = (int32_t)(layer_)})

/* The kernel that makes a stage's values, with what the plain one binds; where it also prepares them, products find
 * what they need. `dispatch.stage` is whose time it takes. */
static void make(Build *b, int32_t stage, int64_t layer, VulkanDispatch dispatch) {
  const VulkanMaker maker = vulkan_maker(b->model, stage, layer);
  VulkanRange ranges[VULKAN_MAX_BINDINGS];
  memcpy(ranges, dispatch.ranges, vulkan_kernel_info(maker.plain)->bindings * sizeof *ranges);
  dispatch.ranges = ranges;
  for (int i = 0; i < VULKAN_FORMS; i++)
    b->made[i] = maker.forms[i] ? vulkan_product_makes(b->model, maker.forms[i]) : (VulkanMade){0};
  if (maker.forms[0]) vulkan_maker_ranges(b->model, &maker, b->t, ranges);
  if (maker.plain == VULKAN_KERNEL_MIX) dispatch.groups[0] = vulkan_mix_groups(b->g, &maker);
  kernel(b, maker.kernel, maker.constants, maker.count, dispatch);
}

#define MAKE(b, made_stage, made_layer, stage_, layer_, push_, x_, y_, ...) \
  make(b, made_stage, made_layer,                                           \
       (VulkanDispatch){.ranges = (const VulkanRange[]){__VA_ARGS__},       \
                        .push = push_,                                      \
                        .groups = {x_, y_, 1},                              \
                        .stage = stage_,                                    \
                        .layer = (int32_t)(layer_)})

/* A stage's values are complete: a capturing sequence keeps them. */
static void keep(Build *b, int32_t stage, int64_t layer, VulkanRange values) {
  if (!b->s->capture || b->status) return;
  const VulkanCapture *c = &b->s->captured;
  const uint64_t bytes = (uint64_t)(b->plan->rows * vulkan_stage_width(b->g, stage)) * 4;
  vulkan_steps_copy(b->steps, piece(values, 0, bytes),
                    piece(c->stages[stage], (uint64_t)layer * c->layer_bytes[stage], bytes));
}

/* What a product makes of its activation, or finds that was made. */
static void find_fragments(Build *b, VulkanProduct *p) {
  const VulkanMade wanted = vulkan_product_makes(b->model, p->matrix);
  const int at = vulkan_made_serves(&b->made[1], &wanted) ? 1 : 0;
  p->fragments = b->t->fragments[at];
  p->factors = b->t->factors[at];
  vulkan_product_follow(b->model, p, &b->made[at]);
}

/* Up to VULKAN_AT_ONCE products of the activation that was made last, one after the other; what they make of it is made
 * once where it serves the next, too. */
static void products(Build *b, VulkanRange x, const VulkanProduct *list, int count) {
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
    p.found = b->t->found[i];
    p.arrivals = vulkan_units_arrivals(b->s, i);
    p.most_rows = b->g->block;
    p.apart = vulkan_splits_apart(b->model, p.stage, p.layer) > 1;
    find_fragments(b, &p);
    b->status = vulkan_steps_product(b->model, b->steps, &p, b->error);
  }
}

/* Its values are complete when the kernel that reads them has run: sums of splits may be left for it. */
static void product(Build *b, const VulkanMatrix *matrix, VulkanRange x, VulkanRange y, int32_t stage, int64_t layer) {
  products(b, x, &(VulkanProduct){.matrix = matrix, .y = y, .stage = stage, .layer = (int32_t)layer}, 1);
}

/* ---- parts of a layer ---- */

/* attn.kernel and attn.conv_in, or the MLP's */
static void conv_in(Build *b, const VulkanMatrix *matrix, VulkanRange base, int32_t kernel_stage, int64_t layer) {
  const DflashGeometry *g = b->g;
  const ConvPush push = {(uint32_t)g->hidden, (uint32_t)dflash_geometry_groups(g)};
  product(b, matrix, b->t->norm, b->t->kernel, kernel_stage, layer);
  MAKE(b, kernel_stage + 1, layer, kernel_stage + 1, layer, &push, row_groups(b, VULKAN_KERNEL_CONV, g->hidden),
       (uint32_t)b->plan->rows, b->t->norm, b->t->kernel, base, b->t->conv);
  keep(b, kernel_stage, layer, b->t->kernel);
  keep(b, kernel_stage + 1, layer, b->t->conv);
}

/* attn.out or mlp.out, of the product of the stage before, and the norm of what follows: the head and the selector take
 * no anchor. */
static void out(Build *b, VulkanRange x, VulkanRange base, VulkanRange weight, int32_t stage, int64_t layer,
                int32_t norm_stage, int64_t norm_layer) {
  const DflashGeometry *g = b->g;
  const OutPush push = {(uint32_t)g->hidden, (uint32_t)dflash_geometry_groups(g), 1 / (float)g->hidden, (float)g->eps,
                        norm_stage == DFLASH_STAGE_FINAL_NORM};
  MAKE(b, norm_stage, norm_layer, stage, layer, &push, (uint32_t)b->plan->rows, 1, b->t->h, x, b->t->kernel, base,
       weight, b->t->norm);
  keep(b, stage - 1, layer, x);
  keep(b, stage, layer, b->t->h);
  keep(b, norm_stage, norm_layer, b->t->norm);
}

/* attn.q and attn.k; their products and v's are complete then. */
static void heads(Build *b, const VulkanLayer *l, int64_t layer) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const HeadsPush push = {.heads = (uint32_t)g->heads,
                          .others = (uint32_t)g->kv_heads,
                          .head_dim = (uint32_t)g->head_dim,
                          .rotate = (uint32_t)dflash_geometry_rotary(g, layer),
                          .inverse = 1 / (float)g->head_dim,
                          .eps = (float)g->eps};
  const VulkanMaker maker = vulkan_heads_maker(b->model, layer);
  VulkanRange ranges[VULKAN_MAX_BINDINGS] = {t->q_proj, l->q_norm, t->table, t->q, t->k_proj, l->k_norm, t->k};
  if (maker.kernel != maker.plain) vulkan_heads_ranges(&maker, t, ranges);
  const uint32_t v_heads = maker.splits[2] > 1 ? push.others : 0;
  kernel(b, maker.kernel, maker.constants, maker.count,
         (VulkanDispatch){.ranges = ranges,
                          .push = &push,
                          .groups = {push.heads + push.others + v_heads, (uint32_t)b->plan->rows, 1},
                          .stage = DFLASH_STAGE_ATTN_Q,
                          .layer = (int32_t)layer});
  keep(b, DFLASH_STAGE_ATTN_Q_PROJ, layer, t->q_proj);
  keep(b, DFLASH_STAGE_ATTN_K_PROJ, layer, t->k_proj);
  keep(b, DFLASH_STAGE_ATTN_V_PROJ, layer, t->v_proj);
  keep(b, DFLASH_STAGE_ATTN_Q, layer, t->q);
  keep(b, DFLASH_STAGE_ATTN_K, layer, t->k);
}

/* Rows of a layer's context that one binding shows; the splits that share what is seen of them, and how many parts they
 * are at most. */
typedef struct Segment {
  int64_t first, rows;
  uint32_t splits, parts;
} Segment;

/* The i-th of `count` segments, among which the splits are divided. A row can be in another part, and a sum in another
 * order, where the context's buffer has other segments. */
static Segment segment_at(const Build *b, int64_t layer, int64_t i, int64_t count) {
  const int64_t capacity = b->s->held[layer].capacity, window = dflash_geometry_window(b->g, layer);
  const int64_t most = vulkan_held_segment(b->g, &b->model->device.traits), left = capacity - i * most;
  const int64_t rows = left < most ? left : most, seen = window > 0 && window <= rows ? window - 1 : rows;
  const uint32_t splits = (uint32_t)((i + 1) * b->s->splits / count - i * b->s->splits / count);
  return (Segment){i * most, rows, splits, vulkan_attend_parts(seen, splits)};
}

static VulkanRange segment_range(const Build *b, const VulkanBuffer *buffer, const Segment *segment) {
  const uint64_t row = vulkan_held_row_bytes(b->g);
  if (segment->rows == 0) return b->t->k; /* nothing is read then, and something must be bound */
  return vulkan_buffer_range(buffer, (uint64_t)segment->first * row, (uint64_t)segment->rows * row);
}

/* Parts of a segment from `first` on, and in the last one the block's own. */
static void attend(Build *b, int64_t layer, const Segment *segment, uint32_t first, uint32_t parts) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const VulkanHeld *held = &b->s->held[layer];
  uint32_t constants[VULKAN_MAX_CONSTANTS], count;
  const int id = vulkan_attend_kernel(b->model, b->plan->rows, constants, &count);
  const uint32_t rows = (uint32_t)b->plan->rows;
  const AttendPush push = {.rows = rows,
                           .heads = (uint32_t)g->heads,
                           .kv_heads = (uint32_t)g->kv_heads,
                           .splits = segment->splits,
                           .scale = (float)(1 / sqrt((double)g->head_dim)),
                           .row_first = (uint32_t)segment->first,
                           .row_count = (uint32_t)segment->rows,
                           .part_first = first,
                           .parts = parts};
  const VulkanRange ranges[] = {
      t->q,
      segment_range(b, &held->k, segment),
      segment_range(b, &held->v, segment),
      t->k,
      t->v_proj,
      piece(t->visible, (uint64_t)layer * b->s->input.visible_stride, (uint64_t)(rows + 1) * 4),
      t->sums,
      t->mixes};
  const bool last = first + segment->parts + 1 == parts;
  kernel(b, id, constants, count,
         (VulkanDispatch){.ranges = ranges,
                          .push = &push,
                          .groups = {push.kv_heads, segment->parts + last, vulkan_attend_tiles(b->model, rows)},
                          .stage = DFLASH_STAGE_ATTN_MIX,
                          .layer = (int32_t)layer});
}

static void mix(Build *b, int64_t layer, uint32_t parts) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const MixPush push = {(uint32_t)b->plan->rows, (uint32_t)g->heads, (uint32_t)g->head_dim, parts};
  MAKE(b, DFLASH_STAGE_ATTN_MIX, layer, DFLASH_STAGE_ATTN_MIX, layer, &push, push.heads, push.rows, t->sums, t->mixes,
       t->mix);
}

static void attention(Build *b, int64_t layer) {
  const int64_t capacity = b->s->held[layer].capacity;
  const int64_t segments = capacity == 0 ? 1 : ceil_div(capacity, vulkan_held_segment(b->g, &b->model->device.traits));
  uint32_t parts = 1, first = 0;
  for (int64_t i = 0; i < segments; i++) parts += segment_at(b, layer, i, segments).parts;
  for (int64_t i = 0; i < segments; i++) {
    const Segment segment = segment_at(b, layer, i, segments);
    attend(b, layer, &segment, first, parts);
    first += segment.parts;
  }
  mix(b, layer, parts);
  keep(b, DFLASH_STAGE_ATTN_MIX, layer, b->t->mix);
}

static void attention_layer(Build *b, const VulkanLayer *l, int64_t layer) {
  const VulkanScratch *t = b->t;
  conv_in(b, &l->attn_kernel, l->attn_base, DFLASH_STAGE_ATTN_KERNEL, layer);
  const VulkanProduct qkv[] = {
      {.matrix = &l->q, .y = t->q_proj, .stage = DFLASH_STAGE_ATTN_Q_PROJ, .layer = (int32_t)layer},
      {.matrix = &l->k, .y = t->k_proj, .stage = DFLASH_STAGE_ATTN_K_PROJ, .layer = (int32_t)layer},
      {.matrix = &l->v, .y = t->v_proj, .stage = DFLASH_STAGE_ATTN_V_PROJ, .layer = (int32_t)layer}};
  products(b, t->conv, qkv, 3);
  heads(b, l, layer);
  attention(b, layer);
  product(b, &l->o, t->mix, t->o_proj, DFLASH_STAGE_ATTN_O_PROJ, layer);
  out(b, t->o_proj, l->attn_base, l->post_norm, DFLASH_STAGE_ATTN_OUT, layer, DFLASH_STAGE_MLP_NORM, layer);
}

static void mlp_layer(Build *b, const VulkanLayer *l, int64_t layer) {
  const VulkanScratch *t = b->t;
  int64_t norm_layer = layer;
  const int32_t norm_stage = vulkan_stage_after(b->g, &norm_layer);
  conv_in(b, &l->mlp_kernel, l->mlp_base, DFLASH_STAGE_MLP_KERNEL, layer);
  const VulkanProduct gate_up[] = {
      {.matrix = &l->gate, .y = t->gate, .stage = DFLASH_STAGE_MLP_GATE, .layer = (int32_t)layer},
      {.matrix = &l->up, .y = t->up, .stage = DFLASH_STAGE_MLP_UP, .layer = (int32_t)layer}};
  products(b, t->conv, gate_up, 2);
  const ActPush push = {(uint32_t)b->g->intermediate};
  const uint32_t most = b->model->device.traits.max_groups[0];
  const uint32_t groups = row_groups(b, VULKAN_KERNEL_ACT, b->g->intermediate);
  MAKE(b, DFLASH_STAGE_MLP_ACT, layer, DFLASH_STAGE_MLP_ACT, layer, &push, groups < most ? groups : most,
       (uint32_t)b->plan->rows, t->gate, t->up, t->act);
  for (int i = 0; i < 2; i++) keep(b, gate_up[i].stage, layer, gate_up[i].y);
  keep(b, DFLASH_STAGE_MLP_ACT, layer, t->act);
  product(b, &l->down, t->act, t->down, DFLASH_STAGE_MLP_DOWN, layer);
  const bool last = norm_stage == DFLASH_STAGE_FINAL_NORM;
  out(b, t->down, l->mlp_base, last ? b->model->norm : b->model->layers[norm_layer].input_norm, DFLASH_STAGE_MLP_OUT,
      layer, norm_stage, norm_layer);
}

/* ---- before and after the layers ---- */

/* Inputs in the device's own memory are read where the host wrote them. From the host's memory the norm takes h itself
 * and waits for no copy; the rotation, which does, runs beside the first product. */
static void begin(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const uint32_t rows = (uint32_t)b->plan->rows;
  const uint64_t words = t->anchor.offset + t->anchor.bytes, h_bytes = (uint64_t)(b->plan->rows * g->hidden) * 4;
  const VulkanRange all = vulkan_buffer_range(&b->s->device_scratch, 0, b->s->device_scratch.bytes);
  if (!b->s->upload.local)
    vulkan_steps_copy(b->steps, vulkan_buffer_range(&b->s->upload, 0, words), piece(all, 0, words));
  vulkan_steps_fill(b->steps, t->flags, 0);
  const NormPush norm = {(uint32_t)g->hidden, 1 / (float)g->hidden, (float)g->eps};
  MAKE(b, DFLASH_STAGE_ATTN_NORM, 0, DFLASH_STAGE_ATTN_NORM, 0, &norm, rows, 1,
       vulkan_buffer_range(&b->s->upload, b->s->input.h, h_bytes), b->model->layers[0].input_norm, t->norm, t->h);
  keep(b, DFLASH_STAGE_ATTN_NORM, 0, t->norm);
  const RotationPush push = {(uint32_t)g->head_dim / 2};
  KERNEL(b, ROTATION, DFLASH_STAGE_ATTN_KERNEL, 0, &push, ceil_div(push.half_dim, 64), rows, t->positions,
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
    KERNEL(b, GATHER, DFLASH_STAGE_SELECT, 0, &push, drafts, top, part->weights, b->t->best, b->t->anchor, y);
  }
}

/* What `pairs` binds of a codebook, and how it is stored: the codebook itself, where one binding shows all of it. */
static VulkanRange rows_of(Build *b, const VulkanMatrix *codebook, bool predecessor, VulkanRange gathered,
                           uint32_t *form) {
  *form = (uint32_t)codebook->storage;
  if (codebook->part_count == 1) return codebook->parts[0].weights;
  *form = VULKAN_GATHERED;
  gather(b, codebook, predecessor, gathered);
  return gathered;
}

static void pairs(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const PairsPush push = {(uint32_t)b->plan->n_draft, (uint32_t)g->selector_top, (uint32_t)g->selector_rank,
                          (uint32_t)g->vocab};
  uint32_t constants[4] = {[0] = vulkan_select_threads(&b->model->device.traits), [3] = push.rank % 8 == 0};
  const VulkanRange before = rows_of(b, &b->model->predecessor, true, t->predecessors, &constants[1]);
  const VulkanRange after = rows_of(b, &b->model->successor, false, t->successors, &constants[2]);
  kernel(b, VULKAN_KERNEL_PAIRS, constants, 4,
         (VulkanDispatch){.ranges = (const VulkanRange[]){before, after, t->best, t->anchor, t->hidden, t->pairs,
                                                          t->flags, t->result},
                          .push = &push,
                          .groups = {push.top, push.rows, 1},
                          .stage = DFLASH_STAGE_SELECT});
}

static void select_tokens(Build *b) {
  const VulkanTraits *traits = &b->model->device.traits;
  const VulkanScratch *t = b->t;
  const uint32_t threads = vulkan_select_threads(traits);
  const TopPush push = {(uint32_t)b->plan->head_width, vulkan_top_chunk(traits),
                        (uint32_t)vulkan_top_chunks(traits, b->plan->head_width), (uint32_t)b->g->selector_top};
  kernel(b, VULKAN_KERNEL_TOP, &threads, 1,
         (VulkanDispatch){.ranges = (const VulkanRange[]){t->logits, t->top_entries, t->best, t->flags},
                          .push = &push,
                          .groups = {push.chunks, (uint32_t)b->plan->n_draft, 1},
                          .stage = DFLASH_STAGE_SELECT});
  pairs(b);
}

static void read_back(Build *b, VulkanRange from, uint64_t to, uint64_t bytes) {
  vulkan_steps_copy(b->steps, piece(from, 0, bytes), vulkan_buffer_range(&b->s->readback, to, bytes));
}

static void end(Build *b) {
  const DflashGeometry *g = b->g;
  const VulkanScratch *t = b->t;
  const int64_t drafts = b->plan->n_draft;
  const VulkanProduct last[] = {{.matrix = &b->model->head,
                                 .y = t->logits,
                                 .rows = drafts,
                                 .x_first = 1,
                                 .out_rows = b->plan->head_width,
                                 .stage = DFLASH_STAGE_HEAD_LOGITS},
                                {.matrix = &b->model->selector,
                                 .y = t->hidden,
                                 .rows = drafts,
                                 .x_first = 1,
                                 .stage = DFLASH_STAGE_SELECTOR_HIDDEN}};
  products(b, t->norm, last, 2);
  select_tokens(b);
  if (b->status) return;
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
