/* Commands, options, help; what is mistyped is one line that lists what exists. */
#include "program.h"

#include <unistd.h>

typedef struct Bad {
  int status;
  const char *parts; /* of the one line */
  const char *arguments;
} Bad;

static void expect_all(const Bad *bad, size_t count) {
  for (size_t i = 0; i < count; i++) expect_error(bad[i].status, bad[i].parts, "%s", bad[i].arguments);
  expect_no_leftovers();
}

#define EXPECT_ALL(list) expect_all(list, sizeof(list) / sizeof(list)[0])

static void test_commands(void **state) {
  (void)state;
  static const Bad bad[] = {
      {2, "no command is given; there are verify, bench, ", ""},
      {2, "command 'verfy' is unknown|verify, bench, sweep, golden, compare, list", "verfy t.h5"},
      {2, "option '--backend' needs a value", "verify t.h5 --backend"},
      {2, "golden needs one of make, info, check", "golden"},
      {2, "golden 'mke' is unknown|make, info, check", "golden mke"},
      {2, "list one of backends, devices, stages, presets, cases", "list"},
      {2, "cannot list 'stage'|backends, devices, stages, presets, cases", "list stage"},
      {2, "list stages takes no file: 't.h5'", "list stages t.h5"},
      {2, "list one of", "list cases t.h5 t.h5"},
      {3, "backend 'nosuch' is not here; found:|reference", "list backends --backend nosuch"},
      {2, "--backend-path: 'nowhere' does not exist", "list backends --backend-path .:nowhere"},
  };
  EXPECT_ALL(bad);
}

static void test_selections_of_a_run(void **state) {
  (void)state;
  static const Bad bad[] = {
      {2, "no golden file is given", "verify --backend reference"},
      {2, "--backend is missing", "verify t.h5"},
      {2, "--backend is missing", "verify t.h5 --backend="},
      {2, "option '--nosuch' is unknown here", "verify t.h5 --backend reference --nosuch"},
      {2, "option '-x' is unknown here", "verify t.h5 --backend reference -qx"},
      {2, "option '--quiet=1': it takes no value", "verify t.h5 --backend reference --quiet=1"},
      {2, "option '--round' is unknown here", "verify t.h5 --backend reference --round 4"},
      {2, "stage 'attn.mxi' is unknown; there are:|attn.mix|select",
       "verify t.h5 --backend reference --stage attn.mxi"},
      {2, "stage 'attn' is unknown", "verify t.h5 --backend reference --stage attn.mix,attn"},
      {2, "mode 'chian' is unknown; there are alone, chain, local", "verify t.h5 --backend reference --mode chian"},
      {2, "profile 'f32' is unknown; there are exact, i8, f16, bf16", "verify t.h5 --backend reference --profile f32"},
      {2, "--context: 'pull' is neither push nor load", "verify t.h5 --backend reference --context pull"},
      {2, "--shard: '3/2' is not I/N", "verify t.h5 --backend reference --shard 3/2"},
      {2, "--shard: '0/2' is not I/N", "verify t.h5 --backend reference --shard 0/2"},
      {2, "--shard: '1/2x' is not I/N", "verify t.h5 --backend reference --shard 1/2x"},
      {2, "--shard: '1/?2' is not I/N", "verify t.h5 --backend reference --shard 1/\t2"},
      {2, "--repeat: at least 1", "verify t.h5 --backend reference --repeat 0"},
      {2, "--layer: '-1' is not a whole number", "verify t.h5 --backend reference --layer -1"},
      {2, "--timeout: '0' is not a time", "verify t.h5 --backend reference --timeout 0"},
      {2, "--threads: '1025' is not a number of threads", "verify t.h5 --backend reference --threads 1025"},
      {2, "--option: 'threads' is not KEY=VALUE", "verify t.h5 --backend reference --option threads"},
      {2, "--resume needs --json", "verify t.h5 --backend reference --resume"},
      {2, "--json and --junit name the same file: x", "verify t.h5 --backend reference --json x --junit x"},
      {2, "t.h5: is a golden file that is read", "verify t.h5 --backend reference --junit ./t.h5"},
      {2, "option --backend is given twice", "verify t.h5 -b reference --backend blas"},
      {2, "--json and --junit write files; '-' is none", "verify t.h5 --backend reference --json -"},
      {2, "--backend-path: 'nowhere' does not exist", "verify t.h5 --backend reference --backend-path nowhere"},
      {2, "--round: a round pushes at least 1 row", "bench t.h5 --backend reference --round 0"},
      {2, "--confidence: '5' is not a share", "bench t.h5 --backend reference --confidence 5"},
      {2, "--budget: 'long' is not a time", "bench t.h5 --backend reference --budget long"},
      {2, "option '--repeat' is unknown here", "bench t.h5 --backend reference --repeat 2"},
  };
  EXPECT_ALL(bad);
  expect_run(0, "golden check t.h5"); /* it is as it was */
}

