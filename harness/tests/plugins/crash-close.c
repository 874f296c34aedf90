/* Dies while the model closes, when every value was right. */
#include <signal.h>

#include "harness/tests/plugins/plugin.h"

static void crash(DflashModel *model) {
  (void)model;
  raise(SIGSEGV);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("crash-close");
  backend.model_close = crash;
  return &backend;
}
