/* compare: values as an engine would dump them, made from a golden's own and changed. */
#include "candidate_file.h"

#include <hdf5.h>
#include <math.h>
#include <unistd.h>

#include "load/candidate.h"
#include "model/storage.h"

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
  hid_t file = candidate_create();
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  candidate_put_text(file, "engine", "my-engine 1.4");
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
  hid_t file = candidate_create();
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/1");
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
  hid_t file = candidate_create();
  static float swapped[CANDIDATE_MOST];
  candidate_copy_stage(file, "/cases/main/stages/attn.norm/0");
  candidate_copy_stage(file, "/cases/main/stages/attn.conv_in/0");
  candidate_read_golden("/cases/main/stages/attn.kernel/0");
  const hsize_t rows = candidate_golden.shape[0], width = candidate_golden.shape[1];
  for (hsize_t i = 0; i < rows * width; i++) swapped[i] = candidate_golden.data[i % rows * width + i / rows];
  memcpy(candidate_golden.data, swapped, sizeof swapped);
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/attn.kernel/0", 2, candidate_golden.shape));
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
  hid_t file = candidate_create();
  candidate_read_golden("/cases/main/stages/attn.norm/1");
  const hsize_t width = candidate_golden.shape[1], shape[2] = {3, width};
  static float part[CANDIDATE_MOST];
  for (int i = 0; i < 3; i++)
    memcpy(part + i * (int)width, candidate_golden.data + rows[i] * (int64_t)width, width * sizeof *part);
  memcpy(candidate_golden.data, part, sizeof part);
  hid_t data = candidate_put_f32(file, "/cases/main/stages/attn.norm/1", 2, shape);
  candidate_put_rows(data, rows, 3);
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
  static uint16_t bits[CANDIDATE_MOST];
  hid_t file = candidate_create(), half = f16_type();
  candidate_read_golden("/cases/main/stages/attn.norm/0");
  H5Dclose(candidate_put(file, "/cases/main/stages/attn.norm/0", half, H5T_NATIVE_FLOAT, 2, candidate_golden.shape,
                         candidate_golden.data));
  candidate_read_golden("/cases/main/stages/attn.kernel/0");
  for (hsize_t i = 0; i < candidate_golden.count; i++) bits[i] = dflash_bf16_round(candidate_golden.data[i]);
  hid_t data = candidate_put(file, "/cases/main/stages/attn.kernel/0", H5T_STD_U16LE, H5T_NATIVE_UINT16, 2,
                             candidate_golden.shape, bits);
  candidate_put_text(data, "dtype", "bf16");
  H5Dclose(data);
  candidate_read_golden("/cases/main/stages/attn.conv_in/0");
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/attn.conv_in/0", 2, candidate_golden.shape));
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
  file = candidate_create();
  candidate_read_golden("/cases/main/stages/attn.kernel/0");
  for (hsize_t i = 0; i < candidate_golden.count; i++)
    candidate_golden.data[i] = dflash_bf16_value(dflash_bf16_round(candidate_golden.data[i]));
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/attn.kernel/0", 2, candidate_golden.shape));
  H5Fclose(file);
  records = compare(1, "");
  expect_outcome(records, "chain", "attn.kernel", 0, "mismatch");
  cJSON_Delete(records);
  records = compare(0, "--profile bf16"); /* unless the engine computed so */
  expect_outcome(records, "chain", "attn.kernel", 0, "pass");
  cJSON_Delete(records);
  file = H5Fopen("c.h5", H5F_ACC_RDWR, H5P_DEFAULT);
  candidate_put_text(file, "profile", "bf16");
  H5Fclose(file);
  records = compare(0, "");
  assert_string_equal(text_in(case_of(records, "main"), "profile"), "bf16");
  cJSON_Delete(records);
}

