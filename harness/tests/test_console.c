#include "records.h"

/* What the console shows for some records, NULL-terminated. free() releases. */
static char *shown(int verbose, const char *const *records) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  DflashStore *store = open_store(&(DflashStoreOptions){.console = file, .verbose = verbose});
  for (; *records; records++) put_record(store, *records);
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  fclose(file);
  return text;
}

static void assert_holds(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no '%s' in:\n%s", part, text);
}

static void a_passed_case_is_one_line(void **state) {
  (void)state;
  char *text = shown(0, (const char *[]){RUN_RECORD, VERDICT_PASS, CASE_PASS("one"), VERDICT_PASS, CASE_PASS("two"),
                                         SUMMARY_RECORD, NULL});
  assert_string_equal(text,
                      "dir/a.h5: blas on cpu, profile exact, alone,chain\n"
                      "  pass          one                           1 passed, 0 failed, 0 other  largest passing "
                      "score 0.25  500.0 ms\n"
                      "  pass          two                           1 passed, 0 failed, 0 other  largest passing "
                      "score 0.25  500.0 ms\n"
                      "1 case: 1 passed, 0 failed; 750.0 ms; exit status 0\n");
  free(text);
}

static void a_failure_says_where_and_how(void **state) {
  (void)state;
  char *text = shown(0, (const char *[]){VERDICT_PASS, VERDICT_MISMATCH, CASE_MISMATCH, NULL});
  static const char *const parts[] = {"mismatch",
                                      "chain",
                                      "mlp.kernel/2",
                                      "41.2",
                                      "0.5",
                                      "0.125",
                                      "17 of 96",
                                      "row 3, side 1, tap 0, group 12",
                                      "one row (3)",
                                      "mlp.kernel/2 is off",
                                      "reproduce: dflash-harness verify dir/a.h5"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) assert_holds(text, parts[i]);
  assert_null(strstr(text, "attn.mix"));
  free(text);
}

static void verbose_shows_every_stage(void **state) {
  (void)state;
  char *text = shown(1, (const char *[]){RUN_RECORD, VERDICT_PASS, VERDICT_MISMATCH, CASE_MISMATCH, NULL});
  assert_holds(text, "attn.mix/2");
  assert_holds(text, "mlp.kernel/2");
  assert_holds(text, "load  [1,2]");
  free(text);
}

static void other_outcomes_are_summed_up(void **state) {
  (void)state;
#define OTHER(stage, outcome) \
  "{'type':'verdict','case':'one','mode':'alone','stage':'" stage "','outcome':'" outcome "','note':'why " stage "'}"
  char *text = shown(0, (const char *[]){OTHER("a", "unsupported"), OTHER("b", "near tie"), OTHER("c", "unsupported"),
                                         OTHER("d", "covered"), CASE_PASS("one"), NULL});
  assert_holds(text, "unsupported (alone) a: why a (and 1 more)\n");
  assert_holds(text, "near tie (alone) b: why b\n");
  assert_null(strstr(text, "why c"));
  assert_null(strstr(text, "why d"));
  free(text);
}

/* A backend that is missing says why once a file; each of its cases keeps its row. */
static void a_sentence_is_told_once_a_file(void **state) {
  (void)state;
#define MISSING(file, name, note)                                                                                  \
  "{'type':'verdict','case':'" name "','mode':'-','stage':'backend','outcome':'unavailable','note':'" note "'}",   \
      "{'type':'case','file':'" file "','case':'" name "','outcome':'unavailable','passed':0,'largest_score':0.5," \
      "'message':'" note "'}"
  char *text =
      shown(0, (const char *[]){MISSING("a.h5", "one", "no GPU"), MISSING("a.h5", "two", "no GPU"),
                                MISSING("a.h5", "three", "no driver"), MISSING("b.h5", "one", "no GPU"), NULL});
  assert_int_equal(count_of(text, "no GPU"), 2);
  assert_int_equal(count_of(text, "no driver"), 1);
  assert_int_equal(count_of(text, "largest passing score -"), 4);
  assert_int_equal(count_of(text, "\n"), 2 + 4 + 3);
  free(text);
}

