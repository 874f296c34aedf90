/* attn.mix/0 is off by a hundredth, and the block crashes. */
#include <signal.h>

#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) {
  (void)before;
  value[count / 2] *= 1.01F;
}

static DflashStatus crash(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call, (void)error;
  raise(SIGSEGV);
  return DFLASH_INTERNAL;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("off-crash");
  backend.block = crash;
  return &backend;
}
