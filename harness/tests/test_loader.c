/* Backends found, loaded and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "run/loader.h"

static void expect_refusal(const char *name, const char *search, const char *message) {
  DflashLoaded loaded;
  DflashError error = {0};
  assert_int_equal(dflash_backend_load(name, search, &loaded, &error), DFLASH_UNAVAILABLE);
  if (strstr(error.message, message) == NULL) fail_msg("'%s' in '%s'", message, error.message);
  assert_null(loaded.library);
  assert_null(loaded.backend);
}

static void test_by_name_and_by_path(void **state) {
  (void)state;
  DflashLoaded loaded;
  DflashError error = {0};
  assert_int_equal(dflash_backend_load("reference", DFLASH_BACKEND_FOLDER, &loaded, &error), DFLASH_OK);
  assert_string_equal(loaded.backend->name, "reference");
  assert_string_equal(loaded.path, DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  dflash_backend_unload(&loaded);
  assert_int_equal(dflash_backend_load(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so", NULL, &loaded, &error),
                   DFLASH_OK);
  assert_true(DFLASH_BACKEND_HAS(loaded.backend, block));
  dflash_backend_unload(&loaded);
  dflash_backend_unload(&loaded); /* twice does no harm */
}

static void test_what_is_refused(void **state) {
  (void)state;
  const char *folder = DFLASH_TEST_BACKEND_FOLDER;
  expect_refusal("nosuch", folder, "backend 'nosuch' is not here; found: ");
  expect_refusal("nosuch", folder, "wrong-abi");
  expect_refusal("", folder, "is not here");
  expect_refusal("./nosuch.so", folder, "cannot load backend: ./nosuch.so: ");
  expect_refusal(DFLASH_SCRATCH_FOLDER, folder, "cannot load backend: ");
  expect_refusal("wrong-abi", folder, "built for ABI 2, this harness takes ABI 1");
  expect_refusal("no-symbol", folder, "no symbol 'dflash_backend'");
  expect_refusal("small-struct", folder, "the required members take ");
  expect_refusal("no-member", folder, "required member 'read_context' is NULL");
}

static void note(void *context, const char *name, const char *path) {
  dflash_text_append(context, "%s=%s\n", name, path);
}

static void touch(const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
}

/* The first place wins; what is not named like a backend is no backend; a file may be a place. */
static void test_the_search_path(void **state) {
  (void)state;
  const char *first = DFLASH_SCRATCH_FOLDER "/loader-first", *second = DFLASH_SCRATCH_FOLDER "/loader-second";
  mkdir(first, 0777);
  mkdir(second, 0777);
  touch(DFLASH_SCRATCH_FOLDER "/loader-first/dflash-backend-a.so");
  touch(DFLASH_SCRATCH_FOLDER "/loader-first/dflash-backend-.so");
  touch(DFLASH_SCRATCH_FOLDER "/loader-first/libother.so");
  touch(DFLASH_SCRATCH_FOLDER "/loader-second/dflash-backend-a.so");
  touch(DFLASH_SCRATCH_FOLDER "/loader-second/dflash-backend-b.so");
  setenv("DFLASH_BACKEND_PATH", DFLASH_SCRATCH_FOLDER "/loader-second/dflash-backend-b.so:/nonexistent", 1);
  DflashText text = {0};
  dflash_backend_find(DFLASH_SCRATCH_FOLDER "/loader-first::" DFLASH_SCRATCH_FOLDER "/loader-second/nothing", note,
                      &text);
  unsetenv("DFLASH_BACKEND_PATH");
  assert_non_null(text.data);
  assert_ptr_equal(strstr(text.data, "a=" DFLASH_SCRATCH_FOLDER "/loader-first/dflash-backend-a.so\n"), text.data);
  assert_non_null(strstr(text.data, "\nb=" DFLASH_SCRATCH_FOLDER "/loader-second/dflash-backend-b.so\n"));
  assert_null(strstr(text.data, "other"));
  assert_null(strstr(text.data, "loader-second/dflash-backend-a.so"));
  dflash_text_free(&text);
}

static void test_a_path_that_is_too_long(void **state) {
  (void)state;
  char name[3000];
  DflashLoaded loaded;
  DflashError error = {0};
  memset(name, '/', sizeof name);
  name[sizeof name - 1] = '\0';
  assert_int_equal(dflash_backend_load(name, NULL, &loaded, &error), DFLASH_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_name_and_by_path),
      cmocka_unit_test(test_what_is_refused),
      cmocka_unit_test(test_the_search_path),
      cmocka_unit_test(test_a_path_that_is_too_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
