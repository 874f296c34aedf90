/* Dies while the model opens. */
#include <signal.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus crash(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  (void)desc, (void)model, (void)error;
  raise(SIGSEGV);
  return DFLASH_INTERNAL;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("crash-open");
  backend.model_open = crash;
  return &backend;
}
