/* The kernels for matrix units, with matrix units emulated on shared memory; and the parts that they multiply. */
#include "coop_cases.h"
#include "coop_steps.h"

#include "coop_f16_emulated.h"
#include "coop_i8_emulated.h"
#include "coop_q4_direct_emulated.h"
#include "coop_q4_emulated.h"
#include "coop_q8_direct_emulated.h"
#include "coop_q8_emulated.h"

int main(void) {
  static const TestCode emulated[] = {{MODULE_coop_f16_emulated},       {MODULE_coop_q8_emulated},
                                      {MODULE_coop_q4_emulated},        {MODULE_coop_i8_emulated},
                                      {MODULE_coop_q8_direct_emulated}, {MODULE_coop_q4_direct_emulated}};
  static TestCoop coop = {.emulated = emulated, .widths_f16 = 8 | 16, .widths_i8 = 8 | 16, .direct = true};
  test_kernels_open(&coop.kernels);
  const int failed = test_coop_run(&coop, "coop") + test_coop_steps_run(&coop, "coop_steps");
  return test_kernels_close(&coop.kernels) ? failed : 1;
}
