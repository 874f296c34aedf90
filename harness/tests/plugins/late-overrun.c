/* From the second block on it writes one element past the logits. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  static int blocks;
  DflashStatus status = reference_backend.block(sequence, call, error);
  if (status == DFLASH_OK && call->logits != NULL && blocks++ > 0) call->logits[call->n_draft * call->head_width] = 1;
  return status;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("late-overrun");
  backend.block = block;
  return &backend;
}
