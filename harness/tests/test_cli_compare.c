/* compare: values as an engine would dump them, made from a golden's own and changed. */
#include "program.h"

#include <hdf5.h>
#include <math.h>
#include <unistd.h>

#include "load/candidate.h"
#include "model/storage.h"

enum { MOST = 1 << 16 };

/* A golden's dataset, widened; its shape comes back. */
typedef struct Values {
  float data[MOST];
  int rank;
  hsize_t shape[4], count;
} Values;

static Values golden;

static void read_golden(const char *path) {
  hid_t file = H5Fopen("t.h5", H5F_ACC_RDONLY, H5P_DEFAULT), data = H5Dopen2(file, path, H5P_DEFAULT);
  assert_true(data >= 0);
  hid_t space = H5Dget_space(data);
  golden.rank = H5Sget_simple_extent_dims(space, golden.shape, NULL);
  golden.count = (hsize_t)H5Sget_simple_extent_npoints(space);
  assert_true(golden.count <= MOST);
  assert_true(H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, golden.data) >= 0);
  H5Sclose(space);
  H5Dclose(data);
  H5Fclose(file);
}

static hid_t create(void) {
  hid_t file = H5Fcreate("c.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

static void put_text(hid_t object, const char *name, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, strlen(text) + 1);
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, type, text) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

static void put_rows(hid_t object, const int64_t *rows, hsize_t count) {
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t attribute = H5Acreate2(object, "rows", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, rows) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

/* An open dataset of the file. */
static hid_t put(hid_t file, const char *path, hid_t type, hid_t memory, int rank, const hsize_t *shape,
                 const void *data) {
  hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(rank, shape, NULL);
  H5Pset_create_intermediate_group(links, 1);
  hid_t dataset = H5Dcreate2(file, path, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(dataset >= 0 && H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Sclose(space);
  H5Pclose(links);
  return dataset;
}

static hid_t put_f32(hid_t file, const char *path, int rank, const hsize_t *shape) {
  return put(file, path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, shape, golden.data);
}

/* The golden's stage in the file, as it is. */
static void copy_stage(hid_t file, const char *path) {
  read_golden(path);
  H5Dclose(put_f32(file, path, golden.rank, golden.shape));
}

static hid_t f16_type(void) {
  hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

static cJSON *compare(int status, const char *arguments) {
  expect_run(status, "compare t.h5 c.h5 %s -q --json r.jsonl", arguments);
  return read_records("r.jsonl");
}

static void expect_outcome(const cJSON *records, const char *mode, const char *stage, int layer, const char *outcome) {
  const cJSON *verdict = verdict_of(records, "main", mode, stage, layer);
  if (verdict == NULL) fail_msg("no verdict of %s", stage);
  if (strcmp(text_in(verdict, "outcome"), outcome) != 0)
    fail_msg("%s: %s, expected %s", stage, text_in(verdict, "outcome"), outcome);
}

static void test_a_golden_s_own_values_pass(void **state) {
  (void)state;
  expect_run(0, "compare t.h5 t.h5 -q --mode chain,local --json r.jsonl --junit r.xml");
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "case"), 3);
  assert_int_equal(number_in(case_of(records, "main"), "other"), 0);
  assert_true(number_in(case_of(records, "main"), "passed") > 80);
  expect_outcome(records, "local", "attn.mix", 1, "pass");
  expect_outcome(records, "local", "select", -1, "pass");
  expect_outcome(records, "chain", "context_state.k", 1, "pass");
  cJSON_Delete(records);
  expect_run(0, "compare t.h5 t.h5 -q --profile bf16");
  expect_run(0, "compare t.h5 t.h5 t.h5 -q --case main --stage attn.* --layer 1");
}

static void test_what_is_absent_is_not_passed(void **state) {
  (void)state;
  hid_t file = create();
  copy_stage(file, "/cases/main/stages/attn.norm/0");
  put_text(file, "engine", "my-engine 1.4");
  H5Fclose(file);
  cJSON *records = compare(0, "--mode chain,local");
  expect_outcome(records, "chain", "attn.norm", 0, "pass");
  expect_outcome(records, "local", "attn.norm", 0, "pass"); /* its input is the embeddings */
  expect_outcome(records, "chain", "attn.norm", 1, "not run");
  assert_string_equal(text_in(verdict_of(records, "main", "chain", "select", -1), "note"), "not in the file");
  assert_int_equal(number_in(case_of(records, "main"), "passed"), 2);
  assert_string_equal(text_in(case_of(records, "main"), "backend"), "my-engine 1.4");
  cJSON_Delete(records);
  cJSON_Delete(compare(4, "--stage mlp.up")); /* nothing that is asked for is there */
}

/* The summary counts it; --require-all makes it fail. */
static void test_what_is_absent_is_counted(void **state) {
  (void)state;
  hid_t file = create();
  copy_stage(file, "/cases/main/stages/attn.norm/0");
  copy_stage(file, "/cases/main/stages/attn.norm/1");
  H5Fclose(file);
  Program p = program("compare t.h5 c.h5 --stage attn.norm,attn.q,final.norm");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "; 3 stages not in the file; 2 of 3 cases not in the file; ");
  program_close(&p);
  p = program("compare t.h5 c.h5 --stage attn.norm --case main");
  expect_status(&p, 0);
  if (strstr(p.out, "not in the file") != NULL) fail_msg("%s", p.out);
  program_close(&p);
  expect_run(0, "compare t.h5 c.h5 -q --require-all --stage attn.norm --case main");
  expect_run(1, "compare t.h5 c.h5 -q --require-all --stage attn.norm --case cut");
  expect_run(0, "compare t.h5 t.h5 -q --require-all");
  cJSON *records = compare(1, "--stage attn.norm,attn.q --require-all --junit r.xml");
  assert_string_equal(text_in(case_of(records, "cut"), "outcome"), "not run");
  assert_string_equal(text_in(case_of(records, "cut"), "message"), "not in the file");
  assert_string_equal(text_in(case_of(records, "main"), "outcome"), "not run");
  assert_string_equal(text_in(case_of(records, "main"), "message"), "not in the file: 2 stages");
  assert_int_equal(number_in(last_record(records), "failed"), 3);
  cJSON_Delete(records);
  size_t size;
  char *xml = read_whole("r.xml", &size);
  assert_non_null(strstr(xml, " failures=\"3\" errors=\"0\""));
  free(xml);
}

/* A report is no greener than the exit status. */
static void test_what_cannot_be_read_is_an_error_in_junit(void **state) {
  (void)state;
  static const char *const runs[] = {"compare t.h5 none.h5", "compare t.h5 t.h5 --case main,nothing",
                                     "verify none.h5 t.h5 --backend reference --mode alone --case main"};
  for (int i = 0; i < 3; i++) {
    size_t size;
    Program p = program("%s -q --junit r.xml", runs[i]);
    expect_status(&p, 2);
    program_close(&p);
    char *xml = read_whole("r.xml", &size);
    assert_non_null(strstr(xml, " failures=\"0\" errors=\"1\""));
    assert_non_null(strstr(xml, i == 1 ? "name=\"command line\"" : "classname=\"none_h5\" name=\"read\""));
    assert_non_null(strstr(xml, i == 1 ? "no case matches" : "none.h5: cannot open"));
    free(xml);
  }
}

/* Its own inputs are right, so it is the first, in both modes; what follows is inherited. */
static void test_a_transposed_stage_is_named(void **state) {
  (void)state;
  hid_t file = create();
  static float swapped[MOST];
  copy_stage(file, "/cases/main/stages/attn.norm/0");
  copy_stage(file, "/cases/main/stages/attn.conv_in/0");
  read_golden("/cases/main/stages/attn.kernel/0");
  const hsize_t rows = golden.shape[0], width = golden.shape[1];
  for (hsize_t i = 0; i < rows * width; i++) swapped[i] = golden.data[i % rows * width + i / rows];
  memcpy(golden.data, swapped, sizeof swapped);
  H5Dclose(put_f32(file, "/cases/main/stages/attn.kernel/0", 2, golden.shape));
  H5Fclose(file);
  cJSON *records = compare(1, "--mode chain,local");
  const cJSON *first = cJSON_GetObjectItem(case_of(records, "main"), "first");
  assert_string_equal(text_in(first, "stage"), "attn.kernel");
  assert_string_equal(text_in(first, "mode"), "local");
  assert_non_null(strstr(text_in(first, "pattern"), "rows and columns exchanged"));
  assert_non_null(strstr(text_in(first, "cause"), "layout"));
  expect_outcome(records, "local", "attn.conv_in", 0, "mismatch"); /* right values, but not from this kernel */
  expect_outcome(records, "chain", "attn.conv_in", 0, "pass");
  const char *command = text_in(case_of(records, "main"), "reproduce");
  assert_string_equal(command,
                      "dflash-harness compare t.h5 c.h5 --profile exact --case main --stage attn.kernel --layer "
                      "0 --mode local");
  expect_run(1, "%s -q", command + strlen("dflash-harness "));
  cJSON_Delete(records);
}

static void test_a_part_of_the_rows(void **state) {
  (void)state;
  static const int64_t rows[] = {5, 0, 3};
  hid_t file = create();
  read_golden("/cases/main/stages/attn.norm/1");
  const hsize_t width = golden.shape[1], shape[2] = {3, width};
  static float part[MOST];
  for (int i = 0; i < 3; i++)
    memcpy(part + i * (int)width, golden.data + rows[i] * (int64_t)width, width * sizeof *part);
  memcpy(golden.data, part, sizeof part);
  hid_t data = put_f32(file, "/cases/main/stages/attn.norm/1", 2, shape);
  put_rows(data, rows, 3);
  H5Dclose(data);
  H5Fclose(file);
  cJSON *records = compare(0, "--mode chain,local");
  const cJSON *verdict = verdict_of(records, "main", "chain", "attn.norm", 1);
  assert_string_equal(text_in(verdict, "note"), "3 of 8 rows are in the file");
  assert_int_equal(number_in(verdict, "elements"), 3 * width);
  assert_non_null(strstr(text_in(verdict_of(records, "main", "local", "attn.norm", 1), "note"), "its input mlp.out/0"));
  cJSON_Delete(records);
  /* a wrong one is named by its own number */
  file = H5Fopen("c.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  data = H5Dopen2(file, "/cases/main/stages/attn.norm/1", H5P_DEFAULT);
  for (hsize_t c = 0; c < width; c++) part[2 * width + c] += 0.25F;
  assert_true(H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, part) >= 0);
  H5Dclose(data);
  H5Fclose(file);
  records = compare(1, "");
  verdict = verdict_of(records, "main", "chain", "attn.norm", 1);
  assert_memory_equal(text_in(verdict, "place"), "row 3,", 6);
  assert_string_equal(text_in(verdict, "pattern"), "one row (3): got = golden + 0.25");
  cJSON_Delete(records);
}

/* Stored in 16 bits: passes by its own spacing, in exact too; twice that rounding does not. */
static void test_narrow_storage(void **state) {
  (void)state;
  static uint16_t bits[MOST];
  hid_t file = create(), half = f16_type();
  read_golden("/cases/main/stages/attn.norm/0");
  H5Dclose(put(file, "/cases/main/stages/attn.norm/0", half, H5T_NATIVE_FLOAT, 2, golden.shape, golden.data));
  read_golden("/cases/main/stages/attn.kernel/0");
  for (hsize_t i = 0; i < golden.count; i++) bits[i] = dflash_bf16_round(golden.data[i]);
  hid_t data = put(file, "/cases/main/stages/attn.kernel/0", H5T_STD_U16LE, H5T_NATIVE_UINT16, 2, golden.shape, bits);
  put_text(data, "dtype", "bf16");
  H5Dclose(data);
  read_golden("/cases/main/stages/attn.conv_in/0");
  H5Dclose(put_f32(file, "/cases/main/stages/attn.conv_in/0", 2, golden.shape));
  H5Tclose(half);
  H5Fclose(file);
  cJSON *records = compare(0, "--mode chain,local");
  expect_outcome(records, "chain", "attn.norm", 0, "pass");
  expect_outcome(records, "chain", "attn.kernel", 0, "pass");
  expect_outcome(records, "local", "attn.kernel", 0, "pass");
  expect_outcome(records, "local", "attn.conv_in", 0, "pass"); /* its inputs' rounding joins the scale */
  assert_true(number_in(verdict_of(records, "main", "chain", "attn.kernel", 0), "score") > 0.01);
  cJSON_Delete(records);
  /* the same numbers in f32 claim that nothing was rounded */
  file = create();
  read_golden("/cases/main/stages/attn.kernel/0");
  for (hsize_t i = 0; i < golden.count; i++) golden.data[i] = dflash_bf16_value(dflash_bf16_round(golden.data[i]));
  H5Dclose(put_f32(file, "/cases/main/stages/attn.kernel/0", 2, golden.shape));
  H5Fclose(file);
  records = compare(1, "");
  expect_outcome(records, "chain", "attn.kernel", 0, "mismatch");
  cJSON_Delete(records);
  records = compare(0, "--profile bf16"); /* unless the engine computed so */
  expect_outcome(records, "chain", "attn.kernel", 0, "pass");
  cJSON_Delete(records);
  file = H5Fopen("c.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  put_text(file, "profile", "bf16");
  H5Fclose(file);
  records = compare(0, "");
  assert_string_equal(text_in(case_of(records, "main"), "profile"), "bf16");
  cJSON_Delete(records);
}

/* bf16 as a float type of HDF5's own, by the bias of its exponent. */
static void test_bf16_as_a_float(void **state) {
  (void)state;
  hid_t file = create(), type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 7, 8, 0, 7);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 127);
  read_golden("/cases/main/stages/attn.norm/0");
  H5Dclose(put(file, "/cases/main/stages/attn.norm/0", type, H5T_NATIVE_FLOAT, 2, golden.shape, golden.data));
  H5Tclose(type);
  H5Fclose(file);
  cJSON *records = compare(0, "");
  expect_outcome(records, "chain", "attn.norm", 0, "pass"); /* by f16's spacing it would not */
  assert_true(number_in(verdict_of(records, "main", "chain", "attn.norm", 0), "max_rel") > 0x1p-10);
  cJSON_Delete(records);
}

static void test_bf16_errors_still_show(void **state) {
  (void)state;
  static uint16_t bits[MOST];
  hid_t file = create();
  read_golden("/cases/main/stages/attn.norm/0");
  for (hsize_t i = 0; i < golden.count; i++) bits[i] = dflash_bf16_round(golden.data[i] * 1.25F);
  hid_t data = put(file, "/cases/main/stages/attn.norm/0", H5T_STD_U16LE, H5T_NATIVE_UINT16, 2, golden.shape, bits);
  put_text(data, "dtype", "bf16");
  H5Dclose(data);
  H5Fclose(file);
  cJSON *records = compare(1, "--profile bf16");
  expect_outcome(records, "chain", "attn.norm", 0, "mismatch");
  assert_non_null(strstr(text_in(verdict_of(records, "main", "chain", "attn.norm", 0), "pattern"), "* golden"));
  cJSON_Delete(records);
}

/* With and without the axis of heads. */
static void test_shapes_with_heads(void **state) {
  (void)state;
  hid_t file = create();
  read_golden("/cases/main/stages/attn.q/0");
  assert_int_equal(golden.rank, 3);
  const hsize_t flat[2] = {golden.shape[0], golden.shape[1] * golden.shape[2]}, heads = golden.shape[1];
  H5Dclose(put_f32(file, "/cases/main/stages/attn.q/0", 2, flat));
  read_golden("/cases/main/stages/attn.q_proj/0");
  const hsize_t split[3] = {golden.shape[0], heads, golden.shape[1] / heads};
  H5Dclose(put_f32(file, "/cases/main/stages/attn.q_proj/0", 3, split));
  H5Fclose(file);
  cJSON *records = compare(0, "");
  expect_outcome(records, "chain", "attn.q", 0, "pass");
  expect_outcome(records, "chain", "attn.q_proj", 0, "pass");
  cJSON_Delete(records);
}

static void put_tokens(hid_t file, const char *name, int64_t change) {
  char path[64];
  int64_t tokens[64];
  snprintf(path, sizeof path, "/cases/main/output/%s", name);
  hid_t from = H5Fopen("t.h5", H5F_ACC_RDONLY, H5P_DEFAULT), data = H5Dopen2(from, path, H5P_DEFAULT);
  hsize_t count;
  hid_t space = H5Dget_space(data);
  H5Sget_simple_extent_dims(space, &count, NULL);
  assert_true(H5Dread(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, tokens) >= 0);
  tokens[1] += change;
  H5Sclose(space);
  H5Dclose(data);
  H5Fclose(from);
  H5Dclose(put(file, path, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &count, tokens));
}

static void test_tokens(void **state) {
  (void)state;
  hid_t file = create();
  put_tokens(file, "chosen", 0);
  H5Fclose(file);
  cJSON *records = compare(0, "");
  assert_string_equal(text_in(verdict_of(records, "main", "chain", "select", -1), "note"), "plain is not in the file");
  cJSON_Delete(records);
  file = create();
  put_tokens(file, "chosen", 0);
  put_tokens(file, "plain", 1);
  H5Fclose(file);
  records = compare(1, "");
  assert_non_null(strstr(text_in(verdict_of(records, "main", "chain", "select", -1), "note"), "plain token"));
  cJSON_Delete(records);
}

static void test_nan_fails(void **state) {
  (void)state;
  hid_t file = create();
  read_golden("/cases/main/stages/final.norm");
  golden.data[7] = NAN;
  H5Dclose(put_f32(file, "/cases/main/stages/final.norm", 2, golden.shape));
  H5Fclose(file);
  cJSON *records = compare(1, "");
  expect_outcome(records, "chain", "final.norm", -1, "nonfinite");
  assert_non_null(strstr(text_in(case_of(records, "main"), "message"), "row 0, channel 7"));
  cJSON_Delete(records);
}

/* Whatever type stores it. */
static void test_nonfinite_in_f16_fails(void **state) {
  (void)state;
  static const float values[] = {INFINITY, -INFINITY, NAN};
  for (int i = 0; i < 3; i++) {
    hid_t file = create(), half = f16_type();
    read_golden("/cases/main/stages/final.norm");
    golden.data[7] = values[i];
    H5Dclose(put(file, "/cases/main/stages/final.norm", half, H5T_NATIVE_FLOAT, 2, golden.shape, golden.data));
    H5Tclose(half);
    H5Fclose(file);
    cJSON *records = compare(1, "");
    expect_outcome(records, "chain", "final.norm", -1, "nonfinite");
    assert_non_null(strstr(text_in(case_of(records, "main"), "message"), "row 0, channel 7"));
    cJSON_Delete(records);
  }
}

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
  static const float zeros[MOST];
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const Refusal *r = &refusals[i];
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_U16LE};
    hid_t file = create();
    hid_t data = put(file, r->path, types[r->type], types[r->type], r->rank, r->shape, zeros);
    if (r->dtype != NULL) put_text(data, "dtype", r->dtype);
    if (r->rows != NULL) put_rows(data, r->rows, (hsize_t)r->row_count);
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
  hid_t file = create();
  put_text(file, "format", DFLASH_CANDIDATE_FORMAT);
  H5Fclose(file);
  expect_error(2, "compare GOLDEN FILE", "verify c.h5 -q --backend reference");
  file = create();
  put_text(file, "format", "dflash-dump");
  H5Fclose(file);
  expect_error(2, "attribute format is \"dflash-dump\"", "compare t.h5 c.h5 -q");
  file = create();
  copy_stage(file, "/cases/main/stages/attn.norm/0");
  put_text(file, "profile", "fp8");
  put_text(file, "inputs_hash", "00");
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
  put_text(file, "inputs_hash", hash);
}

