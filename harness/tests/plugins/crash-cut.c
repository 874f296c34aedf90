/* Dies in a block of four rows; any other block is right. */
#include <signal.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  if (call->rows == 4) raise(SIGSEGV);
  return reference_backend.block(sequence, call, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("crash-cut");
  backend.block = block;
  return &backend;
}
