/* Timing of this backend: parity first, spans that fit into the block, a clock that ticks, and a processor that is not
 * taken for a GPU. No time is asserted. */
#include "gate.h"

static const cJSON *record_of(const cJSON *records, const char *type) {
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), type) == 0) return record;
  }
  fail_msg("no record of type %s", type);
  return NULL;
}

static const cJSON *member(const cJSON *object, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  if (!item) fail_msg("no member %s", name);
  return item;
}

/* One pass over the stages, each with a time of its own; two layers of 8 rows have 42 that a block shows. */
static void expect_stages(const cJSON *bench, int samples) {
  const cJSON *stage;
  assert_true(cJSON_GetArraySize(member(bench, "stages")) > 30);
  cJSON_ArrayForEach(stage, member(bench, "stages")) {
    assert_int_equal(number_in(member(stage, "time"), "n"), samples);
    assert_true(number_in(member(stage, "time"), "min") >= 0);
    assert_true(text_in(stage, "path")[0] != '\0');
  }
  assert_true(number_in(bench, "sum_share") > 0);
}

static void test_bench(void **state) {
  (void)state;
  Program p = program("bench " GATE_FILE("operations.h5") " --backend vulkan --backend-path " DFLASH_BACKEND_FOLDER
                                                          " --budget 300ms --max-samples 8 --json r.jsonl");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "a processor, not a GPU");
  cJSON *records = read_records("r.jsonl");
  const cJSON *bench = record_of(records, "bench"), *model = record_of(records, "model"),
              *block = member(bench, "block");
  const int samples = cJSON_GetArraySize(member(bench, "samples"));
  assert_in_range(samples, 1, 8);
  assert_true(cJSON_IsTrue(member(model, "is_cpu")));
  expect_contains(&p, text_in(model, "path"), "a processor, not a GPU");
  assert_string_equal(text_in(member(bench, "parity"), "outcome"), "pass");
  assert_true(number_in(member(bench, "clock"), "resolution_ns") >= 1);
  assert_true(number_in(member(block, "device"), "min") <= number_in(member(block, "wall"), "min"));
  expect_stages(bench, samples);
  cJSON_Delete(records);
  program_close(&p);
}

int main(void) {
  gate_need_device();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bench)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
