/* The committed goldens on this backend, with the validation layers listening: every profile, chain and local, laws. */
#include <glob.h>

#include "gate.h"

#define VERIFY \
  "verify %s -q --backend vulkan --backend-path " DFLASH_BACKEND_FOLDER " --option validation=on --json r.jsonl "

/* The committed goldens, joined by blanks. */
static void list_files(char *names, size_t size) {
  glob_t found;
  assert_int_equal(glob(DFLASH_GOLDEN_FOLDER "/*.h5", 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 6);
  size_t used = 0;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    used += (size_t)snprintf(names + used, size - used, "%s ", found.gl_pathv[i]);
    assert_true(used < size);
  }
  globfree(&found);
}

static cJSON *verify_all(const char *arguments) {
  char names[4096];
  list_files(names, sizeof names);
  remove("r.jsonl");
  expect_run(0, VERIFY "%s", names, arguments);
  return read_records("r.jsonl");
}

static int count_cases(const cJSON *records, const char *outcome) {
  int count = 0;
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    count += strcmp(text_in(record, "type"), "case") == 0 && strcmp(text_in(record, "outcome"), outcome) == 0;
  }
  return count;
}

/* Verdicts of a name in the chain that are a pass. */
static int count_passes(const cJSON *records, const char *name) {
  int count = 0;
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    count += strcmp(text_in(record, "type"), "verdict") == 0 && strcmp(text_in(record, "mode"), "chain") == 0 &&
             strcmp(text_in(record, "stage"), name) == 0 && strcmp(text_in(record, "outcome"), "pass") == 0;
  }
  return count;
}

/* The laws are part of it: five of the goldens hold a context, one of whose layers have windows that let rows go. */
static void test_exact(void **state) {
  (void)state;
  cJSON *records = verify_all("--profile exact");
  assert_int_equal(count_cases(records, "pass"), count_records(records, "case"));
  static const char *const laws[] = {"pushes", "rewind", "rounds"};
  for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) assert_int_equal(count_passes(records, laws[i]), 5);
  assert_int_equal(count_passes(records, "cut"), 6);
  cJSON_Delete(records);
}

static void test_f16(void **state) {
  (void)state;
  cJSON *records = verify_all("--profile f16");
  assert_int_equal(count_cases(records, "pass"), count_records(records, "case"));
  cJSON_Delete(records);
}

/* Two of the goldens have weights that this profile is about. */
static void test_i8(void **state) {
  (void)state;
  cJSON *records = verify_all("--profile i8 --allow-missing");
  assert_int_equal(count_cases(records, "pass"), 2);
  assert_int_equal(count_cases(records, "unsupported"), count_records(records, "case") - 2);
  cJSON_Delete(records);
  remove("r.jsonl");
  expect_run(0, VERIFY "--profile i8 --option dot=off", GATE_FILE("odd-groups.h5"));
}

/* Short of room: one part of the context, and many more parts than keys. */
static void test_splits(void **state) {
  (void)state;
  expect_run(0, VERIFY "--option splits=1", GATE_FILE("odd-groups.h5"));
  expect_run(0, VERIFY "--option splits=63", GATE_FILE("tiny-f32.h5"));
}

int main(void) {
  gate_need_device();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_f16),
                                     cmocka_unit_test(test_i8), cmocka_unit_test(test_splits)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
