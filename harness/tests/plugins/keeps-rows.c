/* A rewind that forgets nothing. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus keep(DflashSequence *sequence, int64_t pos, DflashError *error) {
  (void)sequence, (void)pos, (void)error;
  return DFLASH_OK;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("keeps-rows");
  backend.truncate = keep;
  return &backend;
}
