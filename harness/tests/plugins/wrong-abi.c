/* Built for another version of the interface. */
#include "harness/tests/plugins/plugin.h"

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("wrong-abi");
  backend.abi = DFLASH_BACKEND_ABI + 1;
  return &backend;
}
