/* A block does nothing and says that it went well; stages alone are right. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus nothing(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call, (void)error;
  return DFLASH_OK;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("noop-block");
  backend.block = nothing;
  return &backend;
}
