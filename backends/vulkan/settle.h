/* From the taps of context rows to the K and V that are held. */
#ifndef DFLASH_VULKAN_SETTLE_H
#define DFLASH_VULKAN_SETTLE_H

#include "held.h"

enum { VULKAN_CONTEXT_STAGES = DFLASH_STAGE_CONTEXT_K + 1 };

/* The stages of all rows of one push, as VulkanCapture holds them. */
typedef struct VulkanPushValues {
  int64_t rows;
  VulkanBuffer buffer;
  VulkanRange stages[VULKAN_CONTEXT_STAGES];
  uint64_t layer_bytes[VULKAN_CONTEXT_STAGES];
} VulkanPushValues;

DflashStatus vulkan_push_values_open(DflashModel *model, int64_t rows, VulkanPushValues *values, DflashError *error);
/* They become the sequence's, in the place of those of the push before. */
void vulkan_push_values_keep(DflashSequence *s, VulkanPushValues *values);

/* Rows of the largest piece. */
int64_t vulkan_settle_rows(DflashModel *model);
/* The buffers of a piece, once a sequence. */
DflashStatus vulkan_settle_open(DflashSequence *s, DflashError *error);

/* What is projected: rows of taps, and where their stages go when they are captured. */
typedef struct VulkanTaps {
  const float *at; /* [rows][tap_width] */
  int64_t rows;
  const VulkanPushValues *values; /* NULL: not captured */
} VulkanTaps;

/* Projects rows that follow the settled ones, piece by piece; room for one of them is reserved as they go. */
DflashStatus vulkan_change_settle(VulkanChange *change, const VulkanTaps *taps, uint64_t *ns, DflashError *error);

#endif
