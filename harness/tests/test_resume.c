#include "records.h"

#define PATH DFLASH_SCRATCH_FOLDER "/resume.jsonl"

static const DflashStoreOptions resuming = {.json_path = PATH, .resume = 1};

static int setup(void **state) {
  (void)state;
  unlink(PATH);
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  put_record(store, RUN_RECORD);
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("one"));
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("two"));
  return dflash_store_close(store, NULL);
}

static void append_bytes(const char *text) {
  FILE *file = fopen(PATH, "a");
  fputs(text, file);
  fclose(file);
}

static int has(const DflashStore *store, const char *key_text) {
  cJSON *key = make_record(key_text);
  int found = dflash_store_has(store, key);
  cJSON_Delete(key);
  return found;
}

static void complete_cases_are_found(void **state) {
  (void)state;
  DflashStore *store = open_store(&resuming);
  assert_true(has(store, "{" SHARED ",'case':'one','modes':'alone,chain'}"));
  assert_true(has(store, "{" SHARED ",'case':'two'}"));
  assert_false(has(store, "{" SHARED ",'case':'three'}"));
  assert_false(has(store, "{" SHARED ",'case':'one','modes':'alone'}"));
  static const char *const members[][2] = {
      {"file", "dir/a.h5"}, {"backend", "blas"}, {"device", "cpu"}, {"profile", "exact"}, {"inputs_hash", "ab12"}};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    cJSON *key = make_record("{" SHARED ",'case':'one'}");
    assert_true(dflash_store_has(store, key));
    cJSON_ReplaceItemInObject(key, members[i][0], cJSON_CreateString("another"));
    assert_false(dflash_store_has(store, key));
    cJSON_Delete(key);
  }
  dflash_store_close(store, NULL);
}

static void without_resume_nothing_is_found(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.json_path = PATH});
  assert_false(has(store, "{" SHARED ",'case':'one'}"));
  dflash_store_close(store, NULL);
}

/* Opens to go on, adds a case, and counts lines. */
static void assert_goes_on(int lines_before) {
  DflashStore *store = open_store(&resuming);
  assert_true(has(store, "{" SHARED ",'case':'two'}"));
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("three"));
  dflash_store_close(store, NULL);
  char *text = text_of_file(PATH), *rest = NULL;
  assert_int_equal(count_of(text, "\n"), lines_before + 2);
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    cJSON *record = cJSON_Parse(line);
    assert_non_null(record);
    cJSON_Delete(record);
  }
  free(text);
}

static void goes_on_after_an_orderly_end(void **state) {
  (void)state;
  assert_goes_on(5);
}

static void a_broken_last_line_is_cut(void **state) {
  (void)state;
  append_bytes("{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"ver");
  assert_goes_on(5);
}

static void a_broken_last_line_with_newline_is_cut(void **state) {
  (void)state;
  append_bytes("{\"schema\":\"dflash-rec\n");
  assert_goes_on(5);
}

static void records_without_their_case_are_cut(void **state) {
  (void)state;
  append_bytes("{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"verdict\",\"case\":\"three\"}\n{\"sche");
  assert_goes_on(5);
}

static void a_broken_line_inside_is_refused(void **state) {
  (void)state;
  append_bytes("garbage\n{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"summary\"}\n");
  char *before = text_of_file(PATH);
  DflashStore *store;
  DflashError error;
  assert_int_equal(dflash_store_open(&resuming, &store, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "line 6 is no record"));
  char *after = text_of_file(PATH);
  assert_string_equal(before, after);
  free(before);
  free(after);
}

static void another_version_is_refused(void **state) {
  (void)state;
  append_bytes(
      "{\"schema\":\"dflash-record\",\"version\":2,\"type\":\"run\"}\n{\"schema\":\"dflash-record\",\"version\":1}\n");
  DflashStore *store;
  DflashError error;
  assert_int_equal(dflash_store_open(&resuming, &store, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "version 1"));
}

static void nul_bytes_and_depth_are_survived(void **state) {
  (void)state;
  FILE *file = fopen(PATH, "a");
  for (int i = 0; i < 100000; i++) fputc('[', file);
  fputc('\0', file);
  fclose(file);
  assert_goes_on(5);
}

static void no_file_yet_is_an_empty_one(void **state) {
  (void)state;
  unlink(PATH);
  DflashStore *store = open_store(&resuming);
  assert_false(has(store, "{" SHARED ",'case':'one'}"));
  put_record(store, CASE_PASS("one"));
  dflash_store_close(store, NULL);
  store = open_store(&resuming);
  assert_true(has(store, "{" SHARED ",'case':'one'}"));
  dflash_store_close(store, NULL);
}

/* Cut anywhere, as a crash in the midst of a write would, the file can be gone on with and keeps whole cases. */
static void any_cut_can_be_resumed(void **state) {
  (void)state;
  char *whole = text_of_file(PATH);
  const char *case_one = strstr(whole, "\"case\":\"one\",\"modes\"");
  assert_non_null(case_one);
  size_t size = strlen(whole), end_of_one = (size_t)(strchr(case_one, '\n') - whole) + 1;
  for (size_t cut = end_of_one % 17; cut < size; cut += 17) {
    FILE *file = fopen(PATH, "w");
    assert_int_equal(fwrite(whole, 1, cut, file), cut);
    fclose(file);
    DflashStore *store = open_store(&resuming);
    assert_int_equal(has(store, "{" SHARED ",'case':'one'}"), cut >= end_of_one);
    assert_false(has(store, "{" SHARED ",'case':'two'}"));
    dflash_store_close(store, NULL);
    char *text = text_of_file(PATH);
    assert_memory_equal(text, whole, strlen(text));
    assert_true(*text == '\0' || text[strlen(text) - 1] == '\n');
    free(text);
  }
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(complete_cases_are_found, setup),
      cmocka_unit_test_setup(without_resume_nothing_is_found, setup),
      cmocka_unit_test_setup(goes_on_after_an_orderly_end, setup),
      cmocka_unit_test_setup(a_broken_last_line_is_cut, setup),
      cmocka_unit_test_setup(a_broken_last_line_with_newline_is_cut, setup),
      cmocka_unit_test_setup(records_without_their_case_are_cut, setup),
      cmocka_unit_test_setup(a_broken_line_inside_is_refused, setup),
      cmocka_unit_test_setup(another_version_is_refused, setup),
      cmocka_unit_test_setup(nul_bytes_and_depth_are_survived, setup),
      cmocka_unit_test_setup(no_file_yet_is_an_empty_one, setup),
      cmocka_unit_test_setup(any_cut_can_be_resumed, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
