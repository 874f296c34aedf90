#include "held.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "block.h"

enum { LEAST_ROWS = 64 };

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- a change ---- */

DflashStatus vulkan_change_begin(DflashSequence *s, VulkanChange *change, DflashError *error) {
  const size_t layers = (size_t)s->model->geometry.layers;
  *change = (VulkanChange){.s = s, .first = s->first, .len = s->len, .settled = s->settled};
  change->held = dflash_alloc(layers, sizeof *change->held);
  if (!change->held) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a context");
  memcpy(change->held, s->held, layers * sizeof *change->held);
  return DFLASH_OK;
}

static void close_buffers(VulkanDevice *device, VulkanHeld *held) {
  vulkan_buffer_close(device, &held->k);
  vulkan_buffer_close(device, &held->v);
}

void vulkan_change_keep(VulkanChange *change) {
  DflashSequence *s = change->s;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    VulkanHeld *held = &change->held[layer];
    if (held->fresh) {
      close_buffers(&s->model->device, &s->held[layer]);
      s->generation++;
    }
    held->fresh = false;
    s->held[layer] = *held;
  }
  s->first = change->first;
  s->len = change->len;
  s->settled = change->settled;
  free(change->held);
  change->held = NULL;
}

void vulkan_change_drop(VulkanChange *change) {
  for (int64_t layer = 0; change->held && layer < change->s->model->geometry.layers; layer++)
    if (change->held[layer].fresh) close_buffers(&change->s->model->device, &change->held[layer]);
  free(change->held);
  change->held = NULL;
}

void vulkan_change_restart(VulkanChange *change, int64_t first) {
  change->first = first;
  change->len = change->settled = 0;
  for (int64_t layer = 0; layer < change->s->model->geometry.layers; layer++)
    change->held[layer].base = change->held[layer].kept = first;
}

void vulkan_change_cut(VulkanChange *change, int64_t pos) {
  if (pos >= change->first + change->len) return;
  if (pos == change->first) {
    vulkan_change_restart(change, pos);
    return;
  }
  change->len = pos - change->first;
  change->settled = min(change->settled, change->len);
}

/* ---- room ---- */

/* Rows that a layer must keep; INT64_MAX: it lets none go. */
static int64_t rows_to_keep(const DflashSequence *s, int64_t layer) {
  const int64_t window = dflash_geometry_window(&s->model->geometry, layer);
  if (window == 0 || s->capture || s->model->options.keep_all || window > VULKAN_POSITION_MAX) return INT64_MAX;
  return window - 1 + VULKAN_REWIND_ROWS;
}

static int64_t settled_end(const VulkanChange *change) { return change->first + change->settled; }

void vulkan_change_let_go(VulkanChange *change) {
  const int64_t end = settled_end(change);
  for (int64_t layer = 0; layer < change->s->model->geometry.layers; layer++) {
    VulkanHeld *held = &change->held[layer];
    const int64_t keep = rows_to_keep(change->s, layer);
    if (keep != INT64_MAX && end - held->base >= 2 * keep) held->kept = max(held->kept, end - keep);
  }
}

VulkanRange vulkan_held_rows(const DflashGeometry *g, const VulkanHeld *held, const VulkanBuffer *buffer, int64_t pos,
                             int64_t rows) {
  const uint64_t row = vulkan_held_row_bytes(g);
  return vulkan_buffer_range(buffer, (uint64_t)(pos - held->base) * row, (uint64_t)rows * row);
}

int64_t vulkan_held_period(const DflashGeometry *g, const VulkanTraits *traits) {
  const uint64_t align = traits->offset_align > 16 ? traits->offset_align : 16, row = vulkan_held_row_bytes(g);
  const uint64_t common = row & -row; /* the largest power of two that divides it, as align is one */
  return common < align ? (int64_t)(align / common) : 1;
}

int64_t vulkan_held_segment(const DflashGeometry *g, const VulkanTraits *traits) {
  const int64_t period = vulkan_held_period(g, traits);
  return (int64_t)(traits->max_binding / vulkan_held_row_bytes(g)) / period * period;
}

VulkanRange vulkan_held_window(const DflashModel *model, const VulkanHeld *held, const VulkanBuffer *buffer,
                               int64_t pos, int64_t rows, int64_t *skip) {
  *skip = (pos - held->base) % vulkan_held_period(&model->geometry, &model->device.traits);
  return vulkan_held_rows(&model->geometry, held, buffer, pos - *skip, *skip + rows);
}

/* Rows that a layer can hold: its buffer is one allocation, and each of its segments takes a split of attention. */
static int64_t most_rows(const DflashSequence *s) {
  const DflashGeometry *g = &s->model->geometry;
  const VulkanTraits *traits = &s->model->device.traits;
  const int64_t shown = s->splits * vulkan_held_segment(g, traits);
  return min((int64_t)(traits->max_allocation / 16 * 16 / vulkan_held_row_bytes(g)), shown);
}

static DflashStatus too_many(const DflashSequence *s, int64_t layer, int64_t rows, DflashError *error) {
  const VulkanTraits *traits = &s->model->device.traits;
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "vulkan: %lld context rows of layer %lld take %llu bytes each; there is room for %lld: an "
                          "allocation has %llu bytes, and each of %u splits of attention sees a binding of %llu",
                          (long long)rows, (long long)layer,
                          (unsigned long long)vulkan_held_row_bytes(&s->model->geometry), (long long)most_rows(s),
                          (unsigned long long)traits->max_allocation, s->splits,
                          (unsigned long long)traits->max_binding);
}

