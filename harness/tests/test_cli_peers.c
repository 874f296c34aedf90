/* bench --peers: a ratio to records that say they ran the same, and a line for those that did not. The peers are made
 * up here: no time of theirs was measured. */
#include <math.h>

#include "load/golden.h"
#include "model/geometry.h"
#include "program.h"

#define BENCH "bench t.h5 --backend reference --case main --max-samples 8 --budget 1s "

/* The golden's bench record, from which a peer takes what it must share. */
static cJSON *own_records(void) {
  expect_run(0, BENCH "-q --json own.jsonl");
  return read_records("own.jsonl");
}

static const cJSON *of_type(const cJSON *records, const char *type) {
  const cJSON *record;
  cJSON_ArrayForEach(record, records) if (strcmp(text_in(record, "type"), type) == 0) return record;
  fail_msg("no %s record", type);
  return NULL;
}

static cJSON *geometry(const char *path) {
  DflashGolden *golden = NULL;
  DflashError error = {0};
  if (dflash_golden_open(path, 0, &golden, &error) != DFLASH_OK) fail_msg("%s", error.message);
  cJSON *object = dflash_geometry_to_json(dflash_golden_geometry(golden));
  dflash_golden_close(golden);
  return object;
}

/* A peer that took `ns` and reached `share` of its read rate. */
static cJSON *peer(const cJSON *own, double ns, double share) {
  const cJSON *model = of_type(own, "model"), *done = case_of(own, "main");
  cJSON *record = cJSON_Parse("{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"peer\",\"case\":\"main\","
                              "\"peer\":\"bf16\",\"way\":\"compiled\",\"library\":\"made up\",\"outcome\":\"pass\","
                              "\"least_share\":0.58}");
  cJSON_AddStringToObject(record, "device_name", text_in(model, "device_name"));
  cJSON_AddStringToObject(record, "inputs_hash", text_in(done, "inputs_hash"));
  cJSON_AddStringToObject(record, "values_hash", text_in(done, "values_hash"));
  cJSON_AddItemToObject(record, "geometry", geometry("t.h5"));
  cJSON_AddNumberToObject(cJSON_AddObjectToObject(record, "time"), "median", ns);
  cJSON_AddNumberToObject(record, "share_read", share);
  return record;
}

static void write_record(const char *mode, cJSON *record) {
  FILE *file = fopen("p.jsonl", mode);
  char *line = cJSON_PrintUnformatted(record);
  assert_non_null(file);
  assert_non_null(line);
  fprintf(file, "%s\n", line);
  fclose(file);
  free(line);
  cJSON_Delete(record);
}

static void test_ratios(void **state) {
  (void)state;
  cJSON *own = own_records();
  write_record("w", peer(own, 5e9, 0.61));
  write_record("a", peer(own, 5e9, 0.4));
  Program p = program(BENCH "--json r.jsonl --peers p.jsonl");
  expect_status(&p, 0);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, "peer bf16 compiled (made up): 5.000 s, 61.0% of read; this backend is");
  expect_contains(&p, p.out, "times as fast\n");
  expect_contains(&p, p.out, "times as fast; the ratio does not count: the peer is below 58.0% of read\n");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  const cJSON *bench = of_type(records, "bench"), *peers = cJSON_GetObjectItem(bench, "peers");
  const double block = number_in(cJSON_GetObjectItem(cJSON_GetObjectItem(bench, "block"), "device"), "median");
  assert_int_equal(cJSON_GetArraySize(peers), 2);
  const cJSON *first = cJSON_GetArrayItem(peers, 0), *second = cJSON_GetArrayItem(peers, 1);
  assert_true(fabs(number_in(first, "ratio") / (5e9 / block) - 1) < 1e-9);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(first, "counts")));
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(second, "counts")));
  cJSON_Delete(records);
  cJSON_Delete(own);
}