static void a_message_is_told_once_and_each_reproduction(void **state) {
  (void)state;
#define CRASHED(name) \
  "{'type':'case','file':'a.h5','case':'" name "','outcome':'crashed','message':'signal 11','reproduce':'run " name "'}"
  char *text = shown(0, (const char *[]){CRASHED("one"), CRASHED("two"), NULL});
  assert_int_equal(count_of(text, "signal 11"), 1);
  assert_holds(text, "reproduce: run one\n");
  assert_holds(text, "reproduce: run two\n");
  free(text);
}

static void the_model_is_told_when_it_changes(void **state) {
  (void)state;
#define MODEL(device, bytes)                                                                                         \
  "{'type':'model','backend':'blas','device':'" device "','profile':'exact','path':'p','repeatable':true,'resident_" \
  "bytes':" bytes "}"
  char *text = shown(0, (const char *[]){MODEL("cpu", "1000"), MODEL("cpu", "2000"), MODEL("gpu", "2000"), NULL});
  assert_string_equal(text, "model: blas , device cpu (; ), profile exact, 1.000 KB resident; p\n"
                            "model: blas , device gpu (; ), profile exact, 2.000 KB resident; p\n");
  free(text);
}

static void inherited_failures_are_counted(void **state) {
  (void)state;
  const char *records[32] = {VERDICT_MISMATCH};
  for (int i = 1; i < 20; i++)
    records[i] = i % 2 ? VERDICT_MISMATCH
                       : "{'type':'verdict','case':'one','mode':'chain','stage':'final.norm','outcome':'mismatch',"
                         "'inherited':true}";
  records[20] = CASE_MISMATCH;
  char *text = shown(0, records);
  assert_int_equal(count_of(text, "17 of 96"), 8);
  assert_null(strstr(text, "final.norm"));
  assert_holds(text, "12 more failures");
  free(text);
  text = shown(1, records);
  assert_int_equal(count_of(text, "final.norm"), 9);
  assert_null(strstr(text, "more failures"));
  free(text);
}

static void names_cannot_drive_the_terminal(void **state) {
  (void)state;
  char *text =
      shown(1, (const char *[]){"{'type':'model','backend':'\\u001b]0;x\\u0007','device':'\\u009b2J'}",
                                "{'type':'verdict','case':'x','mode':'\\u001b','stage':'\\r','outcome':'\\u001b['}",
                                "{'type':'case','file':'\\u001b[2J','case':'a\\nb','outcome':'\\u001b[31m',"
                                "'message':'\\u001b','reproduce':'\\u001bx'}",
                                "{'type':'bench','file':'\\u001b','stages':[{'stage':'\\u001b','path':'\\u001b'}],"
                                "'stopped_by':'\\u001b','implausible':'\\u001b'}",
                                NULL});
  for (const char *c = text; *c; c++) assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
  assert_null(strstr(text, "\xc2\x9b"));
  free(text);
}

#define TIMES \
  "{'n':64,'min':1000,'median':1500,'p95':2000,'mad':10,'low':1400,'high':1600,'half_width':0.067,'lag1':0.125}"
