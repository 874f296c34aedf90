/* The one symbol that the harness looks for. */
#include "dflash/backend.h"

#include "base/error.h"
#include "info.h"
#include "measure.h"
#include "sequence.h"
#include "state.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

static DflashStatus stage_alone(DflashSequence *s, const DflashStageCall *call, DflashError *error) {
  (void)s;
  (void)call;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: a block is one submission; no stage runs alone");
}

const DflashBackend *dflash_backend(void) {
  static const DflashBackend backend = {
      .struct_size = sizeof backend,
      .abi = DFLASH_BACKEND_ABI,
      .name = "vulkan",
      .version = "1",
      .about = "the block as one submission, on any Vulkan 1.2 device",
      .options = vulkan_options_text,
      .devices = vulkan_devices,
      .supports = vulkan_supports,
      .model_open = vulkan_model_open,
      .model_close = vulkan_model_close,
      .model_info = vulkan_model_info,
      .stage_info = vulkan_stage_info,
      .sequence_open = vulkan_sequence_open,
      .sequence_close = vulkan_sequence_close,
      .push = vulkan_push,
      .truncate = vulkan_truncate,
      .reset = vulkan_reset,
      .load = vulkan_load,
      .span = vulkan_span,
      .read_context = vulkan_read_context,
      .block = vulkan_block,
      .stage = stage_alone,
      .read_stage = vulkan_read_stage,
      .block_time = vulkan_block_time,
      .block_spans = vulkan_block_spans,
      .evict_caches = vulkan_evict_caches,
      .measure_read = vulkan_measure_read,
      .measure_matrix = vulkan_measure_matrix,
      .device_state = vulkan_device_state,
      .poison = vulkan_poison,
  };
  return &backend;
}