/* Copies positions from `to->base` on to the first rows of `to`. The ranges do not overlap. */
static DflashStatus move_rows(const VulkanChange *change, const VulkanHeld *from, const VulkanHeld *to,
                              DflashError *error) {
  const DflashGeometry *g = &change->s->model->geometry;
  const int64_t rows = settled_end(change) - to->base;
  VulkanSteps steps = {0};
  if (rows == 0) return DFLASH_OK;
  vulkan_steps_copy(&steps, vulkan_held_rows(g, from, &from->k, to->base, rows),
                    vulkan_held_rows(g, to, &to->k, to->base, rows));
  vulkan_steps_copy(&steps, vulkan_held_rows(g, from, &from->v, to->base, rows),
                    vulkan_held_rows(g, to, &to->v, to->base, rows));
  return vulkan_steps_run(change->s->model, &steps, NULL, error);
}

/* Rows that fit in front of those already let go: they move there, over rows that nobody reads any more. */
static DflashStatus compact(VulkanChange *change, VulkanHeld *held, DflashError *error) {
  VulkanHeld to = *held;
  to.base = held->kept;
  DflashStatus status = move_rows(change, held, &to, error);
  if (!status) *held = to;
  return status;
}

static DflashStatus open_buffers(DflashModel *model, int64_t layer, int64_t capacity, VulkanHeld *held,
                                 DflashError *error) {
  const uint64_t bytes = (uint64_t)capacity * vulkan_held_row_bytes(&model->geometry);
  held->capacity = capacity;
  held->fresh = true;
  DflashStatus status = vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, bytes, "the context's K", &held->k, error);
  if (!status) status = vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, bytes, "the context's V", &held->v, error);
  if (!status) return DFLASH_OK;
  close_buffers(&model->device, held);
  return dflash_error_prefix(error, "vulkan: %lld context rows of layer %lld", (long long)capacity, (long long)layer),
         status;
}

/* Fresh buffers for a layer, at least twice as large when they grow, with the rows that stay. */
static DflashStatus renew(VulkanChange *change, int64_t layer, int64_t rows, int how, DflashError *error) {
  DflashSequence *s = change->s;
  VulkanHeld *held = &change->held[layer], old = *held, to = {0};
  const int64_t keep = how == VULKAN_RESERVE_ALL ? INT64_MAX : rows_to_keep(s, layer);
  const int64_t most = most_rows(s), end = settled_end(change);
  to.base = to.kept = keep == INT64_MAX ? old.kept : max(old.kept, end - keep);
  const int64_t stay = end - to.base, least = stay + (keep == INT64_MAX ? rows : min(rows, VULKAN_SETTLE_ROWS));
  int64_t capacity = old.capacity;
  if (end - old.base + rows > capacity) capacity = max(stay + rows, max(2 * capacity, LEAST_ROWS));
  if (keep != INT64_MAX) capacity = min(capacity, 2 * keep + VULKAN_SETTLE_ROWS);
  capacity = min(capacity, most);
  if (least > most) return too_many(s, layer, least, error);
  DflashStatus status = open_buffers(s->model, layer, max(capacity, least), &to, error);
  if (status) return status;
  status = move_rows(change, &old, &to, error);
  if (status) {
    close_buffers(&s->model->device, &to);
    return status;
  }
  if (old.fresh) close_buffers(&s->model->device, &old);
  *held = to;
  return DFLASH_OK;
}

/* Would rows after the change's settled ones lie where the sequence still has its own? */
static bool overwrites(const VulkanChange *change, int64_t layer) {
  const DflashSequence *s = change->s;
  const VulkanHeld *held = &change->held[layer];
  return !held->fresh && settled_end(change) - held->base < s->first + s->settled - s->held[layer].base;
}

static DflashStatus reserve_layer(VulkanChange *change, int64_t layer, int64_t rows, int how, DflashError *error) {
  VulkanHeld *held = &change->held[layer];
  const int64_t end = settled_end(change), stay = end - held->kept;
  const bool written = how != VULKAN_RESERVE_WAIT;
  if (written && overwrites(change, layer)) return renew(change, layer, rows, how, error);
  if (end - held->base + rows <= held->capacity) return DFLASH_OK;
  if (stay + min(rows, VULKAN_SETTLE_ROWS) <= held->capacity && held->kept - held->base >= stay &&
      (held->fresh || !written))
    return compact(change, held, error);
  return renew(change, layer, rows, how, error);
}

DflashStatus vulkan_change_reserve(VulkanChange *change, int64_t rows, int how, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t layer = 0; !status && rows > 0 && layer < change->s->model->geometry.layers; layer++)
    status = reserve_layer(change, layer, rows, how, error);
  return status;
}

DflashStatus vulkan_steps_run(DflashModel *model, VulkanSteps *steps, uint64_t *ns, DflashError *error) {
  VulkanPlan plan = {0};
  uint64_t spent = 0;
  DflashStatus status = vulkan_plan_open(&model->device, steps, false, 0, &plan, error);
  const uint64_t begin = vulkan_now_ns();
  if (!status) status = vulkan_plan_run(&model->device, &plan, error);
  if (!status) spent = vulkan_now_ns() - begin;
  if (!status && plan.stamps > 0) status = vulkan_plan_time(&model->device, &plan, &spent, error);
  if (ns) *ns += spent;
  vulkan_plan_close(&model->device, &plan);
  vulkan_steps_close(steps);
  return status;
}
