/* Right, and prints where it should not. */
#include <stdio.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  puts("talk: on stdout");
  return reference_backend.block(sequence, call, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("talk");
  backend.block = block;
  return &backend;
}
