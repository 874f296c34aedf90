/* `sweep` as a user runs it: what passes, fails, is declined or is not there. */
#include "program.h"

/* The draw records of a file, by draw. */
static const cJSON *draw_of(const cJSON *records, int draw) {
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), "draw") == 0 && (int)number_in(record, "draw") == draw) return record;
  }
  fail_msg("no record of draw %d", draw);
  return NULL;
}

static void correct_backends_pass(void **state) {
  (void)state;
  Program p = program("sweep --backend reference --count 8 --json r.jsonl --scores s.jsonl");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "8 draws, seed 1, reference, profile exact: 8 passed, 0 failed, 0 declined");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "draw"), 8);
  double elements = 0.0;
  for (int i = 0; i < 8; i++) {
    const cJSON *record = draw_of(records, i);
    assert_string_equal(text_in(record, "outcome"), "pass");
    assert_true(number_in(record, "elements") > 1000 && number_in(record, "largest_score") < 0.7);
    assert_true(number_in(record, "passed") == number_in(record, "verdicts") || number_in(record, "passed") > 20);
    elements += number_in(record, "elements");
  }
  const cJSON *summary = last_record(records);
  assert_true(number_in(summary, "draws") == 8 && number_in(summary, "exit") == 0);
  assert_true(number_in(summary, "elements") == elements);
  cJSON_Delete(records);
  expect_no_leftovers();
}

/* Elements of all rows of the scores' file; every row is whole. */
static double sum_of_scores(const char *path) {
  size_t size;
  double sum = 0.0;
  char *text = read_whole(path, &size), *rest = text;
  for (char *line; (line = strsep(&rest, "\n")) != NULL && *line;) {
    cJSON *row = cJSON_Parse(line);
    assert_non_null(row);
    assert_string_equal(text_in(row, "backend"), "reference");
    assert_string_equal(text_in(row, "profile"), "exact");
    assert_true(text_in(row, "stage")[0] && text_in(row, "mode")[0]);
    assert_true(number_in(row, "lambda") >= 0.0 && number_in(row, "score") < 1.0 && number_in(row, "seed") == 5);
    sum += number_in(row, "elements");
    cJSON_Delete(row);
  }
  free(text);
  return sum;
}

/* Jobs change the order of the records and nothing in them. */
static void jobs_and_draws_agree(void **state) {
  (void)state;
  expect_run(0, "sweep --backend reference --seed 5 --count 6 -q --json one.jsonl --scores s1.jsonl");
  expect_run(0, "sweep --backend reference --seed 5 --count 6 -q --jobs 3 --json three.jsonl --scores s3.jsonl");
  expect_run(0, "sweep --backend reference --seed 5 --draw 4 -q --json four.jsonl");
  cJSON *one = read_records("one.jsonl"), *three = read_records("three.jsonl"), *four = read_records("four.jsonl");
  for (int i = 0; i < 6; i++) {
    const cJSON *a = draw_of(one, i), *b = draw_of(three, i);
    assert_true(number_in(a, "elements") == number_in(b, "elements"));
    assert_true(number_in(a, "largest_score") == number_in(b, "largest_score"));
    assert_true(number_in(a, "verdicts") == number_in(b, "verdicts"));
  }
  assert_int_equal(count_records(three, "draw"), 6);
  assert_int_equal(count_records(four, "draw"), 1);
  assert_true(number_in(draw_of(four, 4), "elements") == number_in(draw_of(one, 4), "elements"));
  double sum = sum_of_scores("s1.jsonl");
  assert_true(sum == number_in(last_record(one), "elements") && sum == sum_of_scores("s3.jsonl"));
  cJSON_Delete(one), cJSON_Delete(three), cJSON_Delete(four);
}

/* How many members a geometry's product of sizes has, as a measure. */
static double size_of(const cJSON *recipe) {
  const cJSON *g = cJSON_GetObjectItem(recipe, "geometry");
  return number_in(g, "hidden") * number_in(g, "heads") * number_in(g, "head_dim") * number_in(g, "intermediate");
}

