#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define SCRATCH DFLASH_SCRATCH_FOLDER "/test_file.bin"

static void make(const char *text, size_t bytes) {
  FILE *file = fopen(SCRATCH, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

static void maps_a_file(void **state) {
  (void)state;
  make("hello", 5);
  DflashMapping mapping;
  assert_int_equal(dflash_map_file(SCRATCH, &mapping, NULL), DFLASH_OK);
  assert_int_equal(mapping.size, 5);
  assert_memory_equal(mapping.data, "hello", 5);
  dflash_unmap_file(&mapping);
  assert_null(mapping.data);
  dflash_unmap_file(&mapping);
}

static void maps_an_empty_file(void **state) {
  (void)state;
  make("", 0);
  DflashMapping mapping;
  assert_int_equal(dflash_map_file(SCRATCH, &mapping, NULL), DFLASH_OK);
  assert_null(mapping.data);
  assert_int_equal(mapping.size, 0);
  dflash_unmap_file(&mapping);
}

static void refuses_what_is_no_file(void **state) {
  (void)state;
  DflashMapping mapping;
  DflashError error;
  assert_int_equal(dflash_map_file("/nonexistent/x", &mapping, &error), DFLASH_IO);
  assert_string_equal(error.message, "/nonexistent/x: cannot open: No such file or directory");
  assert_int_equal(dflash_map_file(DFLASH_SCRATCH_FOLDER, &mapping, &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "not a regular file"));
  assert_int_equal(dflash_map_file("/dev/zero", &mapping, &error), DFLASH_IO);
  unlink(SCRATCH);
  assert_int_equal(mkfifo(SCRATCH, 0600), 0); /* must not wait for a writer */
  assert_int_equal(dflash_map_file(SCRATCH, &mapping, &error), DFLASH_IO);
  assert_null(mapping.data);
  unlink(SCRATCH);
}

static void release_keeps_contents(void **state) {
  (void)state;
  enum { BYTES = 300000 };
  char *text = malloc(BYTES);
  assert_non_null(text);
  for (int i = 0; i < BYTES; i++) text[i] = (char)(i * 7);
  make(text, BYTES);
  DflashMapping mapping;
  assert_int_equal(dflash_map_file(SCRATCH, &mapping, NULL), DFLASH_OK);
  assert_memory_equal(mapping.data, text, BYTES);
  dflash_map_release(mapping.data + 100, BYTES - 200);
  dflash_map_release(mapping.data, BYTES);
  assert_memory_equal(mapping.data, text, BYTES);
  dflash_unmap_file(&mapping);
  free(text);
}

/* Memory that is no file mapping is left as it is: its pages hold the only copy. */
static void release_leaves_other_memory(void **state) {
  (void)state;
  enum { BYTES = 1 << 20 };
  char *text = malloc(BYTES);
  assert_non_null(text);
  memset(text, 'q', BYTES);
  dflash_map_release(text, BYTES);
  for (int i = 0; i < BYTES; i++) assert_int_equal(text[i], 'q');
  dflash_map_release(NULL, 100);
  dflash_map_release(text, 0);
  dflash_map_release(text, UINT64_MAX);
  dflash_map_release((const void *)(UINTPTR_MAX - 10), 5);
  free(text);
}

/* A private mapping holds changes that the file does not. */
static void release_leaves_private_changes(void **state) {
  (void)state;
  enum { BYTES = 1 << 16 };
  char *zeros = calloc(1, BYTES);
  assert_non_null(zeros);
  make(zeros, BYTES);
  free(zeros);
  int descriptor = open(SCRATCH, O_RDONLY);
  char *changed = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
  assert_ptr_not_equal(changed, MAP_FAILED);
  memset(changed, 'c', BYTES);
  assert_int_equal(mprotect(changed, BYTES, PROT_READ), 0);
  dflash_map_release(changed, BYTES);
  for (int i = 0; i < BYTES; i++) assert_int_equal(changed[i], 'c');
  munmap(changed, BYTES);
  close(descriptor);
}

static void reads_small_files(void **state) {
  (void)state;
  char *text;
  uint64_t size;
  DflashError error;
  for (size_t bytes = 0; bytes < 20000; bytes += 4095) {
    char *expected = calloc(1, bytes + 1);
    memset(expected, 'x', bytes);
    make(expected, bytes);
    assert_int_equal(dflash_read_file(SCRATCH, bytes, &text, &size, &error), DFLASH_OK);
    assert_int_equal(size, bytes);
    assert_string_equal(text, expected);
    free(text);
    free(expected);
  }
}

static void read_honours_its_limit(void **state) {
  (void)state;
  char *text;
  uint64_t size;
  DflashError error;
  make("0123456789", 10);
  assert_int_equal(dflash_read_file(SCRATCH, 9, &text, &size, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "larger than 9 bytes"));
  assert_null(text);
  assert_int_equal(dflash_read_file("/dev/zero", 1 << 16, &text, &size, &error), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_read_file(DFLASH_SCRATCH_FOLDER, 9, &text, &size, &error), DFLASH_IO);
  assert_int_equal(dflash_read_file("/nonexistent/x", 9, &text, &size, &error), DFLASH_IO);
  assert_int_equal(dflash_read_file("/proc/self/stat", 1 << 16, &text, &size, &error), DFLASH_OK);
  assert_true(size > 0);
  free(text);
}

static int clean(void **state) {
  (void)state;
  unlink(SCRATCH);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps_a_file),
      cmocka_unit_test(maps_an_empty_file),
      cmocka_unit_test(refuses_what_is_no_file),
      cmocka_unit_test(release_keeps_contents),
      cmocka_unit_test(release_leaves_other_memory),
      cmocka_unit_test(release_leaves_private_changes),
      cmocka_unit_test(reads_small_files),
      cmocka_unit_test(read_honours_its_limit),
  };
  return cmocka_run_group_tests(tests, NULL, clean);
}
