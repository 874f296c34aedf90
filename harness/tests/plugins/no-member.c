/* A required member is not set. */
#include "harness/tests/plugins/plugin.h"

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("no-member");
  backend.read_context = NULL;
  return &backend;
}
