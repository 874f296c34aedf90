/* Writing that fails half way: one clear line, no file under either name, and HDF5 still in order. */
#include "golden_copy.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_WROTE, CHILD_FAILED, CHILD_BAD };

static int left_behind(const char *path) {
  char temporary[600];
  snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
  return access(path, F_OK) == 0 || access(temporary, F_OK) == 0;
}

/* In the child: with files limited to `limit` bytes. Ends through exit, so that HDF5's own end runs too. */
static void write_limited(const char *path, rlim_t limit) {
  DflashGoldenHashes hashes;
  DflashError error = {0};
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  DflashCase c;
  load_case(golden, &c);
  const struct rlimit size = {limit, limit};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &size);
  DflashStatus status = write_copy(golden, &c, path, &hashes, &error);
  dflash_case_close(&c);
  dflash_golden_close(golden);
  if (H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) != 0) exit(CHILD_BAD);
  if (status == DFLASH_OK) exit(CHILD_WROTE);
  int clear = status == DFLASH_IO && strstr(error.message, "File too large") && strstr(error.message, path);
  exit(clear && !left_behind(path) ? CHILD_FAILED : CHILD_BAD);
}

static int run_child(const char *path, rlim_t limit) {
  int how;
  pid_t child = fork();
  if (child == 0) write_limited(path, limit);
  assert_int_equal(waitpid(child, &how, 0), child);
  if (!WIFEXITED(how)) fail_msg("limit %lld: killed by signal %d", (long long)limit, WTERMSIG(how));
  return WEXITSTATUS(how);
}

static void every_limit_fails_cleanly(void **state) {
  (void)state;
  char path[512];
  struct stat info;
  scratch_path("full.h5", path);
  assert_int_equal(run_child(path, RLIM_INFINITY), CHILD_WROTE);
  assert_int_equal(stat(path, &info), 0);
  unlink(path);
  const rlim_t size = (rlim_t)info.st_size;
  const rlim_t limits[] = {1, 95, 96, 800, 4096, 20000, size / 4, size / 2, size - 20000, size - 8192, size - 1};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    int result = run_child(path, limits[i]);
    if (result != CHILD_FAILED) fail_msg("limit %lld: result %d", (long long)limits[i], result);
    assert_int_not_equal(access(path, F_OK), 0);
  }
}

/* What stood under the name stays there. */
static void the_old_file_survives(void **state) {
  (void)state;
  char path[512], *text;
  uint64_t size;
  scratch_path("old.h5", path);
  assert_int_equal(dflash_write_file(path, "old", 3, NULL), DFLASH_OK);
  assert_int_equal(run_child(path, 30000), CHILD_BAD); /* BAD only because the old file is there */
  assert_int_equal(dflash_read_file(path, 100, &text, &size, NULL), DFLASH_OK);
  assert_string_equal(text, "old");
  free(text);
  unlink(path);
}

static void a_folder_that_is_not_there(void **state) {
  (void)state;
  DflashError error = {0};
  DflashGoldenWriter *writer;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  assert_int_equal(dflash_golden_create(DFLASH_SCRATCH_FOLDER "/no/such/x.h5", dflash_golden_geometry(golden),
                                        dflash_golden_weights(golden)->inv_freq, &writer, &error),
                   DFLASH_IO);
  assert_null(writer);
  assert_non_null(strstr(error.message, "No such file"));
  dflash_golden_close(golden);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_limit_fails_cleanly),
      cmocka_unit_test(the_old_file_survives),
      cmocka_unit_test(a_folder_that_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
