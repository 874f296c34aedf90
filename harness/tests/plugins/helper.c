/* Right, and starts a process that outlives its own. */
#include <unistd.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  if (fork() == 0) {
    sleep(100);
    _exit(0);
  }
  return reference_backend.model_open(desc, model, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("helper");
  backend.model_open = model_open;
  return &backend;
}
