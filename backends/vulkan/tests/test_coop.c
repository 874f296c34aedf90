/* The kernels for matrix units, with matrix units emulated on shared memory; and the parts that they multiply. */
#include "coop_cases.h"
#include "coop_steps.h"

#include "emulated.h"

int main(void) {
  static TestCoop coop = {.emulated = vulkan_emulated, .widths_f16 = 8 | 16, .widths_i8 = 8 | 16, .direct = true};
  test_kernels_open(&coop.kernels);
  const int failed = test_coop_run(&coop, "coop") + test_coop_steps_run(&coop, "coop_steps");
  return test_kernels_close(&coop.kernels) ? failed : 1;
}
