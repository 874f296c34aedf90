/* compare: files of values that must be refused, and what is said where something was not checked. */
#include "candidate_file.h"

#include "load/candidate.h"

/* One dataset, and what is wrong with it. */
typedef struct Refusal {
  const char *path;
  int rank;
  hsize_t shape[4];
  int type; /* 0 f32, 1 f64, 2 u16 */
  const char *dtype;
  const int64_t *rows;
  int64_t row_count;
  const char *message;
} Refusal;

static void test_what_is_refused(void **state) {
  (void)state;
  static const int64_t twice[] = {1, 1}, outside[] = {0, 8}, two[] = {0, 1};
  static const Refusal refusals[] = {
      {"/cases/main/stages/attn.norm/0", 2, {8, 63}, 0, NULL, NULL, 0, "shape [8, 63], expected [8, 64]"},
      {"/cases/main/stages/attn.norm/0", 2, {64, 8}, 0, NULL, NULL, 0, "shape [64, 8]"},
      {"/cases/main/stages/attn.norm/0", 1, {512}, 0, NULL, NULL, 0, "shape [512]"},
      {"/cases/main/stages/attn.norm/0", 2, {7, 64}, 0, NULL, NULL, 0, "7 of 8 rows, and no attribute rows"},
      {"/cases/main/stages/attn.norm/0", 2, {2, 64}, 0, NULL, twice, 2, "one is named twice"},
      {"/cases/main/stages/attn.norm/0",
       2,
       {2, 64},
       0,
       NULL,
       outside,
       2,
       "one is outside of the value's rows (0 to 7)"},
      {"/cases/main/stages/attn.norm/0", 2, {3, 64}, 0, NULL, two, 2, "not as many values as the dataset has rows"},
      {"/cases/main/stages/attn.norm/0", 2, {8, 64}, 1, NULL, NULL, 0, "type f64, expected f32, f16"},
      {"/cases/main/stages/attn.norm/0", 2, {8, 64}, 2, NULL, NULL, 0, "u16 without the attribute dtype"},
      {"/cases/main/stages/attn.norm/0", 2, {8, 64}, 2, "int8", NULL, 0, "attribute dtype is \"int8\""},
      {"/cases/main/stages/attn.norm/7", 2, {8, 64}, 0, NULL, NULL, 0, "\"7\" is no layer; valid: 0 to 1"},
      {"/cases/main/stages/attn.norm/x", 2, {8, 64}, 0, NULL, NULL, 0, "\"x\" is no layer"},
      {"/cases/main/stages/attn.norm/00", 2, {8, 64}, 0, NULL, NULL, 0, "\"00\" is no layer; valid: 0 to 1"},
      {"/cases/main/stages/attn.norm/+0", 2, {8, 64}, 0, NULL, NULL, 0, "\"+0\" is no layer"},
      {"/cases/main/context_state/k/01", 2, {8, 64}, 0, NULL, NULL, 0, "\"01\" is no layer"},
      {"/cases/main/stages/attn.norm", 2, {8, 64}, 0, NULL, NULL, 0, "expected a group"},
      {"/cases/main/stages/final.norm/0", 2, {8, 64}, 0, NULL, NULL, 0, "expected a dataset"},
      {"/cases/main/stages/attn.nrom/0", 2, {8, 64}, 0, NULL, NULL, 0, "stage \"attn.nrom\" is unknown; there are: "},
      {"/cases/other/stages/attn.norm/0",
       2,
       {8, 64},
       0,
       NULL,
       NULL,
       0,
       "case \"other\" is not in t.h5, which has: cut"},
      {"/stages/attn.norm/0", 2, {8, 64}, 0, NULL, NULL, 0, "holds no /cases"},
  };
  static const float zeros[CANDIDATE_MOST];
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const Refusal *r = &refusals[i];
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_U16LE};
    hid_t file = candidate_create();
    hid_t data = candidate_put(file, r->path, types[r->type], types[r->type], r->rank, r->shape, zeros);
    if (r->dtype != NULL) candidate_put_text(data, "dtype", r->dtype);
    if (r->rows != NULL) candidate_put_rows(data, r->rows, (hsize_t)r->row_count);
    H5Dclose(data);
    H5Fclose(file);
    expect_error(2, r->message, "compare t.h5 c.h5 -q");
  }
}

static void test_files_and_usage(void **state) {
  (void)state;
  write_whole("c.h5", "no HDF5", 7);
  expect_error(2, "c.h5: not a readable HDF5 file", "compare t.h5 c.h5 -q");
  expect_error(2, "error: none.h5: cannot open", "compare t.h5 none.h5 -q");
  expect_error(2, "error: none.h5: cannot open", "compare none.h5 t.h5 -q");
  hid_t file = candidate_create();
  candidate_put_text(file, "format", DFLASH_CANDIDATE_FORMAT);
  H5Fclose(file);
  expect_error(2, "compare GOLDEN FILE", "verify c.h5 -q --backend reference");
  file = candidate_create();
  candidate_put_text(file, "format", "dflash-dump");
  H5Fclose(file);
  expect_error(2, "attribute format is \"dflash-dump\"", "compare t.h5 c.h5 -q");
  file = candidate_create();
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  candidate_put_text(file, "profile", "fp8");
  candidate_put_text(file, "inputs_hash", "00");
  H5Fclose(file);
  expect_error(2, "attribute profile: profile 'fp8' is unknown", "compare t.h5 c.h5 -q");
  expect_error(2, "other inputs", "compare t.h5 c.h5 -q --profile bf16");
  expect_error(2, "a golden file and a file of values are needed", "compare t.h5 -q");
  expect_error(2, "valid: chain, local", "compare t.h5 t.h5 -q --mode alone");
  expect_error(2, "no case matches 'nothing'", "compare t.h5 t.h5 -q --case nothing");
  expect_error(2, "stage 'attn.nrom' is unknown", "compare t.h5 t.h5 -q --stage attn.nrom");
}