static void failures_are_made_smaller_and_saved(void **state) {
  (void)state;
  Program p = program("sweep --backend off-stage --draw 1 --mode alone,chain --save kept --json r.jsonl");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "smallest that fails alike");
  expect_contains(&p, p.out, "saved: kept/sweep-1-1.h5");
  expect_contains(&p, p.out, "reproduce the file: dflash-harness verify kept/sweep-1-1.h5 --backend off-stage ");
  expect_contains(&p, p.out, "reproduce the draw: dflash-harness sweep --backend off-stage ");
  expect_contains(&p, p.out, "--seed 1 --draw 1\n");
  expect_contains(&p, p.out, "\n1 draw, seed 1");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  const cJSON *record = draw_of(records, 1), *smallest = cJSON_GetObjectItem(record, "smallest");
  assert_string_equal(text_in(cJSON_GetObjectItem(record, "first"), "stage"), "attn.mix");
  assert_string_equal(text_in(cJSON_GetObjectItem(smallest, "first"), "stage"), "attn.mix");
  assert_true(number_in(smallest, "trials") > 5);
  assert_true(size_of(cJSON_GetObjectItem(smallest, "recipe")) <
              0.001 * size_of(cJSON_GetObjectItem(record, "recipe")));
  expect_run(1, "%s", text_in(record, "reproduce") + strlen("dflash-harness "));
  const char *saved = text_in(record, "reproduce_saved");
  assert_non_null(strstr(saved, " --stage attn.mix --layer "));
  expect_run(1, "%s", saved + strlen("dflash-harness "));
  cJSON_Delete(records);
  expect_run(1, "verify kept/sweep-1-1.h5 --backend off-stage -q");
  expect_run(0, "verify kept/sweep-1-1.h5 --backend reference -q");
  expect_run(0, "golden check kept/sweep-1-1.h5 --recompute");
  expect_no_leftovers();
}

/* The operation that matters stays. */
static void sequences_are_made_smaller(void **state) {
  (void)state;
  Program p = program("sweep --backend keeps-rows --seed 1 --draw 4 -q");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "\"ops\":[[\"push\",0,1],[\"truncate\",0]]");
  program_close(&p);
  p = program("sweep --backend keeps-rows --seed 1 --draw 4 -q --no-shrink");
  expect_status(&p, 1);
  assert_null(strstr(p.out, "smallest"));
  program_close(&p);
}

static void crashes_are_found(void **state) {
  (void)state;
  Program p = program("sweep --backend crash-block --count 2 -q --no-shrink --jobs 2");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "draw 0: crashed");
  expect_contains(&p, p.out, "draw 1: crashed");
  expect_contains(&p, p.out, "2 draws, seed 1, crash-block, profile exact: 0 passed, 2 failed");
  program_close(&p);
}

static void hangs_are_ended(void **state) {
  (void)state;
  Program p = program("sweep --backend hang-block --draw 0 --timeout 0.3s -q");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "draw 0: hung");
  assert_null(strstr(p.out, "smallest"));
  program_close(&p);
}

static void what_is_declined_is_no_pass(void **state) {
  (void)state;
  Program p = program("sweep --backend template --count 3");
  expect_status(&p, 3);
  expect_contains(&p, p.out, "draw 0: declined: template: copy me");
  expect_contains(&p, p.out, "0 passed, 0 failed, 3 declined");
  program_close(&p);
  expect_run(77, "sweep --backend template --count 3 --allow-missing -q");
}

