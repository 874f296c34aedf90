/* Promises equal bits, and attn.mix/0 differs in the last bit from one reading to the next. */
#include <math.h>

#include "harness/tests/plugins/plugin.h"

void plugin_damage(float *value, int64_t count, float before) {
  static unsigned calls;
  (void)count, (void)before;
  if (calls++ % 2 == 1) value[0] = nextafterf(value[0], INFINITY);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_stage("unrepeatable");
  return &backend;
}
