/* The context that a call is about to leave behind, and the device memory of its rows. */
#ifndef DFLASH_VULKAN_HELD_H
#define DFLASH_VULKAN_HELD_H

#include "sequence.h"

/* A call works on a change: the sequence stays as it is until vulkan_change_keep, which cannot fail. The change shares
 * the sequence's buffers where the rows that they hold stay untouched, and has fresh ones where they would not. */
typedef struct VulkanChange {
  DflashSequence *s;
  int64_t first, len, settled;
  VulkanHeld *held; /* [layers] */
  bool keeps;       /* settling lets no rows go */
} VulkanChange;

DflashStatus vulkan_change_begin(DflashSequence *s, VulkanChange *change, DflashError *error);
void vulkan_change_keep(VulkanChange *change);
void vulkan_change_drop(VulkanChange *change); /* after a failure */

/* Holds nothing; the next row is that of position `first`. */
void vulkan_change_restart(VulkanChange *change, int64_t first);
/* Forgets positions from pos on; first <= pos. */
void vulkan_change_cut(VulkanChange *change, int64_t pos);

enum {
  VULKAN_RESERVE_WAIT,  /* rows that are written after the call, when the change is kept */
  VULKAN_RESERVE_WRITE, /* rows that are written before: what the sequence holds must survive that */
  VULKAN_RESERVE_ALL    /* the same, and a windowed layer lets none of them go */
};

/* Room for `rows` rows after the settled ones. A windowed layer makes it by letting old rows go where it can; then, and
 * where more than VULKAN_SETTLE_ROWS rows are asked for, it has room for that many: ask again before each piece. */
DflashStatus vulkan_change_reserve(VulkanChange *change, int64_t rows, int how, DflashError *error);

/* Windowed layers let go of the rows that they need not keep, once there are as many as those that they must: so rows
 * that are moved to the front of a buffer never overwrite a row that is kept. */
void vulkan_change_let_go(VulkanChange *change);

static inline uint64_t vulkan_held_row_bytes(const DflashGeometry *g) {
  return (uint64_t)(g->kv_heads * g->head_dim) * sizeof(float);
}

/* Rows of K or V from one that begins at an offset where a binding can begin to the next such one. */
int64_t vulkan_held_period(const DflashGeometry *g, const VulkanTraits *traits);
/* Rows that one binding shows, a multiple of the period: a layer with more is seen in segments of so many. */
int64_t vulkan_held_segment(const DflashGeometry *g, const VulkanTraits *traits);

/* K or V of `rows` positions from pos on. */
VulkanRange vulkan_held_rows(const DflashGeometry *g, const VulkanHeld *held, const VulkanBuffer *buffer, int64_t pos,
                             int64_t rows);
/* The same, as a binding shows it: from up to a period of rows before, *skip of them, on. */
VulkanRange vulkan_held_window(const DflashModel *model, const VulkanHeld *held, const VulkanBuffer *buffer,
                               int64_t pos, int64_t rows, int64_t *skip);

/* Records the steps, runs them and waits. *ns (may be NULL) grows by the device's time, or the host's where the device
 * has no time stamps. The steps are closed, on failure too. */
DflashStatus vulkan_steps_run(DflashModel *model, VulkanSteps *steps, uint64_t *ns, DflashError *error);

#endif
