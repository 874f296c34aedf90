#include "settle.h"

#include <string.h>

#include "base/error.h"
#include "product.h"
#include "rows.h"
#include "units.h"

/* Values of one piece; positions and taps lie in the upload buffer at the same offsets. */
typedef struct Scratch {
  VulkanRange positions, taps, table, fc, norm, k_proj, words, scales, largest, fragments, factors;
  VulkanRange found[2]; /* of products that may run at once: K and V */
} Scratch;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows of a piece: a binding shows its widest value, the parts of it and its rows of K, and its dispatches are no
 * larger than allowed. At least 1, since one row fits. */
int64_t vulkan_settle_rows(DflashModel *model) {
  const DflashGeometry *g = &model->geometry;
  const VulkanTraits *t = &model->device.traits;
  const int64_t shown = (int64_t)(t->max_binding / 4), groups = t->max_groups[0];
  int64_t rows = smaller(VULKAN_SETTLE_ROWS, shown / dflash_geometry_tap_width(g));
  rows = smaller(rows, shown / (g->kv_heads * g->head_dim) - vulkan_held_period(g, t) + 1);
  rows = vulkan_units_most_rows(model, smaller(rows, smaller(groups, t->max_groups[1])));
  return rows < 1 ? 1 : rows;
}

/* Lays the scratch out in its buffer, which may not be there yet; its bytes. */
static uint64_t lay_out(const DflashSequence *s, Scratch *scratch) {
  const DflashGeometry *g = &s->model->geometry;
  const int64_t tap_width = dflash_geometry_tap_width(g), rows = s->settle_rows;
  const VulkanUnitsBytes *units = &s->settle_units;
  const uint64_t row = (uint64_t)rows * 4;
  const struct {
    VulkanRange *range;
    uint64_t bytes;
  } places[] = {
      {&scratch->positions, row},
      {&scratch->taps, row * (uint64_t)tap_width},
      {&scratch->table, row * (uint64_t)g->head_dim},
      {&scratch->fc, row * (uint64_t)g->hidden},
      {&scratch->norm, row * (uint64_t)g->hidden},
      {&scratch->k_proj, row * (uint64_t)(g->kv_heads * g->head_dim)},
      {&scratch->words, row * (uint64_t)(tap_width / 4 + 1)},
      {&scratch->scales, row * (uint64_t)(tap_width / 32 + 1)},
      {&scratch->largest, row},
      {&scratch->fragments, units->words},
      {&scratch->factors, units->factors},
      {&scratch->found[0], units->found},
      {&scratch->found[1], units->found},
  };
  uint64_t bytes = 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const uint64_t offset = vulkan_place(&s->model->device, &bytes, places[i].bytes);
    *places[i].range = (VulkanRange){s->settle_scratch.buffer, offset, places[i].bytes};
  }
  return bytes;
}

DflashStatus vulkan_settle_open(DflashSequence *s, DflashError *error) {
  VulkanDevice *device = &s->model->device;
  Scratch scratch;
  if (s->settle_scratch.buffer) return DFLASH_OK;
  const uint64_t bytes = lay_out(s, &scratch);
  DflashStatus status = vulkan_buffer_open(device, VULKAN_UPLOAD, scratch.taps.offset + scratch.taps.bytes,
                                           "the taps of a push", &s->settle_upload, error);
  if (!status)
    status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, bytes, "the projection of a push", &s->settle_scratch, error);
  if (status) vulkan_buffer_close(device, &s->settle_upload);
  return status;
}

/* ---- the steps of a piece ---- */

typedef struct Piece {
  VulkanChange *change;
  DflashModel *model;
  const DflashGeometry *g;
  Scratch t;
  int64_t rows, position;
  const VulkanPushValues *values;
  int64_t values_first; /* row of the values that the piece starts at */
  VulkanSteps steps;
  DflashError *error;
  DflashStatus status; /* of the first step that failed; later ones do nothing */
  VulkanMade made;     /* of context.norm already: product.h */
} Piece;

static VulkanRange part(VulkanRange range, uint64_t offset, uint64_t bytes) {
  return (VulkanRange){range.buffer, range.offset + offset, bytes};
}

