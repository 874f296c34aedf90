/* Whole blocks with their products on matrix units, which are emulated: every profile, with the validation
 * layers listening. */
#include "gate.h"

#define VERIFY                                                    \
  "verify %s -q --backend vulkan-planted --option validation=on " \
  "--option matrix=cooperative --option units=emulated --profile %s --json units.json"

static void verify(const char *golden, const char *profile) {
  remove("units.json");
  expect_run(0, VERIFY, golden, profile);
  cJSON *records = read_records("units.json");
  assert_true(count_records(records, "case") == 1 && count_records(records, "verdict") > 50);
  cJSON_Delete(records);
}

static void test_exact(void **state) {
  (void)state;
  verify(GATE_FILE("sidecar-rewind.h5"), "exact");
  verify(GATE_FILE("odd-groups.h5"), "exact");
}

static void test_f16(void **state) {
  (void)state;
  verify(GATE_FILE("sidecar-rewind.h5"), "f16");
  verify(GATE_FILE("odd-groups.h5"), "f16");
}

static void test_i8(void **state) {
  (void)state;
  verify(GATE_FILE("sidecar-rewind.h5"), "i8");
  verify(GATE_FILE("odd-groups.h5"), "i8");
}

/* Wide enough for columns to be split among workgroups; every stage and law. */
static void test_splits(void **state) {
  (void)state;
  gate_make("--preset tiny --set layers=1 --set hidden=64 --set intermediate=1152 --set head_dim=16 --storage sidecar "
            "--case main -o wide.h5");
  verify("wide.h5", "f16");
}

int main(void) {
  gate_need_device();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_f16),
                                     cmocka_unit_test(test_i8), cmocka_unit_test(test_splits)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
