/* Scratch of a sequence: one buffer in device memory, one that the host writes, one that it reads. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "select.h"
#include "sequence.h"

/* A range and what it takes, in elements of 4 bytes; the product of the factors. */
typedef struct Place {
  VulkanRange *range;
  const char *name;
  int64_t factors[4]; /* 0: 1 */
} Place;

static DflashStatus place_all(DflashSequence *s, const Place *places, size_t count, uint64_t *bytes,
                              DflashError *error) {
  for (size_t i = 0; i < count; i++) {
    int64_t elements = 4;
    bool fits = true;
    for (int f = 0; f < 4 && places[i].factors[f] > 0; f++)
      fits = fits && dflash_mul_i64(elements, places[i].factors[f], &elements);
    if (!fits || (uint64_t)elements > s->model->device.traits.max_binding)
      return dflash_error_set(error, DFLASH_UNSUPPORTED,
                              "vulkan: %s of a block of %lld rows: more than the %llu bytes that a binding shows",
                              places[i].name, (long long)s->model->geometry.block,
                              (unsigned long long)s->model->device.traits.max_binding);
    places[i].range->bytes = (uint64_t)elements;
    places[i].range->offset = vulkan_place(&s->model->device, bytes, (uint64_t)elements);
  }
  return DFLASH_OK;
}

/* What the host hands over comes first: its offsets are those of the upload buffer too. */
static DflashStatus place_input(DflashSequence *s, uint64_t *bytes, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  const uint64_t align = s->model->device.traits.offset_align;
  VulkanScratch *t = &s->scratch;
  const uint64_t stride = ((uint64_t)(g->block + 1) * 4 + align - 1) / align * align;
  const Place places[] = {{&t->positions, "positions", {g->block}},
                          {&t->visible, "visible", {g->layers, (int64_t)stride / 4}},
                          {&t->anchor, "anchor", {1}},
                          {&t->h, "h", {g->block, g->hidden}}};
  DflashStatus status = place_all(s, places, sizeof places / sizeof places[0], bytes, error);
  s->input = (VulkanInput){.h = t->h.offset,
                           .positions = t->positions.offset,
                           .visible = t->visible.offset,
                           .anchor = t->anchor.offset,
                           .visible_stride = stride};
  return status;
}

static DflashStatus place_values(DflashSequence *s, uint64_t *bytes, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  VulkanScratch *t = &s->scratch;
  const int64_t rows = g->block, drafts = g->block - 1, q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim;
  const int64_t parts = (int64_t)s->splits + 1, chunks = vulkan_top_chunks(&s->model->device.traits, g->vocab);
  const int64_t widest = vulkan_widest_product(g);
  const VulkanUnitsBytes *units = &s->block_units;
  const Place places[] = {
      {&t->norm, "norm", {rows, g->hidden}},
      {&t->kernel, "kernel", {rows, dflash_geometry_kernel_width(g)}},
      {&t->conv, "conv", {rows, g->hidden}},
      {&t->q_proj, "q_proj", {rows, q}},
      {&t->k_proj, "k_proj", {rows, kv}},
      {&t->v_proj, "v_proj", {rows, kv}},
      {&t->q, "q", {rows, q}},
      {&t->k, "k", {rows, kv}},
      {&t->mix, "mix", {rows, q}},
      {&t->o_proj, "o_proj", {rows, g->hidden}},
      {&t->gate, "gate", {rows, g->intermediate}},
      {&t->up, "up", {rows, g->intermediate}},
      {&t->act, "act", {rows, g->intermediate}},
      {&t->down, "down", {rows, g->hidden}},
      {&t->logits, "logits", {drafts, g->vocab}},
      {&t->hidden, "hidden", {drafts, g->selector_rank}},
      {&t->table, "table", {rows, g->head_dim}},
      {&t->sums, "sums", {parts, rows, g->heads, 2}},
      {&t->mixes, "mixes", {parts, rows, g->heads, g->head_dim}},
      {&t->words, "words", {rows, widest / 4 + 8}},
      {&t->scales, "scales", {rows, widest / 32 + 1}},
      {&t->largest, "largest", {rows}},
      {&t->fragments[0], "fragments", {(int64_t)units->words / 4}},
      {&t->fragments[1], "fragments", {(int64_t)units->words / 4}},
      {&t->factors[0], "factors", {(int64_t)units->factors / 4}},
      {&t->factors[1], "factors", {(int64_t)units->factors / 4}},
      {&t->found[0], "found", {(int64_t)units->found / 4}},
      {&t->found[1], "found", {(int64_t)units->found / 4}},
      {&t->found[2], "found", {(int64_t)units->found / 4}},
      {&t->top_entries, "top_entries", {drafts, chunks, g->selector_top, 2}},
      {&t->best, "best", {drafts, g->selector_top, 2}},
      {&t->flags, "flags", {2 + drafts}},
      {&t->predecessors, "predecessors", {drafts, g->selector_top, g->selector_rank}},
      {&t->successors, "successors", {drafts, g->selector_top, g->selector_rank}},
      {&t->pairs, "pairs", {drafts, g->selector_top, g->selector_top + 1}},
      {&t->result, "result", {vulkan_result_words(drafts, g->selector_top)}},
  };
  return place_all(s, places, sizeof places / sizeof places[0], bytes, error);
}