/* Without both hashes the inputs may be others: one line says so. */
static void test_inputs_that_are_not_checked(void **state) {
  (void)state;
  hid_t file = create();
  copy_stage(file, "/cases/main/stages/attn.norm/0");
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
  hid_t file = create(); /* the file's own profile, too */
  put_text(file, "profile", "i8");
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
  hid_t file = create();
  copy_stage(file, "/cases/main/stages/attn.norm/0");
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

/* ---- the examples of docs/compare.md ---- */

/* The code between ```language and ``` of the document, then `rest`, as a file. */
static void write_example(const char *language, const char *rest, const char *path) {
  size_t size;
  char *text = read_whole(DFLASH_DOCS_FOLDER "/compare.md", &size), fence[32];
  snprintf(fence, sizeof fence, "\n```%s\n", language);
  char *begin = strstr(text, fence);
  assert_non_null(begin);
  begin += strlen(fence);
  char *end = strstr(begin, "\n```\n");
  assert_non_null(end);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%.*s\n%s", (int)(end - begin), begin, rest);
  fclose(file);
  free(text);
}

static void run_script(const char *path) {
  Program p = program_limited(&(ProgramLimits){.program = "/bin/sh"}, "%s", path);
  expect_status(&p, 0);
  program_close(&p);
}

static void test_the_example_in_c(void **state) {
  (void)state;
  read_golden("/cases/main/stages/attn.norm/0");
  write_whole("values", golden.data, golden.count * sizeof(float));
  write_example("c",
                "#include <stdio.h>\n"
                "int main(void) {\n"
                "  static float values[512];\n"
                "  FILE *from = fopen(\"values\", \"rb\");\n"
                "  if (from == NULL || fread(values, 4, 512, from) != 512) return 2;\n"
                "  hid_t file = H5Fcreate(\"c.h5\", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);\n"
                "  if (write_values(file, \"cases/main/stages/attn.norm/0\", values, 8, 64) < 0) return 3;\n"
                "  return H5Fclose(file) < 0 ? 4 : 0;\n"
                "}\n",
                "example.c");
  const char script[] = "set -e\ncc -Wall -Wextra -Werror -o example example.c $(pkg-config --cflags --libs hdf5)\n"
                        "./example\n";
  write_whole("build.sh", script, strlen(script));
  remove("c.h5");
  run_script("build.sh");
  cJSON *records = compare(0, "");
  expect_outcome(records, "chain", "attn.norm", 0, "pass");
  cJSON_Delete(records);
}

static void test_the_example_in_python(void **state) {
  (void)state;
  if (system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) {
    print_message("no h5py for /usr/bin/python3 (ci/setup installs python3-h5py)\n");
    skip();
  }
  write_example(
      "python",
      "\n\nwith h5py.File('t.h5', 'r') as f:\n"
      "    norm = f['cases/main/stages/attn.norm/0'][()]\n"
      "    kernel = f['cases/main/stages/attn.kernel/0'][()]\n"
      "    conv = f['cases/main/stages/attn.conv_in/0'][()]\n"
      "    arrays = {n: f['cases/main/' + n][()] for n in ('output/chosen', 'output/plain', 'context_state/k/0')}\n"
      "new_file('c.h5', 't.h5')\n"
      "write_values('c.h5', 'main', 'attn.norm/0', norm * 2)\n"
      "write_values('c.h5', 'main', 'attn.norm/0', norm[[4, 1]], rows=[4, 1])\n"
      "write_values('c.h5', 'main', 'attn.kernel/0', bf16_bits(kernel))\n"
      "write_arrays('c.h5', 'main', arrays)\n"
      "write_values('c.h5', 'main', 'attn.conv_in/0', conv.astype(np.float16))\n",
      "example.py");
  const char script[] = "/usr/bin/python3 example.py\n";
  write_whole("run.sh", script, strlen(script));
  remove("c.h5");
  run_script("run.sh");
  cJSON *records = compare(0, "");
  expect_outcome(records, "chain", "attn.norm", 0, "pass");
  expect_outcome(records, "chain", "attn.kernel", 0, "pass");
  expect_outcome(records, "chain", "attn.conv_in", 0, "pass");
  expect_outcome(records, "chain", "select", -1, "pass");
  expect_outcome(records, "chain", "context_state.k", 0, "pass");
  assert_string_equal(text_in(case_of(records, "main"), "backend"), "my-engine");
  cJSON_Delete(records);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_golden_s_own_values_pass),
      cmocka_unit_test(test_what_is_absent_is_not_passed),
      cmocka_unit_test(test_what_is_absent_is_counted),
      cmocka_unit_test(test_what_cannot_be_read_is_an_error_in_junit),
      cmocka_unit_test(test_a_transposed_stage_is_named),
      cmocka_unit_test(test_a_part_of_the_rows),
      cmocka_unit_test(test_narrow_storage),
      cmocka_unit_test(test_bf16_as_a_float),
      cmocka_unit_test(test_bf16_errors_still_show),
      cmocka_unit_test(test_shapes_with_heads),
      cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_nan_fails),
      cmocka_unit_test(test_nonfinite_in_f16_fails),
      cmocka_unit_test(test_what_is_refused),
      cmocka_unit_test(test_files_and_usage),
      cmocka_unit_test(test_inputs_that_are_not_checked),
      cmocka_unit_test(test_i8_without_q4tp),
      cmocka_unit_test(test_damaged_bytes),
      cmocka_unit_test(test_the_example_in_c),
      cmocka_unit_test(test_the_example_in_python),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