/* These are found out when the file and the backend are open. */
static void test_what_only_a_run_can_tell(void **state) {
  (void)state;
  static const Bad bad[] = {
      {2, "no case matches 'mian'; there are: cut, main, rewind", "verify t.h5 -q --backend reference --case mian"},
      {2, "no case matches 'mian'; there are: cut, main, rewind",
       "verify t.h5 -q --backend reference --case main,mian"},
      {4, "no case matches 'x*'; there are: cut, main, rewind", "verify t.h5 -q --backend reference --case x*"},
      {3, "backend 'nosuch' is not here; found:|reference|template", "verify t.h5 -q --backend nosuch"},
      {3, "cannot load backend: ./nosuch.so", "verify t.h5 -q --backend ./nosuch.so"},
      {3, "device 'gpu7' is not here; found: cpu", "verify t.h5 -q --backend reference --device gpu7"},
      {3, "t.h5: template: copy me", "verify t.h5 -q --backend template"},
      {3, "profile i8 is for q4tp matrices",
       "verify " FIXTURE_FILE("tiny-f32.h5") " -q --backend reference --profile i8"},
      {2, "reference: no option \"speed\"; known: threads", "verify t.h5 -q --backend reference --option speed=1"},
      {2, "threads is \"0\"", "verify t.h5 -q --backend reference --option threads=0"},
      {2, "case main: --round 999: the case's context has 20 rows", "bench t.h5 -q --backend reference --round 999"},
      {2, "--round pushes rows", "bench t.h5 -q --backend reference --round 4 --context load"},
  };
  EXPECT_ALL(bad);
}

static void test_one_line_for_many_files(void **state) {
  (void)state;
  copy_whole("t.h5", "u.h5");
  expect_error(3, "backend 'nosuch' is not here", "verify t.h5 u.h5 -q --backend nosuch");
  expect_error(2, "no option \"speed\"", "verify t.h5 u.h5 -q --backend reference --option speed=1");
}

static void test_an_empty_selection_ran_nothing(void **state) {
  (void)state;
  static const char *const empty[] = {"--layer 9", "--stage foo*", "--stage attn.mix/9", "--shard 4/4", "--case ,"};
  for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
    expect_run(4, "verify t.h5 --backend reference %s", empty[i]);
  Program p = program("verify t.h5 --backend reference --layer 9 --case main");
  expect_status(&p, 4);
  expect_contains(&p, p.out, "select nothing that this case has");
  program_close(&p);
}

static void test_missing_is_skipped_when_allowed(void **state) {
  (void)state;
  static const char *const missing[] = {"--backend nosuch", "--backend reference --device gpu7", "--backend template",
                                        "--backend wrong-abi", "--backend blas --profile i8"};
  for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
    Program p = program("verify t.h5 --allow-missing --junit skip.xml %s", missing[i]);
    expect_status(&p, 77);
    expect_contains(&p, p.err, "dflash-harness: warning: ");
    program_close(&p);
  }
  expect_run(2, "verify nosuch.h5 --allow-missing --backend template");
  expect_run(2, "verify t.h5 --allow-missing --backend reference --option speed=1");
  expect_run(0, "verify t.h5 --allow-missing --backend reference");
}

static void test_help(void **state) {
  (void)state;
  static const char *const helps[][2] = {
      {"--help", "exit status: 0"},
      {"-h", "verify"},
      {"help", "bench"},
      {"verify --help", "--allow-missing"},
      {"verify t.h5 -h", "alone"},
      {"bench --help", "--confidence"},
      {"golden --help", "make|info|check"},
      {"golden make --help", "--head-width"},
      {"golden info --help", "--json"},
      {"golden check --help", "--recompute"},
      {"list --help", "--backend-path"},
      {"--version", "dflash-harness "},
  };
  for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++) {
    Program p = program("%s", helps[i][0]);
    expect_status(&p, 0);
    expect_contains(&p, p.out, helps[i][1]);
    assert_string_equal(p.err, "");
    program_close(&p);
  }
}

static void test_lists(void **state) {
  (void)state;
  static const char *const lists[][2] = {
      {"list stages", "attn.mix "},
      {"list presets", "tiny "},
      {"list cases", "rewind-all "},
      {"list cases t.h5", "cut\nmain\nrewind\n"},
      {"list backends", "reference "},
      {"list backends --backend reference", "threads=N"},
      {"list backends --backend " DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so", "reference "},
      {"list devices --backend reference", "cpu "},
      {"list devices --backend nan-stage --backend-path " DFLASH_TEST_BACKEND_FOLDER, "nan-stage "},
  };
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    Program p = program_limited(&(ProgramLimits){.variable = "DFLASH_BACKEND_PATH="}, "%s", lists[i][0]);
    expect_status(&p, 0);
    expect_contains(&p, p.out, lists[i][1]);
    assert_string_equal(p.err, "");
    program_close(&p);
  }
}

/* A backend that cannot be used is one line of the list, and 3 when it was the one asked for. */
static void test_lists_of_bad_backends(void **state) {
  (void)state;
  Program p = program("list backends");
  expect_status(&p, 1); /* crash-load is among them */
  expect_contains(&p, p.out, "not usable: ");
  expect_contains(&p, p.out, "built for ABI 2, this harness takes ABI 1");
  expect_contains(&p, p.out, "no symbol 'dflash_backend'");
  expect_contains(&p, p.out, "nan-stage ");
  program_close(&p);
  expect_run(3, "list backends --backend no-symbol");
  expect_error(1, "crash-load.so: the backend ", "list backends --backend crash-load");
}

static void test_a_list_of_cases_of_bad_files(void **state) {
  (void)state;
  expect_error(2, "nosuch.h5: cannot open: No such file", "list cases nosuch.h5");
  write_whole("text.h5", "no golden", 9);
  expect_error(2, "text.h5: not a readable HDF5 file", "list cases text.h5");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commands),
      cmocka_unit_test(test_selections_of_a_run),
      cmocka_unit_test(test_what_only_a_run_can_tell),
      cmocka_unit_test(test_one_line_for_many_files),
      cmocka_unit_test(test_an_empty_selection_ran_nothing),
      cmocka_unit_test(test_missing_is_skipped_when_allowed),
      cmocka_unit_test(test_help),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_lists_of_bad_backends),
      cmocka_unit_test(test_a_list_of_cases_of_bad_files),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
