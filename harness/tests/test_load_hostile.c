/* Truncated and damaged files, each opened in a child. HDF5 1.10 may crash or hang on damaged metadata, above all in
 * the heap that holds text of variable length: such an end is HDF5's, and counted apart. A file that ends too early
 * must not get that far. */
#include "golden_copy.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"

/* Values that no sanitizer and no library uses. */
enum { CHILD_ACCEPTED = 40, CHILD_REFUSED, CHILD_BAD };

typedef struct Tally {
  int accepted, refused, crashed;
} Tally;

static void read_in_child(const char *path) {
  DflashError error = {0};
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGSEGV, SIG_DFL); /* not the test library's, which would go on with the next test */
  signal(SIGBUS, SIG_DFL);
  signal(SIGFPE, SIG_DFL);
  alarm(20);
  DflashGolden *golden;
  DflashStatus status = dflash_golden_open(path, 1, &golden, &error);
  for (int64_t i = 0; status == DFLASH_OK && i < dflash_golden_case_count(golden); i++) {
    DflashCase c;
    status = dflash_golden_case(golden, i, &c, &error);
    if (status == DFLASH_OK) dflash_case_close(&c);
  }
  if (status == DFLASH_OK) _exit(CHILD_ACCEPTED);
  _exit(error.message[0] && !strchr(error.message, '\n') ? CHILD_REFUSED : CHILD_BAD);
}

static void read_damaged(const char *path, const char *what, size_t where, Tally *tally) {
  int how;
  pid_t child = fork();
  if (child == 0) read_in_child(path);
  assert_int_equal(waitpid(child, &how, 0), child);
  int result = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  if (result == CHILD_BAD) fail_msg("%s at %zu: refused without one line of text", what, where);
  if (result == CHILD_ACCEPTED)
    tally->accepted++;
  else if (result == CHILD_REFUSED)
    tally->refused++;
  else
    tally->crashed++;
}

static void truncated_files_are_refused(void **state) {
  (void)state;
  char path[512];
  struct stat info;
  Tally tally = {0};
  copy_file(FIXTURE("odd-groups"), scratch_path("truncated.h5", path));
  assert_int_equal(stat(path, &info), 0);
  size_t size = (size_t)info.st_size;
  for (size_t step = 40; step > 0; step--) { /* only ever shorter */
    size_t end = step <= 20 ? (step - 1) * 5 : size * (step - 20) / 20 - 1;
    assert_int_equal(truncate(path, (off_t)end), 0);
    read_damaged(path, "truncated", end, &tally);
  }
  assert_int_equal(tally.refused, 40);
  unlink(path);
}

/* Ranges of the file that hold metadata: everything that no dataset's data cover. */
typedef struct Cover {
  unsigned char *raw;
  uint64_t size;
} Cover;

static herr_t cover_dataset(hid_t group, const char *name, const H5O_info_t *info, void *context) {
  const Cover *cover = context;
  if (info->type != H5O_TYPE_DATASET) return 0;
  hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
  haddr_t offset = H5Dget_offset(dataset);
  hsize_t bytes = H5Dget_storage_size(dataset);
  if (offset != HADDR_UNDEF && offset + bytes <= cover->size) memset(cover->raw + offset, 1, bytes);
  H5Dclose(dataset);
  return 0;
}

static Cover find_metadata(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  Cover cover = {calloc((size_t)info.st_size, 1), (uint64_t)info.st_size};
  assert_non_null(cover.raw);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, cover_dataset, &cover) >= 0);
  H5Fclose(file);
  return cover;
}

static void flip(int file, size_t at, int bit) {
  unsigned char byte;
  assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
  byte ^= (unsigned char)(1 << bit);
  assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
}

static void flipped_bits_in_metadata(void **state) {
  (void)state;
  enum { FLIPS = 200 };
  char path[512];
  Tally tally = {0};
  const DflashRandom random = dflash_random_stream(20240607, "flip");
  copy_file(FIXTURE("odd-groups"), scratch_path("flipped.h5", path));
  Cover cover = find_metadata(path);
  int file = open(path, O_RDWR);
  assert_true(file >= 0);
  for (uint64_t i = 0, done = 0; done < FLIPS; i++) {
    size_t at = dflash_random_below(random, 2 * i, (uint32_t)cover.size);
    int bit = (int)dflash_random_below(random, 2 * i + 1, 8);
    if (cover.raw[at]) continue;
    flip(file, at, bit);
    read_damaged(path, "flipped", at, &tally);
    flip(file, at, bit);
    done++;
  }
  print_message("%d flips: %d harmless, %d refused, %d crashed inside HDF5\n", FLIPS, tally.accepted, tally.refused,
                tally.crashed);
  assert_true(tally.refused > FLIPS / 10);
  assert_true(tally.crashed < FLIPS / 10);
  close(file);
  free(cover.raw);
  unlink(path);
}

int main(void) {
  dflash_h5_quiet();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(truncated_files_are_refused),
      cmocka_unit_test(flipped_bits_in_metadata),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
