/* Leaves the last element of attn.mix/0 as the caller had it. */
#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) { value[count - 1] = before; }

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("unwritten-stage");
  return &backend;
}