/* What ran is told, and one line says what could not be written. */
static void a_full_disk_leaves_the_summary(void **state) {
  (void)state;
  static const char *const runs[][3] = {
      {"--backend reference --count 3 --json /dev/full", "0 draws, seed 1", "0 failed"},
      {"--backend reference --count 3 --scores /dev/full", "1 draw, seed 1", "0 failed"},
      {"--backend reference --count 3 --jobs 2 --scores /dev/full -q", "1 draw, seed 1", "0 failed"},
      {"--backend off-stage --count 3 --mode alone --no-shrink --scores /dev/full", "1 draw, seed 1", "1 failed"}};
  for (int i = 0; i < 4; i++) {
    Program p = program("sweep %s", runs[i][0]);
    const int failed = runs[i][2][0] == '1';
    expect_status(&p, failed ? 1 : 2);
    expect_contains(&p, p.out, runs[i][1]);
    expect_contains(&p, p.out, runs[i][2]);
    expect_contains(&p, p.out, failed ? "exit status 1\n" : "exit status 2\n");
    assert_string_equal(p.err, "dflash-harness: error: /dev/full: cannot write: No space left on device\n");
    program_close(&p);
  }
}

/* The last record that fits may be any: the summary on the console tells of it. */
static void records_may_stop_anywhere(void **state) {
  (void)state;
  for (long bytes = 1; bytes <= 7001; bytes += 1000) {
    remove("r.jsonl");
    Program p = program_limited(&(ProgramLimits){.file_bytes = bytes < 300 ? 300 : bytes},
                                "sweep --backend reference --count 2 -q --json r.jsonl");
    if (p.status != 0) expect_status(&p, 2);
    if (p.status != 0) expect_contains(&p, p.out, "exit status 2\n");
    if (p.status != 0) expect_contains(&p, p.err, "r.jsonl: cannot write: File too large");
    cJSON *records = read_records("r.jsonl");
    assert_int_equal(count_records(records, "summary"), p.status == 0);
    cJSON_Delete(records);
    program_close(&p);
  }
}

static void seeds_are_decimal(void **state) {
  (void)state;
  Program p = program("sweep --backend reference --count 1 --seed 010");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "1 draw, seed 10, ");
  program_close(&p);
  expect_error(2, "--seed|'0x10'", "sweep --backend reference --seed 0x10");
  expect_error(2, "--seed is given twice", "sweep --backend reference --seed 1 --seed 2");
}

static void bad_usage_is_refused(void **state) {
  (void)state;
  expect_error(3, "nowhere", "sweep --backend nowhere --count 3");
  expect_run(77, "sweep --backend nowhere --count 3 --allow-missing");
  expect_error(3, "nowhere", "sweep --backend nowhere --count 3 --jobs 2");
  expect_error(2, "--backend is missing", "sweep --count 3");
  expect_error(2, "--count: 0", "sweep --backend reference --count 0");
  expect_error(2, "--jobs: 0", "sweep --backend reference --jobs 0");
  expect_error(2, "--seed|'x'", "sweep --backend reference --seed x");
  expect_error(2, "takes no operand|t.h5", "sweep t.h5 --backend reference");
  expect_error(2, "nowhere/kept|No such file", "sweep --backend reference --save nowhere/kept");
  write_whole("plain", "x", 1);
  expect_error(2, "plain is no folder", "sweep --backend reference --save plain");
  expect_error(2, "name the same file", "sweep --backend reference --json a --scores a");
  expect_error(2, "colour", "sweep --backend reference --option colour=red --count 2");
  expect_error(2, "cannot open", "sweep --backend reference --count 1 --scores nowhere/s.jsonl");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(correct_backends_pass),
      cmocka_unit_test(jobs_and_draws_agree),
      cmocka_unit_test(failures_are_made_smaller_and_saved),
      cmocka_unit_test(sequences_are_made_smaller),
      cmocka_unit_test(crashes_are_found),
      cmocka_unit_test(hangs_are_ended),
      cmocka_unit_test(what_is_declined_is_no_pass),
      cmocka_unit_test(a_full_disk_leaves_the_summary),
      cmocka_unit_test(records_may_stop_anywhere),
      cmocka_unit_test(seeds_are_decimal),
      cmocka_unit_test(bad_usage_is_refused),
  };
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
