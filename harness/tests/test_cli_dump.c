/* verify --dump, and dumps judged again: the same verdicts without a backend; what is damaged is refused. */
#include "program.h"

#include <hdf5.h>
#include <sys/stat.h>

#define OFF "verify t.h5 --case main --backend off-stage"

static cJSON *records_of(int status, const char *arguments) {
  expect_run(status, "verify %s -q --json r.jsonl", arguments);
  expect_no_leftovers();
  return read_records("r.jsonl");
}

static void expect_same(const cJSON *a, const cJSON *b, const char *const *members) {
  for (int i = 0; members[i] != NULL; i++) {
    const cJSON *left = cJSON_GetObjectItem(a, members[i]), *right = cJSON_GetObjectItem(b, members[i]);
    if (!cJSON_Compare(left, right, 1)) fail_msg("%s differs", members[i]);
  }
}

static void test_a_dump_gives_the_same_first_divergence(void **state) {
  (void)state;
  static const char *const same[] = {"stage", "layer", "mode",    "outcome", "place", "got",    "expected", "sigma",
                                     "score", "bad",   "pattern", "max_abs", "nmse",  "cosine", NULL};
  cJSON *before = records_of(1, "t.h5 --case main --backend off-stage --mode alone,chain,local --dump d.h5");
  cJSON *after = records_of(1, "d.h5");
  const cJSON *was = case_of(before, "main"), *is = case_of(after, "main");
  expect_same(cJSON_GetObjectItem(was, "first"), cJSON_GetObjectItem(is, "first"), same);
  static const char *const shared[] = {"outcome", "message", "reproduce", "backend", "device", "profile", NULL};
  expect_same(was, is, shared);
  const char *const modes[] = {"alone", "chain", "local"};
  for (int i = 0; i < 3; i++)
    expect_same(verdict_of(before, "main", modes[i], "attn.mix", 0), verdict_of(after, "main", modes[i], "attn.mix", 0),
                same);
  assert_int_equal(number_in(last_record(after), "exit"), 1);
  cJSON_Delete(before);
  cJSON_Delete(after);
  expect_run(1, "verify d.h5 -q --mode alone --stage attn.mix/0 --layer 0");
  expect_run(4, "verify d.h5 -q --stage mlp.up");
  expect_error(2, "no case matches 'none'|main", "verify d.h5 -q --case none");
}

/* What fails only because of the stage before it says so in the dump too. */
static void test_what_is_inherited_stays_so(void **state) {
  (void)state;
  expect_run(1, "verify t.h5 -q --case main --backend faulty --option defect=conv-taps-reversed --dump d.h5");
  cJSON *records = records_of(1, "d.h5");
  const cJSON *verdict = verdict_of(records, "main", "chain", "attn.q_proj", 0);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(verdict, "inherited")));
  assert_non_null(strstr(text_in(verdict, "note"), "first divergence is at attn.conv_in/0"));
  assert_non_null(verdict_of(records, "main", "alone", "attn.conv_in", 0));
  assert_non_null(verdict_of(records, "main", "chain", "head.logits", -1));
  cJSON_Delete(records);
  /* asked for alone, it comes first, with its own command */
  records = records_of(1, "d.h5 --stage attn.q_proj --layer 0");
  const cJSON *c = case_of(records, "main"), *first = cJSON_GetObjectItem(c, "first");
  assert_string_equal(text_in(first, "stage"), "attn.q_proj");
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(first, "inherited")));
  assert_string_equal(text_in(first, "note"), "passes on its own inputs; first divergence is at attn.conv_in/0");
  assert_non_null(strstr(text_in(c, "reproduce"), "--stage attn.q_proj --layer 0 --mode chain"));
  cJSON_Delete(records);
}

