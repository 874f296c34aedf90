/* Dies while it is loaded. */
#include <signal.h>
#include <stddef.h>

#include "harness/tests/plugins/plugin.h"

const DflashBackend *dflash_backend(void) {
  raise(SIGSEGV);
  return NULL;
}