/* A stage's rows are complete: a captured push keeps them. */
static void capture(Piece *p, int32_t stage, int64_t layer, VulkanRange rows) {
  if (!p->values || p->status) return;
  const uint64_t row = (uint64_t)vulkan_stage_width(p->g, stage) * 4, bytes = (uint64_t)p->rows * row;
  vulkan_steps_copy(&p->steps, part(rows, 0, bytes),
                    part(p->values->stages[stage],
                         (uint64_t)layer * p->values->layer_bytes[stage] + (uint64_t)p->values_first * row, bytes));
}

static void kernel(Piece *p, int id, VulkanDispatch dispatch) {
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = vulkan_row_constants(&p->model->device.traits, p->g, id, constants);
  if (!p->status) p->status = vulkan_steps_kernel(p->model, &p->steps, id, constants, count, &dispatch, p->error);
}

/* `which`: of the products that may run at once. */
static void product(Piece *p, VulkanProduct product, int which) {
  product.rows = p->rows;
  product.x_stride = product.matrix->cols;
  product.out_rows = product.y_stride = product.matrix->rows;
  product.words = p->t.words;
  product.scales = p->t.scales;
  product.largest = p->t.largest;
  product.fragments = p->t.fragments;
  product.factors = p->t.factors;
  product.found = p->t.found[which];
  product.arrivals = vulkan_units_arrivals(p->change->s, which);
  product.most_rows = p->change->s->settle_rows;
  if (!p->status) p->status = vulkan_steps_product(p->model, &p->steps, &product, p->error);
}

/* A product of context.norm: what one makes of it serves those after it. */
static void project(Piece *p, const VulkanMatrix *matrix, VulkanRange y, int64_t y_first, int32_t stage, int64_t layer,
                    int which) {
  VulkanProduct next = {
      .matrix = matrix, .x = p->t.norm, .y = y, .y_first = y_first, .stage = stage, .layer = (int32_t)layer};
  vulkan_product_follow(p->model, &next, &p->made);
  product(p, next, which);
}

static void norm(Piece *p) {
  const NormPush push = {.width = (uint32_t)p->g->hidden, .inverse = 1 / (float)p->g->hidden, .eps = (float)p->g->eps};
  const VulkanRange ranges[] = {p->t.fc, p->model->hidden_norm, p->t.norm};
  kernel(p, VULKAN_KERNEL_NORM,
         (VulkanDispatch){
             .ranges = ranges, .push = &push, .groups = {(uint32_t)p->rows, 1, 1}, .stage = DFLASH_STAGE_CONTEXT_NORM});
}

static void rotation(Piece *p) {
  const RotationPush push = {.half_dim = (uint32_t)p->g->head_dim / 2};
  const VulkanRange ranges[] = {p->t.positions, p->model->inv_freq, p->t.table};
  kernel(p, VULKAN_KERNEL_ROTATION,
         (VulkanDispatch){.ranges = ranges,
                          .push = &push,
                          .groups = {(push.half_dim + 63) / 64, (uint32_t)p->rows, 1},
                          .stage = DFLASH_STAGE_NONE});
}

static void heads(Piece *p, int64_t layer, VulkanRange k, int64_t y_first) {
  const DflashGeometry *g = p->g;
  const HeadsPush push = {.heads = (uint32_t)g->kv_heads,
                          .head_dim = (uint32_t)g->head_dim,
                          .rotate = (uint32_t)dflash_geometry_rotary(g, layer),
                          .y_first = (uint32_t)y_first,
                          .inverse = 1 / (float)g->head_dim,
                          .eps = (float)g->eps};
  const VulkanRange x = p->t.k_proj, weight = p->model->layers[layer].k_norm;
  const VulkanRange ranges[] = {x, weight, p->t.table, k, x, weight, k}; /* there are no others */
  kernel(p, VULKAN_KERNEL_HEADS,
         (VulkanDispatch){.ranges = ranges,
                          .push = &push,
                          .groups = {push.heads, (uint32_t)p->rows, 1},
                          .stage = DFLASH_STAGE_CONTEXT_K,
                          .layer = (int32_t)layer});
}