/* bf16 as a float type of HDF5's own, by the bias of its exponent. */
static void test_bf16_as_a_float(void **state) {
  (void)state;
  hid_t file = candidate_create(), type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 7, 8, 0, 7);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 127);
  candidate_read_golden("/cases/main/stages/attn.norm/0");
  H5Dclose(candidate_put(file, "/cases/main/stages/attn.norm/0", type, H5T_NATIVE_FLOAT, 2, candidate_golden.shape,
                         candidate_golden.data));
  H5Tclose(type);
  H5Fclose(file);
  cJSON *records = compare(0, "");
  expect_outcome(records, "chain", "attn.norm", 0, "pass"); /* by f16's spacing it would not */
  assert_true(number_in(verdict_of(records, "main", "chain", "attn.norm", 0), "max_rel") > 0x1p-10);
  cJSON_Delete(records);
}

static void test_bf16_errors_still_show(void **state) {
  (void)state;
  static uint16_t bits[CANDIDATE_MOST];
  hid_t file = candidate_create();
  candidate_read_golden("/cases/main/stages/attn.norm/0");
  for (hsize_t i = 0; i < candidate_golden.count; i++) bits[i] = dflash_bf16_round(candidate_golden.data[i] * 1.25F);
  hid_t data = candidate_put(file, "/cases/main/stages/attn.norm/0", H5T_STD_U16LE, H5T_NATIVE_UINT16, 2,
                             candidate_golden.shape, bits);
  candidate_put_text(data, "dtype", "bf16");
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
  hid_t file = candidate_create();
  candidate_read_golden("/cases/main/stages/attn.q/0");
  assert_int_equal(candidate_golden.rank, 3);
  const hsize_t flat[2] = {candidate_golden.shape[0], candidate_golden.shape[1] * candidate_golden.shape[2]},
                heads = candidate_golden.shape[1];
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/attn.q/0", 2, flat));
  candidate_read_golden("/cases/main/stages/attn.q_proj/0");
  const hsize_t split[3] = {candidate_golden.shape[0], heads, candidate_golden.shape[1] / heads};
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/attn.q_proj/0", 3, split));
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
  H5Dclose(candidate_put(file, path, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &count, tokens));
}

static void test_tokens(void **state) {
  (void)state;
  hid_t file = candidate_create();
  put_tokens(file, "chosen", 0);
  H5Fclose(file);
  cJSON *records = compare(0, "");
  assert_string_equal(text_in(verdict_of(records, "main", "chain", "select", -1), "note"), "plain is not in the file");
  cJSON_Delete(records);
  file = candidate_create();
  put_tokens(file, "chosen", 0);
  put_tokens(file, "plain", 1);
  H5Fclose(file);
  records = compare(1, "");
  assert_non_null(strstr(text_in(verdict_of(records, "main", "chain", "select", -1), "note"), "plain token"));
  cJSON_Delete(records);
}

static void test_nan_fails(void **state) {
  (void)state;
  hid_t file = candidate_create();
  candidate_read_golden("/cases/main/stages/final.norm");
  candidate_golden.data[7] = NAN;
  H5Dclose(candidate_put_f32(file, "/cases/main/stages/final.norm", 2, candidate_golden.shape));
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
    hid_t file = candidate_create(), half = f16_type();
    candidate_read_golden("/cases/main/stages/final.norm");
    candidate_golden.data[7] = values[i];
    H5Dclose(candidate_put(file, "/cases/main/stages/final.norm", half, H5T_NATIVE_FLOAT, 2, candidate_golden.shape,
                           candidate_golden.data));
    H5Tclose(half);
    H5Fclose(file);
    cJSON *records = compare(1, "");
    expect_outcome(records, "chain", "final.norm", -1, "nonfinite");
    assert_non_null(strstr(text_in(case_of(records, "main"), "message"), "row 0, channel 7"));
    cJSON_Delete(records);
  }
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
  candidate_read_golden("/cases/main/stages/attn.norm/0");
  write_whole("values", candidate_golden.data, candidate_golden.count * sizeof(float));
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
      cmocka_unit_test(test_the_example_in_c),
      cmocka_unit_test(test_the_example_in_python),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