#define BENCH                                                                                                          \
  "{'type':'bench'," SHARED ",'case':'one','what':'block','cold':false,'cache_hot':true,"                              \
  "'parity':{'outcome':'pass','largest_score':0.31},'clock':{'resolution_ns':1,'cost_ns':25},'stopped_by':'budget',"   \
  "'block':{'device':" TIMES ",'wall':" TIMES ",'cpu':{'n':3,'min':1,'median':2,'p95':3,'mad':1,'lag1':0},"            \
  "'bytes':2.26e9,'operations':46e9,'bandwidth':4.6e12,'rate':30e12,'share_read':1.03,'share_matrix':0.5,'share_read_" \
  "beside':1.07},"                                                                                                     \
  "'stamped':" TIMES ",'overhead_share':0.012,'sum_share':0.985,"                                                      \
  "'roofline':{'read_bytes_per_s':4.7e12,'matrix_operations_per_s':60e12,'read_beside_bytes_per_s':4.3e12,"            \
  "'reads_beside':9},"                                                                                                 \
  "'stages':[{'stage':'attn.mix','layer':2,'group':'attention','time':" TIMES ",'bandwidth':12.3e9,'rate':3.4e9,"      \
  "'share':1.04,'bound':'read','path':'rows8 f32','library_share':0.95,'fused':['attn.q/2']}],"                        \
  "'groups':[{'group':'attention','ns':750,'share_of_block':0.5,'bandwidth':1e9,'share':1.25}]}"

static void a_bench_shows_all_clocks(void **state) {
  (void)state;
  char *text = shown(0, (const char *[]){BENCH, NULL});
  static const char *const parts[] = {
      "block dir/a.h5 one: blas on cpu, profile exact",
      "parity pass, largest passing score 0.31; cache-hot",
      "attn.mix/2",
      "1.500 us",
      "100.0%",
      "12.30",
      "3.400",
      "104.0% !",
      "read",
      "95.0%",
      "rows8 f32 (with 1 fused)",
      "attention",
      "750.0 ns",
      "50.0%",
      "device",
      "wall",
      "cpu",
      "stamped",
      "1.400 us to 1.600 us (+-6.7%)",
      "0.12",
      "none: fewer than 6 samples",
      "roofline: read 4700 GB/s, matrix 60000 GFLOP/s",
      "block: 2.260 GB, 46.00 GFLOP; 4600 GB/s (103.0% ! of read), 30000 GFLOP/s (50.0% of matrix)",
      "(median of 9), of which the block has 107.0% !",
      "125.0% !",
      "stamping costs 1.2%; stages sum to 98.5% of the block",
      "clock steps 1.000 ns, costs 25.00 ns",
      "stopped by budget"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) assert_holds(text, parts[i]);
  assert_null(strstr(text, "\033"));
  free(text);
}

/* A record with nothing in it is shown as unknown, not as zero. */
static void missing_members_show_as_absent(void **state) {
  (void)state;
  char *text = shown(0, (const char *[]){"{'type':'bench'}", "{'type':'case'}", NULL});
  assert_holds(text, "roofline: read - GB/s, matrix - GFLOP/s");
  assert_holds(text, "largest passing score -");
  assert_null(strstr(text, "0.000"));
  free(text);
}

static void a_full_console_is_an_error(void **state) {
  (void)state;
  FILE *file = fopen("/dev/full", "w");
  if (!file) skip();
  DflashStore *store = open_store(&(DflashStoreOptions){.console = file});
  cJSON *record = make_record(CASE_PASS("one"));
  DflashError error = {0};
  assert_int_equal(dflash_store_record(store, record, &error), DFLASH_IO);
  assert_string_equal(error.message, "cannot write to the console: No space left on device");
  cJSON_Delete(record);
  dflash_store_close(store, NULL);
  fclose(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_passed_case_is_one_line),
      cmocka_unit_test(a_failure_says_where_and_how),
      cmocka_unit_test(verbose_shows_every_stage),
      cmocka_unit_test(other_outcomes_are_summed_up),
      cmocka_unit_test(inherited_failures_are_counted),
      cmocka_unit_test(names_cannot_drive_the_terminal),
      cmocka_unit_test(a_bench_shows_all_clocks),
      cmocka_unit_test(missing_members_show_as_absent),
      cmocka_unit_test(a_full_console_is_an_error),
      cmocka_unit_test(a_sentence_is_told_once_a_file),
      cmocka_unit_test(the_model_is_told_when_it_changes),
      cmocka_unit_test(a_message_is_told_once_and_each_reproduction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