static void put_inputs_hash(hid_t file) {
  hid_t from = H5Fopen("t.h5", H5F_ACC_RDONLY, H5P_DEFAULT), attribute = H5Aopen(from, "inputs_hash", H5P_DEFAULT);
  hid_t type = H5Aget_type(attribute);
  char hash[65] = "";
  if (H5Tis_variable_str(type) > 0) {
    char *text = NULL;
    assert_true(H5Aread(attribute, type, (void *)&text) >= 0);
    snprintf(hash, sizeof hash, "%s", text);
    H5free_memory(text);
  } else {
    assert_true(H5Tget_size(type) <= sizeof hash && H5Aread(attribute, type, hash) >= 0);
  }
  assert_int_equal(strlen(hash), 64);
  H5Tclose(type);
  H5Aclose(attribute);
  H5Fclose(from);
  candidate_put_text(file, "inputs_hash", hash);
}

/* Without both hashes the inputs may be others: one line says so. */
static void test_inputs_that_are_not_checked(void **state) {
  (void)state;
  hid_t file = candidate_create();
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  H5Fclose(file);
  Program p = program("compare t.h5 c.h5");
  expect_status(&p, 0);
  assert_string_equal(p.err, "dflash-harness: warning: c.h5 has no inputs_hash: not checked whether both files are of "
                             "the same inputs\n");
  program_close(&p);
  p = program("compare t.h5 c.h5 -q");
  expect_status(&p, 0);
  assert_string_equal(p.err, "");
  program_close(&p);
  file = H5Fopen("c.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  put_inputs_hash(file);
  H5Fclose(file);
  p = program("compare t.h5 c.h5");
  expect_status(&p, 0);
  assert_string_equal(p.err, "");
  program_close(&p);
  copy_whole(FIXTURE_FILE("tiny-f32.h5"), "g.h5");
  file = H5Fopen("c.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "cases/main/stages/attn.norm/0", H5P_DEFAULT);
  H5Fclose(file);
  p = program("compare g.h5 c.h5");
  expect_status(&p, 4);
  expect_contains(&p, p.err, "warning: g.h5 has no inputs_hash: not checked");
  program_close(&p);
}

/* As verify declines it: nothing of this golden is computed otherwise in i8. */
static void test_i8_without_q4tp(void **state) {
  (void)state;
  copy_whole(FIXTURE_FILE("tiny-f32.h5"), "g.h5");
  expect_error(3, "g.h5: profile i8 is for q4tp matrices, and no matrix of the golden is q4tp",
               "compare g.h5 g.h5 -q --profile i8 --json r.jsonl --junit r.xml");
  cJSON *records = read_records("r.jsonl");
  assert_string_equal(text_in(case_of(records, "main"), "outcome"), "unsupported");
  assert_int_equal(number_in(last_record(records), "exit"), 3);
  cJSON_Delete(records);
  size_t size;
  char *xml = read_whole("r.xml", &size);
  assert_non_null(strstr(xml, "skipped message=\"unsupported: profile i8"));
  free(xml);
  hid_t file = candidate_create(); /* the file's own profile, too */
  candidate_put_text(file, "profile", "i8");
  H5Gclose(H5Gcreate2(file, "cases", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(file, "cases/main", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Fclose(file);
  expect_error(3, "c.h5: profile i8 is for q4tp matrices", "compare g.h5 c.h5 -q");
  expect_run(4, "compare t.h5 c.h5 -q"); /* q4tp: only that nothing is in the file */
  expect_run(0, "compare g.h5 g.h5 -q --profile f16");
}

/* Cut and changed: bad input or a verdict, never a crash of the program. */
static void test_damaged_bytes(void **state) {
  (void)state;
  size_t size;
  hid_t file = candidate_create();
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  H5Fclose(file);
  char *bytes = read_whole("c.h5", &size);
  for (size_t i = 0; i < 30; i++) {
    size_t at = i * 149 % size;
    char kept = bytes[at];
    bytes[at] = (char)(kept ^ (1 << i % 8));
    write_whole("c.h5", bytes, i < 6 ? size * i / 6 : size);
    Program p = program("compare t.h5 c.h5 -q --timeout 1s");
    if (p.status != 0 && p.status != 1 && p.status != 4) expect_status(&p, 2);
    program_close(&p);
    bytes[at] = kept;
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_refused),
      cmocka_unit_test(test_files_and_usage),
      cmocka_unit_test(test_inputs_that_are_not_checked),
      cmocka_unit_test(test_i8_without_q4tp),
      cmocka_unit_test(test_damaged_bytes),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