static void test_classes_survive(void **state) {
  (void)state;
  static const char *const backends[][2] = {
      {"nan-stage", "nonfinite"}, {"unwritten-stage", "unwritten"}, {"overrun-stage", "overrun"}};
  for (int i = 0; i < 3; i++) {
    expect_run(1, "verify t.h5 -q --case main --backend %s --mode alone --dump d.h5", backends[i][0]);
    cJSON *records = records_of(1, "d.h5");
    assert_string_equal(text_in(verdict_of(records, "main", "alone", "attn.mix", 0), "outcome"), backends[i][1]);
    cJSON_Delete(records);
  }
}

static void test_the_inputs_stand_beside(void **state) {
  (void)state;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  hid_t file = H5Fopen("d.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  static const char *const sources[] = {"attn.q/0", "attn.k/0", "attn.v_proj/0", "context_state.k/0",
                                        "context_state.v/0"};
  for (int i = 0; i < 5; i++) {
    char path[64], *found = NULL;
    snprintf(path, sizeof path, "/verdicts/0/inputs/%d", i);
    hid_t attribute = H5Aopen_by_name(file, path, "source", H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    assert_true(H5Aread(attribute, type, &found) >= 0);
    assert_string_equal(found, sources[i]);
    H5free_memory(found);
    H5Tclose(type);
    H5Aclose(attribute);
  }
  H5Fclose(file);
}

static void test_nothing_wrong_nothing_written(void **state) {
  (void)state;
  remove("none.h5");
  Program p = program("verify t.h5 --case main --backend reference --dump none.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "dump: none.h5 is not written: no value failed");
  program_close(&p);
  assert_false(file_exists("none.h5"));
  p = program("verify t.h5 --case main --backend error-block --mode chain --dump none.h5");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "is not written: the failures have no values");
  program_close(&p);
  assert_false(file_exists("none.h5"));
}

/* The place is looked at before anything runs or is written, and nothing stays there. */
static void test_a_place_that_cannot_be_written(void **state) {
  (void)state;
  static const char *const places[][2] = {{"folder", "folder: exists and is not a regular file"},
                                          {"/dev/null", "/dev/null: exists and is not a regular file"},
                                          {"nowhere/d.h5", "nowhere/d.h5: cannot be written: No such file"}};
  mkdir("folder", 0777);
  remove("early.jsonl");
  for (int i = 0; i < 3; i++) {
    expect_error(2, places[i][1], "verify t.h5 --case main --backend reference --json early.jsonl --dump %s",
                 places[i][0]);
    assert_false(file_exists("early.jsonl"));
    expect_no_leftovers();
  }
}

/* A crash in the block: what failed alone before it is whole, and nothing else is in the file. */
static void test_a_crash_keeps_what_was_dumped(void **state) {
  (void)state;
  expect_run(1, "verify t.h5 -q --case main --backend off-crash --mode alone,chain --dump d.h5");
  expect_no_leftovers();
  cJSON *records = records_of(1, "d.h5");
  assert_int_equal(count_records(records, "verdict"), 1);
  assert_string_equal(text_in(verdict_of(records, "main", "alone", "attn.mix", 0), "outcome"), "mismatch");
  cJSON_Delete(records);
}

static void test_the_limit(void **state) {
  (void)state;
  remove("l.h5");
  Program p = program(OFF " --mode alone,chain --dump l.h5 --dump-limit 26000");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "dump: l.h5 holds 1 failing value of 3 failures; 1 has no values\n");
  expect_contains(&p, p.err, "1 more failing values are left out");
  program_close(&p);
  p = program("verify l.h5");
  expect_status(&p, 1);
  expect_contains(&p, p.err, "leaves out 1 more failing values");
  program_close(&p);
  remove("l.h5");
  p = program(OFF " --mode alone --dump l.h5 --dump-limit 100");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "is not written: nothing is within --dump-limit");
  program_close(&p);
  assert_false(file_exists("l.h5"));
  expect_error(2, "--dump-limit: at least 1", OFF " -q --dump l.h5 --dump-limit 0");
}