/* All ranges were laid out in one buffer: give it to them. What the host writes into the device's own memory is read
 * where it is. */
static void bind_ranges(DflashSequence *s) {
  VulkanScratch *t = &s->scratch;
  VulkanRange *ranges = (VulkanRange *)t;
  for (size_t i = 0; i < sizeof *t / sizeof *ranges; i++) ranges[i].buffer = s->device_scratch.buffer;
  if (s->upload.local) t->positions.buffer = t->visible.buffer = t->anchor.buffer = s->upload.buffer;
}

static DflashStatus open_input(DflashSequence *s, uint64_t bytes, DflashError *error) {
  const int kind = s->model->device.traits.mapped_local ? VULKAN_INPUT : VULKAN_UPLOAD;
  const DflashStatus status = vulkan_buffer_open(&s->model->device, kind, bytes, "a block's inputs", &s->upload, error);
  s->upload.local = s->upload.local && kind == VULKAN_INPUT;
  return status;
}

static const struct {
  int32_t scope, rows;
} SHAPES[] = {
#define SHAPE(id, name, scope, group, rows, ...) {DFLASH_SCOPE_##scope, DFLASH_ROWS_##rows},
    DFLASH_STAGES(SHAPE)
#undef SHAPE
};

int64_t vulkan_stage_layers(const DflashGeometry *g, int32_t stage) {
  return SHAPES[stage].scope == DFLASH_SCOPE_LAYER ? g->layers : 1;
}

int32_t vulkan_stage_rows(int32_t stage) { return SHAPES[stage].rows; }

/* Logits, the selector's values and what select answers stay where the block leaves them. */
static DflashStatus open_capture(DflashSequence *s, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  VulkanCapture *c = &s->captured;
  uint64_t bytes = 0;
  for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_FINAL_NORM; stage++) {
    const int64_t width = vulkan_stage_width(g, stage);
    (void)vulkan_place(&s->model->device, &c->layer_bytes[stage], (uint64_t)(g->block * width) * 4);
    c->stages[stage].bytes = c->layer_bytes[stage] * (uint64_t)vulkan_stage_layers(g, stage);
    c->stages[stage].offset = vulkan_place(&s->model->device, &bytes, c->stages[stage].bytes);
  }
  DflashStatus status =
      vulkan_buffer_open(&s->model->device, VULKAN_ON_DEVICE, bytes, "captured stages", &c->block, error);
  for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_FINAL_NORM; stage++)
    c->stages[stage].buffer = c->block.buffer;
  return status;
}

DflashStatus vulkan_scratch_open(DflashSequence *s, DflashError *error) {
  VulkanDevice *device = &s->model->device;
  uint64_t input_bytes = 0, read_bytes = 0;
  DflashStatus status = place_input(s, &input_bytes, error);
  uint64_t bytes = input_bytes;
  if (!status) status = place_values(s, &bytes, error);
  if (!status)
    status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, bytes, "a block's values", &s->device_scratch, error);
  if (!status) status = open_input(s, input_bytes, error);
  if (status) return status;
  bind_ranges(s);
  const VulkanScratch *t = &s->scratch;
  s->readback_result = vulkan_place(device, &read_bytes, t->result.bytes);
  s->readback_logits = vulkan_place(device, &read_bytes, t->logits.bytes);
  s->readback_hidden = vulkan_place(device, &read_bytes, t->hidden.bytes);
  status = vulkan_buffer_open(device, VULKAN_READBACK, read_bytes, "a block's results", &s->readback, error);
  s->scratch.result.buffer = s->readback.buffer; /* the last kernel writes where the host reads */
  s->scratch.result.offset = s->readback_result;
  if (!status && s->capture) status = open_capture(s, error);
  return status;
}

void vulkan_scratch_close(DflashSequence *s) {
  VulkanDevice *device = &s->model->device;
  vulkan_buffer_close(device, &s->device_scratch);
  vulkan_buffer_close(device, &s->upload);
  vulkan_buffer_close(device, &s->readback);
  vulkan_buffer_close(device, &s->captured.block);
}

int64_t vulkan_stage_width(const DflashGeometry *g, int32_t stage) {
  static const int32_t WIDTHS[] = {
#define WIDTH(id, name, scope, group, rows, width, ...) DFLASH_WIDTH_##width,
      DFLASH_STAGES(WIDTH)
#undef WIDTH
  };
  switch (WIDTHS[stage]) {
  case DFLASH_WIDTH_Q:
    return g->heads * g->head_dim;
  case DFLASH_WIDTH_KV:
    return g->kv_heads * g->head_dim;
  case DFLASH_WIDTH_KERNEL:
    return dflash_geometry_kernel_width(g);
  case DFLASH_WIDTH_INTERMEDIATE:
    return g->intermediate;
  case DFLASH_WIDTH_HEAD:
    return g->vocab;
  case DFLASH_WIDTH_RANK:
    return g->selector_rank;
  case DFLASH_WIDTH_TOP:
    return g->selector_top;
  default:
    return g->hidden;
  }
}

int64_t vulkan_widest_product(const DflashGeometry *g) {
  const int64_t q = g->heads * g->head_dim;
  int64_t widest = g->hidden > g->intermediate ? g->hidden : g->intermediate;
  return widest > q ? widest : q;
}

int64_t vulkan_result_words(int64_t n_draft, int64_t top) { return n_draft * (2 + 2 * top) + 1; }
