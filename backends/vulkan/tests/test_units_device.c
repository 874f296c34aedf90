/* The kernels for matrix units on the device's own ones. Skipped where it has none. */
#include "fixture.h"
#include "units_cases.h"
#include "units_product.h"

int main(void) {
  static DflashModel model;
  const int failed = test_units_open(&model, 0) ? test_units_cases(&model, 0, "units_device") : TEST_SKIPPED;
  return test_units_close(&model) ? failed : 1;
}
