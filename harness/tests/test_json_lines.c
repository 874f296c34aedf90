#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "records.h"

#define PATH DFLASH_SCRATCH_FOLDER "/json-lines.jsonl"

static int setup(void **state) {
  (void)state;
  unlink(PATH);
  return 0;
}

static void every_line_is_a_record(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  put_record(store, RUN_RECORD);
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("one"));
  put_record(store, SUMMARY_RECORD);
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  char *text = text_of_file(PATH), *rest = NULL;
  static const char *const types[] = {"run", "verdict", "case", "summary"};
  char *line = strtok_r(text, "\n", &rest);
  for (size_t i = 0; i < 4; i++, line = strtok_r(NULL, "\n", &rest)) {
    assert_non_null(line);
    assert_memory_equal(line, "{\"schema\":\"dflash-record\",\"version\":1,", 38);
    cJSON *record = cJSON_Parse(line);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(record, "type")), types[i]);
    cJSON_Delete(record);
  }
  assert_null(line);
  free(text);
}

static void assert_lines(int expected) {
  char *text = text_of_file(PATH);
  assert_true(*text == '\0' || text[strlen(text) - 1] == '\n');
  assert_int_equal(count_of(text, "\n"), expected);
  free(text);
}

/* A case's records reach the file together, with its `case` record; a case never completed leaves none. */
static void cases_are_written_whole(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  assert_lines(0);
  put_record(store, RUN_RECORD);
  assert_lines(1);
  put_record(store, VERDICT_PASS);
  put_record(store, "{'type':'model','backend':'blas'}");
  put_record(store, "{'type':'bench','case':'one'}");
  assert_lines(1);
  put_record(store, CASE_PASS("one"));
  assert_lines(5);
  put_record(store, "{'type':'model','backend':'blas'}");
  assert_lines(6);
  put_record(store, VERDICT_PASS);
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  assert_lines(6);
}

static void a_summary_drops_the_case_in_work(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  put_record(store, CASE_PASS("one"));
  put_record(store, VERDICT_PASS);
  put_record(store, SUMMARY_RECORD);
  assert_lines(2);
  put_record(store, CASE_PASS("two"));
  dflash_store_close(store, NULL);
  char *text = text_of_file(PATH);
  assert_int_equal(count_of(text, "\n"), 3);
  assert_int_equal(count_of(text, "\"summary\""), 1);
  assert_null(strstr(text, "\"verdict\""));
  free(text);
}

static void a_new_run_starts_the_file_anew(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
    put_record(store, CASE_PASS("one"));
    dflash_store_close(store, NULL);
    assert_lines(1);
  }
}

static void other_files_are_not_overwritten(void **state) {
  (void)state;
  DflashError error;
  DflashStore *store;
  assert_int_equal(dflash_write_file(PATH, "my notes", 8, NULL), DFLASH_OK);
  for (int resume = 0; resume < 2; resume++) {
    DflashStoreOptions options = {.json_path = PATH, .resume = resume};
    assert_int_equal(dflash_store_open(&options, &store, &error), DFLASH_INVALID_DATA);
    assert_null(store);
    assert_non_null(strstr(error.message, "something else than records"));
  }
  char *text = text_of_file(PATH);
  assert_string_equal(text, "my notes");
  free(text);
}

static void bad_paths_are_named(void **state) {
  (void)state;
  DflashError error;
  DflashStore *store;
  DflashStoreOptions options = {.json_path = "/nonexistent/x.jsonl"};
  assert_int_equal(dflash_store_open(&options, &store, &error), DFLASH_IO);
  assert_string_equal(error.message, "/nonexistent/x.jsonl: cannot open: No such file or directory");
  options.json_path = DFLASH_SCRATCH_FOLDER;
  assert_int_equal(dflash_store_open(&options, &store, &error), DFLASH_IO);
}

static void records_must_be_objects(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  cJSON *number = cJSON_CreateNumber(1);
  assert_int_equal(dflash_store_record(store, number, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_store_record(store, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  cJSON_Delete(number);
  dflash_store_close(store, NULL);
  dflash_store_close(NULL, NULL);
}

/* The same object twice: a caller may keep it. */
static void schema_is_added_once(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  cJSON *record = make_record(CASE_PASS("one"));
  for (int i = 0; i < 2; i++) assert_int_equal(dflash_store_record(store, record, NULL), DFLASH_OK);
  cJSON_Delete(record);
  dflash_store_close(store, NULL);
  char *text = text_of_file(PATH);
  assert_int_equal(count_of(text, "\"schema\""), 2);
  free(text);
}

/* In a child, whose file-size limit lets one case through: the second is taken back whole, with one clear line. */
static void a_full_disk_cuts_no_case(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    DflashError error = {0};
    DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 500, .rlim_max = 500});
    cJSON *record = make_record(CASE_PASS("one"));
    int wrong = dflash_store_record(store, record, &error) != DFLASH_OK;
    wrong |= dflash_store_record(store, record, &error) != DFLASH_IO;
    wrong |= strcmp(error.message, PATH ": cannot write: File too large") != 0;
    cJSON_Delete(record);
    wrong |= dflash_store_close(store, &error) != DFLASH_IO;
    _exit(wrong);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  assert_lines(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(every_line_is_a_record, setup),
      cmocka_unit_test_setup(cases_are_written_whole, setup),
      cmocka_unit_test_setup(a_summary_drops_the_case_in_work, setup),
      cmocka_unit_test_setup(a_new_run_starts_the_file_anew, setup),
      cmocka_unit_test_setup(other_files_are_not_overwritten, setup),
      cmocka_unit_test_setup(bad_paths_are_named, setup),
      cmocka_unit_test_setup(records_must_be_objects, setup),
      cmocka_unit_test_setup(schema_is_added_once, setup),
      cmocka_unit_test_setup(a_full_disk_cuts_no_case, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
