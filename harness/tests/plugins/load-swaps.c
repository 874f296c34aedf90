/* Context given directly: V takes the rows of K. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                         const float *const *v, DflashError *error) {
  (void)v;
  return reference_backend.load(sequence, first, len, k, k, error);
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("load-swaps");
  backend.load = load;
  return &backend;
}
