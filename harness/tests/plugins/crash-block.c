/* Dies in every block; stages alone are right. */
#include <signal.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus crash(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call, (void)error;
  raise(SIGSEGV);
  return DFLASH_INTERNAL;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("crash-block");
  backend.block = crash;
  return &backend;
}
