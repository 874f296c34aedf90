/* The program on the backend, as a user runs it, over the emulated driver: committed goldens in every profile and mode,
 * recipes with odd sizes, times, and what is said where there is no driver. */
#include "harness/tests/program.h"

#define PLACE "--backend cuda --backend-path " CUDA_EMULATED_BACKEND

static void verify(const char *words) { expect_run(0, "verify -q " PLACE " %s", words); }

static void test_exact(void **state) {
  (void)state;
  static const char *const files[] = {"tiny-f32",   "far-bf16",   "kernel4-empty",
                                      "odd-groups", "operations", "sidecar-rewind"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    expect_run(0, "verify -q " PLACE " --mode alone,chain,local " DFLASH_GOLDEN_FOLDER "/%s.h5", files[i]);
}

static void test_i8(void **state) {
  (void)state;
  verify("--profile i8 --mode alone,chain,local " FIXTURE_FILE("odd-groups.h5") " " FIXTURE_FILE("sidecar-rewind.h5"));
}

static void test_f16(void **state) {
  (void)state;
  verify("--profile f16 --mode alone,chain " FIXTURE_FILE("odd-groups.h5") " " FIXTURE_FILE("operations.h5"));
}

/* One part of the context, and many more parts than keys. */
static void test_splits(void **state) {
  (void)state;
  verify("--option splits=1 " FIXTURE_FILE("odd-groups.h5"));
  verify("--option splits=63 " FIXTURE_FILE("operations.h5"));
}

/* Threads that run in the opposite order: where one reads what another one writes, and does not wait, it shows. */
static void test_backwards(void **state) {
  (void)state;
  const ProgramLimits limits = {.variable = "DFLASH_EMULATED_BACKWARDS=1"};
  static const char *const runs[] = {FIXTURE_FILE("tiny-f32.h5"), "--profile i8 " FIXTURE_FILE("odd-groups.h5"),
                                     "--profile f16 " FIXTURE_FILE("kernel4-empty.h5")};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    Program p = program_limited(&limits, "verify -q " PLACE " %s", runs[i]);
    expect_status(&p, 0);
    program_close(&p);
  }
}

/* Sizes that are no multiple of anything, one and all candidates, equal logits, tokens beyond 16 bits. */
static void test_recipes(void **state) {
  (void)state;
  static const char *const recipes[] = {"odd-hidden", "head-dim-80", "kernel-1", "kernel-3",      "top-1",
                                        "top-all",    "ties",        "no-rope",  "windows-mixed", "vocab-wide",
                                        "ladder-32",  "exact-24bit", "theta-far"};
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    expect_run(0, "golden make -q --recipe " DFLASH_RECIPE_FOLDER "/%s.json -o r.h5", recipes[i]);
    verify("--mode chain r.h5");
  }
  expect_run(0, "golden make -q --recipe " DFLASH_RECIPE_FOLDER "/int8-halves.json -o r.h5");
  verify("--profile i8 --mode alone,chain r.h5");
}

/* Pushes of so many rows that products are tiled: whole pieces, one row more, and the least. */
static void test_many_rows(void **state) {
  (void)state;
  static const char *const runs[] = {"257 exact", "257 f16", "257 i8", "32 exact", "288 exact"};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    const int rows = atoi(runs[i]);
    expect_run(0,
               "golden make -q --preset tiny --set layers=1 --set hidden=160 --set conv_group=16 --storage sidecar "
               "--profiles i8 --context %d --case main -o r.h5",
               rows);
    expect_run(0, "verify -q " PLACE " --profile %s --mode chain r.h5", strchr(runs[i], ' ') + 1);
  }
  expect_run(0, "verify -q " PLACE " --profile f16 --mode alone --stage context.fc r.h5");
}

static void test_bench(void **state) {
  (void)state;
  expect_run(0, "bench " FIXTURE_FILE("operations.h5") " " PLACE " -q --budget 1s --cold --json b.jsonl");
  cJSON *records = read_records("b.jsonl");
  assert_true(count_records(records, "case") == 1);
  cJSON_Delete(records);
}

/* A library of that name which is no driver is said to be none; what asks for the backend by name is skipped where that
 * is allowed. */
static void test_absent(void **state) {
  (void)state;
  const ProgramLimits limits = {.variable = "LD_LIBRARY_PATH=" CUDA_BARE_FOLDER};
  Program p = program_limited(&limits, "list devices " PLACE);
  assert_int_not_equal(p.status, 0);
  program_close(&p);
  p = program_limited(&limits, "verify " PLACE " --allow-missing " FIXTURE_FILE("tiny-f32.h5"));
  expect_status(&p, 77);
  expect_contains(&p, p.err, "cuda: the driver has no cu");
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exact),     cmocka_unit_test(test_i8),        cmocka_unit_test(test_f16),
      cmocka_unit_test(test_splits),    cmocka_unit_test(test_backwards), cmocka_unit_test(test_recipes),
      cmocka_unit_test(test_many_rows), cmocka_unit_test(test_bench),     cmocka_unit_test(test_absent)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
