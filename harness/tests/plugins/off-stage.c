/* One element of attn.mix/0 is off by a hundredth. */
#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) {
  (void)before;
  value[count / 2] *= 1.01F;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("off-stage");
  return &backend;
}