static void layer_steps(Piece *p, int64_t layer) {
  const VulkanHeld *held = &p->change->held[layer];
  const VulkanLayer *weights = &p->model->layers[layer];
  int64_t row;
  const VulkanRange k = vulkan_held_window(p->model, held, &held->k, p->position, p->rows, &row);
  const VulkanRange v = vulkan_held_window(p->model, held, &held->v, p->position, p->rows, &row);
  project(p, &weights->k, p->t.k_proj, 0, DFLASH_STAGE_CONTEXT_K_PROJ, layer, 0);
  project(p, &weights->v, v, row, DFLASH_STAGE_CONTEXT_V_PROJ, layer, 1);
  heads(p, layer, k, row);
  capture(p, DFLASH_STAGE_CONTEXT_K_PROJ, layer, p->t.k_proj);
  capture(p, DFLASH_STAGE_CONTEXT_V_PROJ, layer, vulkan_held_rows(p->g, held, &held->v, p->position, p->rows));
  capture(p, DFLASH_STAGE_CONTEXT_K, layer, vulkan_held_rows(p->g, held, &held->k, p->position, p->rows));
}

static void piece_steps(Piece *p) {
  const uint64_t taps = (uint64_t)(p->rows * dflash_geometry_tap_width(p->g)) * 4, positions = (uint64_t)p->rows * 4;
  const VulkanBuffer *upload = &p->change->s->settle_upload;
  vulkan_steps_copy(&p->steps, vulkan_buffer_range(upload, p->t.positions.offset, positions),
                    part(p->t.positions, 0, positions));
  vulkan_steps_copy(&p->steps, vulkan_buffer_range(upload, p->t.taps.offset, taps), part(p->t.taps, 0, taps));
  rotation(p);
  product(p, (VulkanProduct){.matrix = &p->model->fc, .x = p->t.taps, .y = p->t.fc, .stage = DFLASH_STAGE_CONTEXT_FC},
          0);
  norm(p);
  capture(p, DFLASH_STAGE_CONTEXT_FC, 0, p->t.fc);
  capture(p, DFLASH_STAGE_CONTEXT_NORM, 0, p->t.norm);
  for (int64_t layer = 0; layer < p->g->layers; layer++) layer_steps(p, layer);
}

static DflashStatus write_inputs(const Piece *p, const float *taps, DflashError *error) {
  const VulkanBuffer *upload = &p->change->s->settle_upload;
  float *positions = (float *)((char *)upload->mapped + p->t.positions.offset);
  for (int64_t row = 0; row < p->rows; row++) positions[row] = (float)(p->position + row);
  memcpy((char *)upload->mapped + p->t.taps.offset, taps,
         (size_t)(p->rows * dflash_geometry_tap_width(p->g)) * sizeof(float));
  return vulkan_buffer_flush(&p->model->device, upload, error);
}

static DflashStatus settle_piece(Piece *p, const float *taps, uint64_t *ns) {
  piece_steps(p);
  if (!p->status) p->status = write_inputs(p, taps, p->error);
  if (!p->status) return vulkan_steps_run(p->model, &p->steps, ns, p->error);
  vulkan_steps_close(&p->steps);
  return p->status;
}

DflashStatus vulkan_change_settle(VulkanChange *change, const VulkanTaps *taps, uint64_t *ns, DflashError *error) {
  DflashModel *model = change->s->model;
  const DflashGeometry *g = &model->geometry;
  const int64_t most = change->s->settle_rows;
  for (int64_t done = 0, rows; done < taps->rows; done += rows) {
    rows = taps->rows - done < most ? taps->rows - done : most;
    DflashStatus status = vulkan_change_reserve(change, rows, VULKAN_RESERVE_WRITE, error);
    if (status) return status;
    Piece piece = {.change = change,
                   .model = model,
                   .g = g,
                   .rows = rows,
                   .position = change->first + change->settled,
                   .values = taps->values,
                   .values_first = done,
                   .error = error};
    (void)lay_out(change->s, &piece.t);
    status = settle_piece(&piece, taps->at + done * dflash_geometry_tap_width(g), ns);
    if (status) return status;
    change->settled += rows;
    if (!change->keeps) vulkan_change_let_go(change);
  }
  return DFLASH_OK;
}
