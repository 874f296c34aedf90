/* Its table ends before the required members do. */
#include "harness/tests/plugins/plugin.h"

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("small-struct");
  backend.struct_size = offsetof(DflashBackend, block);
  return &backend;
}
