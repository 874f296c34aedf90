/* What --option takes, and what it refuses. */
#include "fixture.h"

#include <string.h>

#include "model.h"

static DflashStatus read(const char *key, const char *value, VulkanOptions *options, DflashError *error) {
  const DflashOption option = {key, value};
  return vulkan_options_read(&(DflashModelDesc){.options = &option, .option_count = 1}, options, error);
}

static void test_defaults(void **state) {
  (void)state;
  VulkanOptions o;
  assert_int_equal(vulkan_options_read(&(DflashModelDesc){0}, &o, NULL), DFLASH_OK);
  assert_false(o.units_required || o.validation || o.dot_required || o.keep_all || o.statistics);
  assert_true(o.dot && o.units && o.join && o.attention);
  assert_true(o.splits == 0 && o.skip_barrier == 0 && o.fault.at == 0);
}

static void test_values(void **state) {
  (void)state;
  VulkanOptions o;
  assert_true(read("validation", "on", &o, NULL) == DFLASH_OK && o.validation);
  assert_true(read("validation", "off", &o, NULL) == DFLASH_OK && !o.validation);
  assert_true(read("dot", "on", &o, NULL) == DFLASH_OK && o.dot && o.dot_required);
  assert_true(read("dot", "off", &o, NULL) == DFLASH_OK && !o.dot && !o.dot_required);
  assert_true(read("dot", "auto", &o, NULL) == DFLASH_OK && o.dot && !o.dot_required);
  assert_true(read("matrix", "cooperative", &o, NULL) == DFLASH_OK && o.units && o.units_required);
  assert_true(read("matrix", "tile", &o, NULL) == DFLASH_OK && !o.units && !o.units_required);
  assert_true(read("matrix", "auto", &o, NULL) == DFLASH_OK && o.units && !o.units_required);
  assert_true(read("join", "off", &o, NULL) == DFLASH_OK && !o.join);
  assert_true(read("join", "auto", &o, NULL) == DFLASH_OK && o.join);
  assert_true(read("attention", "plain", &o, NULL) == DFLASH_OK && !o.attention);
  assert_true(read("attention", "auto", &o, NULL) == DFLASH_OK && o.attention);
  assert_true(read("keep", "all", &o, NULL) == DFLASH_OK && o.keep_all);
  assert_true(read("keep", "window", &o, NULL) == DFLASH_OK && !o.keep_all);
  assert_true(read("splits", "7", &o, NULL) == DFLASH_OK && o.splits == 7);
  assert_true(read("statistics", "on", &o, NULL) == DFLASH_OK && o.statistics);
  assert_true(read("statistics", "off", &o, NULL) == DFLASH_OK && !o.statistics);
  assert_true(read("skip-barrier", "12", &o, NULL) == DFLASH_OK && o.skip_barrier == 12);
}

static void test_faults(void **state) {
  (void)state;
  static const struct {
    const char *value;
    uint64_t at;
    VkResult result;
  } cases[] = {{"3", 3, VK_ERROR_OUT_OF_DEVICE_MEMORY},
               {"1:memory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY},
               {"900:lost", 900, VK_ERROR_DEVICE_LOST},
               {"5:timeout", 5, VK_TIMEOUT}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    VulkanOptions o;
    assert_int_equal(read("fail", cases[i].value, &o, NULL), DFLASH_OK);
    assert_true(o.fault.at == cases[i].at && o.fault.result == cases[i].result && o.fault.calls == 0);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"validation", "yes"},
                                         {"dot", ""},
                                         {"keep", "none"},
                                         {"matrix", "on"},
                                         {"splits", "64"},
                                         {"splits", "-1"},
                                         {"splits", "1x"},
                                         {"join", "on"},
                                         {"attention", "on"},
                                         {"statistics", "all"},
                                         {"skip-barrier", "-2"},
                                         {"fail", ":lost"},
                                         {"fail", "3:"},
                                         {"fail", "3:gone"},
                                         {"fail", "x"},
                                         {"fail", "-1"},
                                         {"fail", "11111111111111111111111111111111111111"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    VulkanOptions o;
    DflashError error = {0};
    assert_int_equal(read(cases[i][0], cases[i][1], &o, &error), DFLASH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, cases[i][0]));
    assert_non_null(strstr(error.message, "expected"));
  }
}

static void test_unknown(void **state) {
  (void)state;
  VulkanOptions o;
  DflashError error = {0};
  assert_int_equal(read("threads", "2", &o, &error), DFLASH_INVALID_ARGUMENT);
  static const char *const known[] = {"threads", "validation", "dot",          "matrix", "keep",
                                      "splits",  "statistics", "skip-barrier", "fail"};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) assert_non_null(strstr(error.message, known[i]));
  assert_int_equal(read(NULL, NULL, &o, &error), DFLASH_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults), cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_faults), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_unknown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
