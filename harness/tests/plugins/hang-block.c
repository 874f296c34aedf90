/* Never returns from a block; stages alone are right. */
#include <unistd.h>

#include "harness/tests/plugins/plugin.h"

static DflashStatus hang(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call, (void)error;
  for (;;) sleep(1);
  return DFLASH_INTERNAL;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("hang-block");
  backend.block = hang;
  return &backend;
}
