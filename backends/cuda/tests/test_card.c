/* ci/cuda-card over the emulated driver, whose threads run the kernels: every planted fault is found at its stage; a
 * fault that is not there, and one at another stage, are told; what cannot run is no pass. */
#include <sys/stat.h>

#include "harness/tests/program.h"

#define CARD(words) DFLASH_BUILD_FOLDER " -o out --jobs 2 --backend-path " CUDA_EMULATED_BACKEND " " words
#define TINY "golden/files/tiny-f32.h5 exact "

enum { PASSED = 0, WRONG = 1, BAD_USAGE = 2, NOT_HERE = 3, CANNOT_TELL = 5, SKIPPED = 77, LEAST_FAULTS = 25 };

static Program card(const char *variable, const char *words) {
  const ProgramLimits limits = {.program = CUDA_CARD_SCRIPT, .variable = variable};
  return program_limited(&limits, "%s", words);
}

static int count(const char *text, const char *part) {
  int found = 0;
  for (const char *at = text; (at = strstr(at, part)); at++) found++;
  return found;
}

static void test_faults(void **state) {
  (void)state;
  Program p = card(NULL, CARD("faults"));
  expect_status(&p, PASSED);
  assert_true(count(p.out, "found at ") >= LEAST_FAULTS);
  assert_int_equal(count(p.out, "WRONG"), 0);
  program_close(&p);
}

/* Each row of a table is wrong in its own way. */
static void test_told(void **state) {
  (void)state;
  static const struct {
    const char *table, *says;
  } tables[] = {{"none " TINY "attn.mix/0\n", "found at no stage, expected attn.mix/0"},
                {"conv-taps " TINY "attn.mix/0\n", "found at attn.conv_in/0, expected attn.mix/0"}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    write_whole("table", tables[i].table, strlen(tables[i].table));
    Program p = card(NULL, CARD("faults --faults table"));
    expect_status(&p, WRONG);
    expect_contains(&p, p.out, tables[i].says);
    expect_contains(&p, p.out, "1 passed, 1 wrong");
    program_close(&p);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    int status;
    const char *variable, *words, *says;
  } calls[] = {{BAD_USAGE, NULL, CARD("nonsense"), "no part nonsense"},
               {BAD_USAGE, NULL, CARD("--draws 0"), "expected a number from 1 on"},
               {BAD_USAGE, NULL, "nowhere faults", "nowhere is no bundle and no build"},
               {NOT_HERE, "LD_LIBRARY_PATH=" CUDA_BARE_FOLDER, CARD("faults"), "finds no device here"}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    Program p = card(calls[i].variable, calls[i].words);
    expect_status(&p, calls[i].status);
    expect_contains(&p, p.err, calls[i].says);
    program_close(&p);
  }
}

/* A harness that ends every command with one status stands for what may happen on a device. */
static void test_verdicts(void **state) {
  (void)state;
  static const char harness[] = "#!/bin/sh\n[ \"$1\" = list ] || exit $CARD_STATUS\n";
  static const struct {
    const char *variable;
    int status;
    const char *says;
  } ends[] = {{"CARD_STATUS=0", PASSED, "passed"},
              {"CARD_STATUS=1", WRONG, "WRONG"},
              {"CARD_STATUS=2", BAD_USAGE, "bad usage"},
              {"CARD_STATUS=3", NOT_HERE, "not here"},
              {"CARD_STATUS=5", CANNOT_TELL, "cannot tell"},
              {"CARD_STATUS=77", SKIPPED, "skipped"},
              {"CARD_STATUS=124", CANNOT_TELL, "out of time"},
              {"CARD_STATUS=139", WRONG, "WRONG"}};
  assert_int_equal(mkdir("fake", 0700), 0);
  write_whole("fake/run", harness, strlen(harness));
  assert_int_equal(chmod("fake/run", 0700), 0);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    Program p = card(ends[i].variable, "fake goldens -o out");
    expect_status(&p, ends[i].status);
    expect_contains(&p, p.out, ends[i].says);
    program_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults), cmocka_unit_test(test_told),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_verdicts)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
