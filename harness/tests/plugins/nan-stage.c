/* One NaN in the middle of attn.mix/0. */
#include <math.h>

#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) {
  (void)before;
  value[count / 2] = NAN;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("nan-stage");
  return &backend;
}
