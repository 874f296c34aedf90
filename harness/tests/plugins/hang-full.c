/* Never returns from a block of eight rows; any other block is right. */
#include <unistd.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  while (call->rows == 8) sleep(1);
  return reference_backend.block(sequence, call, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("hang-full");
  backend.block = block;
  return &backend;
}
