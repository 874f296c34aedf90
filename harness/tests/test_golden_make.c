/* `golden make` as a user runs it: what cannot be is refused at once, in one line, with exit status 2. */
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

static const char sidecar[] = FIXTURE_FILE("sidecar-rewind.dflash.cmf");

/* Nothing is left behind either. */
#define EXPECT_REFUSED(parts, ...)       \
  do {                                   \
    expect_error(2, parts, __VA_ARGS__); \
    expect_no_leftovers();               \
    assert_false(file_exists("x.h5"));   \
  } while (0)

/* ---- the output ---- */

static void the_output_must_be_a_place_to_write(void **state) {
  (void)state;
  assert_int_equal(mkdir("folder", 0777), 0);
  write_whole("file", "x", 1);
  EXPECT_REFUSED("nowhere/x.h5|its folder nowhere/|No such file", "golden make --preset tiny -o nowhere/x.h5");
  EXPECT_REFUSED("file/x.h5|Not a directory", "golden make --preset tiny -o file/x.h5");
  EXPECT_REFUSED("folder|not a regular file", "golden make --preset tiny -o folder");
  EXPECT_REFUSED("folder/|not a regular file", "golden make --preset tiny -o folder/");
  EXPECT_REFUSED("/dev/null|not a regular file", "golden make --preset tiny -o /dev/null");
  EXPECT_REFUSED("/proc/x.h5|cannot create", "golden make --preset tiny -o /proc/x.h5");
  EXPECT_REFUSED("-o FILE is missing", "golden make --preset tiny");
  assert_true(file_exists("file"));
}

static void a_folder_may_be_closed(void **state) {
  (void)state;
  if (geteuid() == 0) skip(); /* writes everywhere */
  assert_int_equal(mkdir("closed", 0555), 0);
  EXPECT_REFUSED("closed/x.h5|cannot create|Permission denied", "golden make --preset tiny -o closed/x.h5");
}

/* The place is looked at before anything that takes long: here, weights that no disk holds. */
static void space_and_place_come_before_drawing(void **state) {
  (void)state;
  const char *const huge = "golden make --preset tiny --set vocab=1000000000000 --case main -o";
  EXPECT_REFUSED("x.h5: not enough space: about |MB are needed, |MB are free", "%s x.h5", huge);
  EXPECT_REFUSED("nowhere/x.h5|its folder", "%s nowhere/x.h5", huge);
}

/* The old file stays until the new one is whole, and then is the new one. */
static void an_existing_file_is_replaced_whole(void **state) {
  (void)state;
  size_t size;
  write_whole("old.h5", "precious", 8);
  expect_error(2, "context.norm", "golden make --preset tiny --set eps=1e300 --case main -o old.h5");
  char *old = read_whole("old.h5", &size);
  assert_string_equal(old, "precious");
  free(old);
  expect_run(0, "golden make --preset tiny --case main -o old.h5");
  expect_run(0, "golden check old.h5");
  expect_no_leftovers();
}

