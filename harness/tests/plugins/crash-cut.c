/* Dies in a block of four rows when no whole block ran before; any other block is right. */
#include <signal.h>
#include <stdbool.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  static bool whole;
  if (call->rows == 4 && !whole) raise(SIGSEGV);
  whole |= call->rows > 4;
  return reference_backend.block(sequence, call, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("crash-cut");
  backend.block = block;
  return &backend;
}
