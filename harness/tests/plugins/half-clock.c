/* A clock of its own that runs at half the rate. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  DflashStatus status = reference_backend.block_time(sequence, time, error);
  time->device_ns /= 2;
  return status;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("half-clock");
  backend.block_time = block_time;
  return &backend;
}