static void test_usage(void **state) {
  (void)state;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  expect_error(2, "dumps and golden files are verified apart|1 of 2", "verify d.h5 t.h5 -q --backend reference");
  static const char *const computing[] = {"--backend reference", "--profile exact", "--device cpu", "--option a=b"};
  for (int i = 0; i < 4; i++)
    expect_error(2, "d.h5 is a dump: it is judged by itself, --", "verify d.h5 -q %s", computing[i]);
  expect_error(2, "--dump and --resume are for golden files", "verify d.h5 -q --dump e.h5");
  expect_error(2, "not written over", OFF " -q --dump t.h5");
  expect_error(2, "names the file of another output", OFF " -q --json j.jsonl --dump j.jsonl");
  expect_error(2, "cannot be written", OFF " -q --dump nowhere/d.h5");
  expect_error(2, "--backend is missing", "verify t.h5 -q");
  expect_run(1, "verify d.h5 -q --junit d.xml");
  assert_true(file_exists("d.xml"));
}

/* ---- hostile dumps ---- */

static void put_text(const char *object, const char *name, const char *text) {
  hid_t file = H5Fopen("h.h5", H5F_ACC_RDWR, H5P_DEFAULT), node = H5Oopen(file, object, H5P_DEFAULT);
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, strlen(text) + 1);
  if (H5Aexists(node, name) > 0) H5Adelete(node, name);
  hid_t attribute = H5Acreate2(node, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, type, text) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(node);
  H5Fclose(file);
}

