/* The kernels for matrix units on the device's own ones. Skipped where it has none. */
#include "coop.h"
#include "coop_cases.h"
#include "coop_steps.h"

#include <stdio.h>

int main(void) {
  static TestCoop coop;
  test_kernels_open(&coop.kernels);
  coop.widths_f16 = coop.kernels.device.traits.coop_f16;
  coop.widths_i8 = coop.kernels.device.traits.coop_i8;
  if (!coop.widths_f16 && !coop.widths_i8) {
    fprintf(stderr, "%s has no matrix units that the kernels can use\n", coop.kernels.device.traits.name);
    return test_kernels_close(&coop.kernels) ? TEST_SKIPPED : 1;
  }
  DflashError error = {0};
  if (vulkan_coop_probe(&coop.kernels.device, &coop.kernels.pipelines, &coop.direct, &error) != DFLASH_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  fprintf(stderr, "%s: elements are %swhere the direct kernels expect them\n", coop.kernels.device.traits.name,
          coop.direct ? "" : "not ");
  const int failed = test_coop_run(&coop, "coop_device") + test_coop_steps_run(&coop, "coop_device_steps");
  return test_kernels_close(&coop.kernels) ? failed : 1;
}
