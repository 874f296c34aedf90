/* Writes one element past the end of attn.mix/0. */
#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) {
  (void)before;
  value[count] = value[count - 1];
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("overrun-stage");
  return &backend;
}
