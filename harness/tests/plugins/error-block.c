/* Every block returns an error; stages alone are right. */
#include "base/error.h"
#include "harness/tests/plugins/plugin.h"

static DflashStatus fail(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call;
  return dflash_error_set(error, DFLASH_DEVICE_LOST, "error-block: the device was lost on purpose");
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("error-block");
  backend.block = fail;
  return &backend;
}
