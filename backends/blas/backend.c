/* The one symbol that the harness looks for. */
#include "dflash/backend.h"

#include "measure.h"
#include "model.h"
#include "options.h"
#include "sequence.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

const DflashBackend *dflash_backend(void) {
  static const DflashBackend backend = {
      .struct_size = sizeof backend,
      .abi = DFLASH_BACKEND_ABI,
      .name = "blas",
      .version = "1",
      .about = "this host's processor, at the speed of its memory; OpenBLAS beside it",
      .options = DFLASH_BLAS_OPTIONS,
      .devices = dflash_devices,
      .supports = dflash_model_supports,
      .model_open = dflash_model_open,
      .model_close = dflash_model_close,
      .model_info = dflash_model_info,
      .stage_info = dflash_model_stage_info,
      .sequence_open = dflash_sequence_open,
      .sequence_close = dflash_sequence_close,
      .push = dflash_push,
      .truncate = dflash_truncate,
      .reset = dflash_reset,
      .load = dflash_load,
      .span = dflash_span,
      .read_context = dflash_read_context,
      .block = dflash_block,
      .stage = dflash_stage_alone,
      .read_stage = dflash_read_stage,
      .block_time = dflash_block_time,
      .block_spans = dflash_block_spans,
      .evict_caches = dflash_evict_caches,
      .measure_read = dflash_measure_read,
      .measure_matrix = dflash_measure_matrix,
      .library_time = dflash_library_time,
      .device_state = dflash_device_state,
      .poison = dflash_sequence_poison,
  };
  return &backend;
}
