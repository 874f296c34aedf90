/* Golden files under what smaller devices offer: right, or declined with field, value and limit. */
#include "gate.h"

#define VERIFY \
  "verify %s --backend vulkan --backend-path " DFLASH_BACKEND_FOLDER " --option validation=on --option assume=%s %s"
#define TINY GATE_FILE("tiny-f32.h5")
#define LONG "long.h5" /* 600 rows of context, seen by layer 0, q4tp and q8_2f */

enum { PASSED = 0, BAD_INPUT = 2, UNAVAILABLE = 3 };

static int open_files(void **state) {
  if (scratch_setup(state)) return -1;
  gate_make("--preset tiny --set window=0 --set windows=0,90 --context 600 --case main --storage sidecar --profiles i8 "
            "--seed 5 -t 1 -o " LONG);
  return 0;
}

typedef struct Run {
  const char *file, *assume, *words;
  const char *says; /* parts joined by '|' */
} Run;

static void check_run(const Run *run, int status) {
  char parts[256], *rest = NULL;
  Program p = program(VERIFY, run->file, run->assume, run->words);
  expect_status(&p, status);
  snprintf(parts, sizeof parts, "%s", run->says);
  for (char *part = strtok_r(parts, "|", &rest); part; part = strtok_r(NULL, "|", &rest))
    expect_contains(&p, status == BAD_INPUT ? p.err : p.out, part);
  program_close(&p);
}

/* The matrices of both goldens are larger than their bindings here, the context of LONG is three segments. */
static void test_passes(void **state) {
  (void)state;
  static const Run runs[] = {
      {TINY, "binding:16K", "--mode chain", "assumed binding 16384; "},
      {TINY, "allocation:512K,groups:8,dot:0", "--mode chain", "assumed allocation 524288, groups 8, dot 0; "},
      {TINY, "stamps:0,groups:64", "--mode chain", "assumed groups 64, stamps 0; "},
      {LONG, "binding:32K", "--mode chain,local", "assumed binding 32768; "},
      {LONG, "shared:16K,stamps:36", "--mode chain", "assumed shared 16384, stamps 36; "},
      {LONG, "shared:16K,binding:32K,dot:0", "--mode chain --profile i8",
       "assumed binding 32768, shared 16384, dot 0; |profile i8"},
  };
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) check_run(&runs[i], PASSED);
}

static void test_declines(void **state) {
  (void)state;
  static const Run runs[] = {
      {TINY, "binding:8K", "", "(block - 1) * vocab takes 14336 bytes|as assumed shows 8192"},
      {TINY, "allocation:64K", "", "captured stages: 109568 bytes|at most 65536"},
      {TINY, "shared:8K", "", "bytes of shared memory: 8192; at least 16384 are needed"},
      {TINY, "threads:128", "", "threads of a workgroup: 128; at least 256 are needed"},
      {TINY, "groups:3", "", "heads + kv_heads: 6 workgroups|as assumed takes 3 at most"},
      {TINY, "memory:64K", "", "as assumed has 65536"},
      {LONG, "dot:0", "--option dot=on --profile i8", "option dot is on|as assumed has no integer dot product"},
      {LONG, "binding:16K", "", "600 context rows of layer 0|room for 512|4 splits of attention|binding of 16384"},
      {LONG, "binding:16K", "--option splits=12",
       "(splits + 1) * block * heads * head_dim takes|as assumed shows 16384"},
  };
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) check_run(&runs[i], UNAVAILABLE);
}

static void test_refuses(void **state) {
  (void)state;
  static const Run runs[] = {
      {TINY, "binding:1024G", "", "option assume: binding is 1099511627776|it can only be lowered"},
      {TINY, "dot:2", "", "option assume: dot is 2|it can only be lowered"},
      {TINY, "width:2", "", "option assume is 'width:2', expected KEY:N|binding, allocation, shared"},
  };
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) check_run(&runs[i], BAD_INPUT);
}

int main(void) {
  gate_need_device();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes), cmocka_unit_test(test_declines),
                                     cmocka_unit_test(test_refuses)};
  return cmocka_run_group_tests(tests, open_files, scratch_teardown);
}