/* One line each, exit status 2, nothing timed. */
static void test_peers_of_something_else(void **state) {
  (void)state;
  cJSON *own = own_records();
  static const struct {
    const char *member, *parts;
  } other[] = {{"inputs_hash", "p.jsonl: the peer ran another inputs_hash: 'other', here '"},
               {"values_hash", "p.jsonl: the peer ran another values_hash: 'other', here '"},
               {"case", "p.jsonl: the peer ran another case: 'other', here 'main'"},
               {"device_name", "p.jsonl: the peer ran another device: 'other', here '"}};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    cJSON *record = peer(own, 5e9, 0.61);
    cJSON_ReplaceItemInObject(record, other[i].member, cJSON_CreateString("other"));
    write_record("w", record);
    expect_error(2, other[i].parts, BENCH "-q --json r.jsonl --peers p.jsonl");
    cJSON *records = read_records("r.jsonl");
    assert_int_equal(count_records(records, "bench"), 0);
    cJSON_Delete(records);
  }
  cJSON *record = peer(own, 5e9, 0.61);
  cJSON_ReplaceItemInObject(cJSON_GetObjectItem(record, "geometry"), "eps", cJSON_CreateNumber(0.5));
  write_record("w", record);
  expect_error(2, "p.jsonl: the peer ran another geometry", BENCH "-q --peers p.jsonl");
  record = peer(own, 5e9, 0.61);
  cJSON_DeleteItemFromObject(cJSON_GetObjectItem(record, "geometry"), "heads");
  write_record("w", record);
  expect_error(2, "p.jsonl|heads", BENCH "-q --peers p.jsonl");
  cJSON_Delete(own);
}

static void expect_refused(const cJSON *own, const char *member, cJSON *value, const char *parts) {
  cJSON *record = peer(own, 5e9, 0.61);
  cJSON_ReplaceItemInObject(record, member, value);
  write_record("w", record);
  expect_error(2, parts, BENCH "-q --peers p.jsonl");
}

static void test_records_that_are_none(void **state) {
  (void)state;
  cJSON *own = own_records();
  expect_refused(own, "time", cJSON_Parse("{\"median\":0}"), "p.jsonl: record 1, a peer, has no median above 0");
  expect_refused(own, "time", cJSON_CreateString("nan"), "has no median above 0");
  expect_refused(own, "share_read", cJSON_CreateString("inf"), "has no share_read above 0");
  expect_refused(own, "least_share", cJSON_CreateNumber(-1), "has no least_share above 0");
  expect_refused(own, "way", cJSON_CreateNumber(1), "lacks one of peer, way");
  expect_refused(own, "outcome", cJSON_CreateString("mismatch"), "has a time though it did not pass");
  expect_refused(own, "type", cJSON_CreateString("other"), "p.jsonl: holds no peer with a time");
  expect_refused(own, "version", cJSON_CreateNumber(2), "p.jsonl: line 1|no record of schema");
  expect_error(2, "own.jsonl: holds no peer with a time", BENCH "-q --peers own.jsonl");
  cJSON_Delete(own);
}

static void test_usage(void **state) {
  (void)state;
  expect_error(2, "nosuch.jsonl", BENCH "-q --peers nosuch.jsonl");
  expect_error(2, "--peers goes with blocks, not with --round", BENCH "-q --peers p.jsonl --round 4");
  expect_error(2, "--against goes with none of|--peers", BENCH "-q --peers p.jsonl --against blas");
}

/* A golden without hashes cannot be told from another. */
static void test_a_golden_without_hashes(void **state) {
  (void)state;
  cJSON *own = own_records();
  copy_whole(FIXTURE_FILE("tiny-f32.h5"), "tiny.h5");
  cJSON *record = peer(own, 5e9, 0.61);
  cJSON_ReplaceItemInObject(record, "geometry", geometry("tiny.h5"));
  write_record("w", record);
  expect_error(2, "tiny.h5 has no inputs_hash: nothing says that the peer ran the same golden",
               "bench tiny.h5 --backend reference -q --max-samples 4 --peers p.jsonl");
  cJSON_Delete(own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ratios),
      cmocka_unit_test(test_peers_of_something_else),
      cmocka_unit_test(test_records_that_are_none),
      cmocka_unit_test(test_usage),
      cmocka_unit_test(test_a_golden_without_hashes),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