static void put_number(const char *object, const char *name, int64_t value) {
  hid_t file = H5Fopen("h.h5", H5F_ACC_RDWR, H5P_DEFAULT), node = H5Oopen(file, object, H5P_DEFAULT);
  hid_t space = H5Screate(H5S_SCALAR);
  if (H5Aexists(node, name) > 0) H5Adelete(node, name);
  hid_t attribute = H5Acreate2(node, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Oclose(node);
  H5Fclose(file);
}

static void test_changed_dumps_are_refused(void **state) {
  (void)state;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  static const struct {
    const char *object, *name, *text;
    int64_t value;
    const char *message;
  } changes[] = {
      {"/", "version", NULL, 2, "attribute version is 2, expected 1"},
      {"/", "left_out", NULL, -1, "attribute left_out is -1; valid: 0 to 2^53"},
      {"/", "left_out", NULL, INT64_MAX, "attribute left_out is 9223372036854775807; valid"},
      {"/", "left_out", "3", 0, "attribute left_out is string, expected i64"},
      {"/", "contents_hash", "00", 0, "contents_hash does not match"},
      {"/verdicts/0", "case", "other", 0, "contents_hash does not match"},
      {"/verdicts/0", "case", "a/b", 0, "the case's name is with a slash"},
      {"/verdicts/0", "stage", "attn.none", 0, "stage \"attn.none\" has no values"},
      {"/verdicts/0", "stage", "select", 0, "stage \"select\" has no values"},
      {"/verdicts/0", "stage", "mlp.up", 0, "width is"},
      {"/verdicts/0", "layer", NULL, 99, "layer is 99"},
      {"/verdicts/0", "layer", NULL, -1, "layer is -1"},
      {"/verdicts/0", "geometry", NULL, 7, "geometry 7 is not there"},
      {"/verdicts/0", "position", NULL, INT64_MIN, "position is"},
      {"/verdicts/0", "damage", NULL, INT64_MIN, "damage is"},
      {"/verdicts/0", "mode", "sideways", 0, "contents_hash does not match"},
      {"/geometry/0", "heads", NULL, 0, "heads"},
      {"/geometry/0", "head_dim", NULL, INT64_MAX - 1, "overflow"},
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    copy_whole("d.h5", "h.h5");
    if (changes[i].text != NULL)
      put_text(changes[i].object, changes[i].name, changes[i].text);
    else
      put_number(changes[i].object, changes[i].name, changes[i].value);
    expect_error(2, changes[i].message, "verify h.h5 -q");
  }
}

static void test_a_changed_value_is_refused(void **state) {
  (void)state;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  copy_whole("d.h5", "h.h5");
  hid_t file = H5Fopen("h.h5", H5F_ACC_RDWR, H5P_DEFAULT), got = H5Dopen2(file, "/verdicts/0/got", H5P_DEFAULT);
  float values[4096] = {0};
  assert_true(H5Dget_storage_size(got) <= sizeof values);
  assert_true(H5Dread(got, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  values[3] += 1;
  assert_true(H5Dwrite(got, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(got);
  H5Fclose(file);
  expect_error(2, "contents_hash does not match", "verify h.h5 -q");
}

/* What is wrong with the file is said, not that a backend is missing. */
static void test_what_cannot_be_read_is_told(void **state) {
  (void)state;
  size_t size;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  char *bytes = read_whole("d.h5", &size);
  write_whole("h.h5", bytes, size / 2);
  free(bytes);
  expect_error(2, "h.h5: not a readable HDF5 file: truncated file", "verify h.h5 -q --junit h.xml");
  char *xml = read_whole("h.xml", &size);
  assert_non_null(strstr(xml, " failures=\"0\" errors=\"1\""));
  free(xml);
  expect_error(2, "h.h5: not a readable HDF5 file: truncated file", "verify h.h5 -q --profile i8");
  write_whole("text.h5", "no HDF5", 7);
  expect_error(2, "text.h5: not a readable HDF5 file", "verify text.h5 -q");
  expect_error(2, "none.h5: cannot open", "verify none.h5 -q");
  hid_t file = H5Fcreate("empty.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  expect_error(2, "empty.h5: /: attribute format: missing", "verify empty.h5 -q");
  /* beside a dump, whose failures count first */
  expect_error(1, "h.h5: not a readable HDF5 file", "verify h.h5 d.h5 -q");
  expect_error(2, "dumps and golden files are verified apart|1 of 2", "verify h.h5 d.h5 -q --profile exact");
  expect_error(2, "--backend is missing", "verify h.h5 t.h5 -q");
  expect_error(2, "--backend is missing", "verify h.h5 -q --json r.jsonl --resume");
}

/* Cut at any length, or with bytes changed in its metadata: bad input or, where the bytes do not matter, the verdict.
 */
static void test_damaged_bytes(void **state) {
  (void)state;
  size_t size;
  expect_run(1, OFF " -q --mode alone --dump d.h5");
  char *bytes = read_whole("d.h5", &size);
  for (size_t cut = 0; cut < 6; cut++) {
    write_whole("h.h5", bytes, size * cut / 6);
    Program p = program("verify h.h5 -q --timeout 500ms");
    expect_status(&p, 2);
    program_close(&p);
  }
  for (size_t i = 0; i < 40; i++) {
    size_t at = i * 211 % (size < 8192 ? size : 8192);
    char kept = bytes[at];
    bytes[at] = (char)(kept ^ (1 << i % 8));
    write_whole("h.h5", bytes, size);
    Program p = program("verify h.h5 -q --timeout 500ms");
    if (p.status != 1) expect_status(&p, 2);
    program_close(&p);
    bytes[at] = kept;
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_dump_gives_the_same_first_divergence),
      cmocka_unit_test(test_what_is_inherited_stays_so),
      cmocka_unit_test(test_classes_survive),
      cmocka_unit_test(test_the_inputs_stand_beside),
      cmocka_unit_test(test_nothing_wrong_nothing_written),
      cmocka_unit_test(test_a_place_that_cannot_be_written),
      cmocka_unit_test(test_a_crash_keeps_what_was_dumped),
      cmocka_unit_test(test_the_limit),
      cmocka_unit_test(test_usage),
      cmocka_unit_test(test_changed_dumps_are_refused),
      cmocka_unit_test(test_a_changed_value_is_refused),
      cmocka_unit_test(test_what_cannot_be_read_is_told),
      cmocka_unit_test(test_damaged_bytes),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