static void the_hashes_are_told(void **state) {
  (void)state;
  Program p = program("golden make --preset tiny --case main -o told.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "told.h5: 1 case, ");
  expect_contains(&p, p.out, "\n  inputs eca6f26a6401dd48ff97c6a2a1bdacfc6ea4ce800a29efa35ecf2e2d76b53b83\n");
  expect_contains(&p, p.out, "\n  values ");
  expect_contains(&p, p.out, "\n  scales ");
  program_close(&p);
}

/* ---- weights ---- */

static void weights_must_be_weights(void **state) {
  (void)state;
  size_t size;
  assert_int_equal(mkdir("bare", 0777), 0);
  assert_int_equal(mkdir("configured", 0777), 0);
  copy_whole(FIXTURE_FILE("far-bf16-checkpoint/config.json"), "configured/config.json");
  write_whole("empty", "", 0);
  char *whole = read_whole(sidecar, &size);
  write_whole("cut.dflash.cmf", whole, size / 2);
  free(whole);
  EXPECT_REFUSED("bare: neither a sidecar|nor a checkpoint folder", "golden make --weights bare -o x.h5");
  EXPECT_REFUSED("tiny-f32.h5: neither a sidecar", "golden make --weights %s -o x.h5", FIXTURE_FILE("tiny-f32.h5"));
  EXPECT_REFUSED("model.safetensors: neither", "golden make --weights %s -o x.h5",
                 FIXTURE_FILE("far-bf16-checkpoint/model.safetensors"));
  EXPECT_REFUSED("empty: not a CMF file", "golden make --weights empty -o x.h5");
  EXPECT_REFUSED("cut.dflash.cmf: ", "golden make --weights cut.dflash.cmf -o x.h5");
  EXPECT_REFUSED("nothere: cannot open", "golden make --weights nothere -o x.h5");
  EXPECT_REFUSED("configured: holds neither", "golden make --weights configured -o x.h5");
  EXPECT_REFUSED("/dev/null: not a regular file", "golden make --weights /dev/null -o x.h5");
}

/* ---- the head ---- */

/* A safetensors file of one tensor of zeros. */
static void write_tensor(const char *path, const char *name, const char *dtype, int rows, int cols, int width) {
  size_t bytes = (size_t)rows * (size_t)cols * (size_t)width;
  char *file = calloc(1, 512 + bytes);
  assert_non_null(file);
  int length = snprintf(file + 8, 504, "{\"%s\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]}}", name,
                        dtype, rows, cols, bytes);
  memset(file + 8 + length, ' ', (size_t)(-length & 7));
  length += -length & 7;
  file[0] = (char)length;
  write_whole(path, file, 8 + (size_t)length + bytes);
  free(file);
}

static void a_head_must_fit(void **state) {
  (void)state;
  assert_int_equal(mkdir("headless", 0777), 0);
  write_tensor("narrow.safetensors", "lm_head.weight", "F32", 509, 63, 4);
  write_tensor("short.safetensors", "lm_head.weight", "BF16", 508, 64, 2);
  write_tensor("integer.safetensors", "lm_head.weight", "I32", 509, 64, 4);
  write_tensor("other.safetensors", "lm_tail.weight", "F32", 509, 64, 4);
  write_tensor("right.safetensors", "lm_head.weight", "F16", 509, 64, 2);
  EXPECT_REFUSED("narrow.safetensors|lm_head.weight|63|64",
                 "golden make --preset tiny --head narrow.safetensors -o x.h5");
  EXPECT_REFUSED("short.safetensors|lm_head.weight|508|509",
                 "golden make --preset tiny --head short.safetensors -o x.h5");
  EXPECT_REFUSED("integer.safetensors|lm_head.weight|I32",
                 "golden make --preset tiny --head integer.safetensors -o x.h5");
  EXPECT_REFUSED("other.safetensors|no head", "golden make --preset tiny --head other.safetensors -o x.h5");
  EXPECT_REFUSED("headless: holds neither", "golden make --preset tiny --head headless -o x.h5");
  EXPECT_REFUSED("tiny-f32.h5: neither a CMF file nor safetensors", "golden make --preset tiny --head %s -o x.h5",
                 FIXTURE_FILE("tiny-f32.h5"));
  EXPECT_REFUSED("config.json: neither", "golden make --preset tiny --head %s -o x.h5",
                 FIXTURE_FILE("far-bf16-checkpoint/config.json"));
  EXPECT_REFUSED("nothere: cannot open", "golden make --preset tiny --head nothere -o x.h5");
  EXPECT_REFUSED("sidecar-rewind.dflash.cmf: no head", "golden make --weights %s --head %s -o x.h5", sidecar, sidecar);
  expect_run(2, "golden make --preset tiny --case main --head right.safetensors -o y.h5"); /* zeros prove little */
  expect_run(0, "golden make --preset tiny --case main --head right.safetensors --allow-untrusted -o y.h5");
}

/* ---- the target ---- */

static void the_target_may_be_named(void **state) {
  (void)state;
  EXPECT_REFUSED("trunk_hash64 00c0ffee00c0ffee|expected 12ab", "golden make --weights %s --target-hash 12ab -o x.h5",
                 sidecar);
  EXPECT_REFUSED("'nonsense' is not", "golden make --weights %s --target-hash nonsense -o x.h5", sidecar);
  EXPECT_REFUSED("drawn", "golden make --preset tiny --target-hash 12ab -o x.h5");
  EXPECT_REFUSED("checkpoint", "golden make --weights %s --target-hash 12ab -o x.h5",
                 FIXTURE_FILE("far-bf16-checkpoint"));
  expect_run(0, "golden make --weights %s --target-hash C0FFEE00C0FFEE --context 4 -o target.h5", sidecar);
  Program p = program("golden info target.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "  trunk_hash64     00c0ffee00c0ffee\n");
  expect_contains(&p, p.out, "\"target_hash\":\"C0FFEE00C0FFEE\"");
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_output_must_be_a_place_to_write),
      cmocka_unit_test(a_folder_may_be_closed),
      cmocka_unit_test(space_and_place_come_before_drawing),
      cmocka_unit_test(an_existing_file_is_replaced_whole),
      cmocka_unit_test(the_hashes_are_told),
      cmocka_unit_test(weights_must_be_weights),
      cmocka_unit_test(a_head_must_fit),
      cmocka_unit_test(the_target_may_be_named),
  };
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
