/* Damaged files, from the command line: one clear line, status 2, never the end of the program itself. */
#include "golden_copy.h"
#include "program.h"

#include <unistd.h>

#include "base/random.h"

static void expect_bad_golden(const char *path, const char *says) {
  expect_error(2, says, "verify %s --backend reference -q --timeout 5s", path);
  expect_no_leftovers();
}

/* ---- goldens that HDF5 itself accepts ---- */

typedef struct Damage {
  const char *says;
  void (*change)(hid_t file);
} Damage;

static void version_2(hid_t file) { set_i64(file, "/", "version", 2); }
static void format_other(hid_t file) { set_text(file, "/", "format", "other"); }
static void storage_unknown(hid_t file) { set_text(file, "/weights/fc.weight", "storage", "q3"); }
static void shape_lies(hid_t file) { set_list(file, "/weights/fc.weight", "shape", (const int64_t[]){192, 64}, 2); }
static void shape_overflows(hid_t file) {
  set_list(file, "/weights/fc.weight", "shape", (const int64_t[]){(int64_t)1 << 62, 64}, 2);
}
static void hidden_overflows(hid_t file) { set_i64(file, "/geometry", "hidden", INT64_MAX / 16 * 16); }
static void heads_odd(hid_t file) { set_i64(file, "/geometry", "heads", 3); }
static void weight_nan(hid_t file) { poke_f32(file, "/weights/fc.weight", 100, NAN); }
static void weight_missing(hid_t file) { H5Ldelete(file, "/weights/norm.weight", H5P_DEFAULT); }
static void rows_many(hid_t file) { set_i64(file, "/cases/main", "rows", 9); }
static void state_lies(hid_t file) { set_i64(file, "/cases/main/context_state", "len", 15); }
static void taps_infinite(hid_t file) { poke_f32(file, "/cases/main/context/taps", 5, INFINITY); }
static void stage_nan(hid_t file) { poke_f32(file, "/cases/main/stages/attn.mix/0", 3, NAN); }
static void stage_missing(hid_t file) { H5Ldelete(file, "/cases/main/stages/attn.mix/1", H5P_DEFAULT); }

static void test_goldens_that_lie(void **state) {
  (void)state;
  static const Damage damages[] = {
      {"version", version_2},
      {"format", format_other},
      {"storage|q3", storage_unknown},
      {"fc.weight|shape", shape_lies},
      {"fc.weight|shape", shape_overflows},
      {"hidden", hidden_overflows},
      {"heads is 3", heads_odd},
      {"fc.weight", weight_nan},
      {"norm.weight", weight_missing},
      {"rows", rows_many},
      {"len", state_lies},
      {"taps", taps_infinite},
      {"attn.mix/0", stage_nan},
      {"attn.mix/1", stage_missing},
  };
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    hid_t file = open_copy(FIXTURE("tiny-f32"), "d.h5");
    damages[i].change(file);
    H5Fclose(file);
    expect_bad_golden("d.h5", damages[i].says);
  }
}

/* One case of several is damaged, in a file that stores no hash: the others' results survive. */
static void test_a_damaged_case_among_others(void **state) {
  (void)state;
  hid_t file = open_copy("t.h5", "d.h5");
  H5Adelete(file, "inputs_hash");
  H5Adelete(file, "values_hash");
  H5Adelete(file, "scales_hash");
  H5Ldelete(file, "/cases/main/stages/attn.mix/1", H5P_DEFAULT);
  H5Fclose(file);
  expect_error(2, "d.h5: |main|attn.mix/1", "verify d.h5 --backend reference -q --json r.jsonl");
  cJSON *records = read_records("r.jsonl");
  assert_string_equal(text_in(case_of(records, "cut"), "outcome"), "pass");
  assert_string_equal(text_in(case_of(records, "rewind"), "outcome"), "pass");
  assert_int_equal(number_in(last_record(records), "bad_input"), 1);
  assert_int_equal(number_in(last_record(records), "passed"), 2);
  cJSON_Delete(records);
}

/* A changed value would look like a backend's error; the hash tells. */
static void test_a_changed_value_is_no_backend_s_fault(void **state) {
  (void)state;
  hid_t file = open_copy("t.h5", "d.h5");
  poke_f32(file, "/cases/main/stages/attn.mix/1", 3, 0.5F);
  H5Fclose(file);
  expect_bad_golden("d.h5", "d.h5: values_hash does not match the file's contents");
  expect_run(1, "golden check d.h5");
  file = open_copy("t.h5", "d.h5");
  poke_f32(file, "/cases/cut/input/h", 3, 0.5F);
  H5Fclose(file);
  expect_bad_golden("d.h5", "d.h5: inputs_hash does not match the file's contents");
}

/* An error scale a thousand times too wide would accept anything. */
static void test_a_changed_scale_is_found(void **state) {
  (void)state;
  hid_t file = open_copy("t.h5", "d.h5");
  poke_f32(file, "/cases/main/scales/exact/chain/attn.mix/1", 3, 1000.0F);
  H5Fclose(file);
  expect_bad_golden("d.h5", "d.h5: scales_hash does not match the file's contents");
}

static void test_goldens_cut_short(void **state) {
  (void)state;
  size_t size;
  char *data = read_whole("t.h5", &size);
  for (size_t i = 0; i < 20; i++) {
    write_whole("d.h5", data, i < 8 ? i * 7 : size * (i - 8) / 12 - (i > 8));
    expect_bad_golden("d.h5", "d.h5: ");
    if (i % 5 == 0) {
      expect_error(2, "d.h5: ", "golden info d.h5");
      expect_error(2, "d.h5: ", "golden check d.h5");
      expect_error(2, "d.h5: ", "list cases d.h5");
      expect_error(2, "d.h5: ", "bench d.h5 --backend reference -q");
    }
  }
  free(data);
  expect_bad_golden("nosuch.h5", "nosuch.h5: cannot open: No such file or directory");
  expect_bad_golden(".", ".: not a regular file");
  expect_bad_golden("/dev/zero", "/dev/zero: not a regular file");
}

/* ---- flipped bits ---- */

/* 1 for each byte that some dataset's data cover; the rest is HDF5's own. */
typedef struct Cover {
  char *data;
  size_t size;
} Cover;

static herr_t cover_dataset(hid_t group, const char *name, const H5O_info_t *info, void *context) {
  const Cover *cover = context;
  if (info->type != H5O_TYPE_DATASET) return 0;
  hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
  haddr_t offset = H5Dget_offset(dataset);
  hsize_t bytes = H5Dget_storage_size(dataset);
  if (offset != HADDR_UNDEF && offset + bytes <= cover->size) memset(cover->data + offset, 1, bytes);
  H5Dclose(dataset);
  return 0;
}

static char *find_data(const char *path, size_t size) {
  Cover cover = {calloc(size, 1), size};
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_non_null(cover.data);
  assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, cover_dataset, &cover) >= 0);
  H5Fclose(file);
  return cover.data;
}

typedef struct Tally {
  int flips, harmless, wrong, refused, crashed;
} Tally;

static void expect_end(const Program *p, Tally *tally) {
  bool crashed = strstr(p->err, "reading it ") || strstr(p->err, ": reading case ");
  if (p->status < 0 || p->status > 2) fail_msg("%s\nexit status %d\n%s%s", p->command, p->status, p->out, p->err);
  tally->flips++;
  tally->harmless += p->status == 0;
  tally->wrong += p->status == 1;
  tally->refused += p->status == 2;
  tally->crashed += crashed;
  if (p->status == 2 &&
      (strncmp(p->err, "dflash-harness: error: ", 23) != 0 || strchr(p->err, '\n') != p->err + strlen(p->err) - 1))
    fail_msg("%s\nis not one error line:\n%s", p->command, p->err);
  if (crashed && p->status != 2) fail_msg("%s\ncrashed in the file, and came to %d", p->command, p->status);
}

/* Two in three flips hit what HDF5 keeps for itself. Another file of the same run must not suffer. */
static Tally flip_bits(const char *golden, int flips) {
  Tally tally = {0};
  size_t size;
  char *bytes = read_whole(golden, &size), *data = find_data(golden, size);
  const char *slash = strrchr(golden, '/'); /* the same bits wherever the sources lie */
  const DflashRandom random = dflash_random_stream(11, slash ? slash + 1 : golden);
  for (uint64_t i = 0; tally.flips < flips; i++) {
    size_t at = dflash_random_below(random, 2 * i, (uint32_t)size);
    char bit = (char)(1U << dflash_random_below(random, 2 * i + 1, 8));
    if (data[at] && tally.flips % 3 != 0) continue;
    bytes[at] ^= bit;
    write_whole("d.h5", bytes, size);
    bytes[at] ^= bit;
    bool both = tally.flips % 10 == 0;
    Program p =
        program("verify d.h5 %s --backend reference -q --mode chain --timeout 3s --json r.jsonl", both ? "t.h5" : "");
    expect_end(&p, &tally);
    program_close(&p);
    cJSON *records = read_records("r.jsonl");
    assert_string_equal(text_in(last_record(records), "type"), "summary");
    if (both) assert_true(number_in(last_record(records), "passed") >= 3);
    cJSON_Delete(records);
  }
  print_message("%s: %d flips: %d harmless, %d another value, %d refused, %d of them crashed or hung inside HDF5\n",
                golden, tally.flips, tally.harmless, tally.wrong, tally.refused, tally.crashed);
  free(bytes);
  free(data);
  return tally;
}

static void test_flipped_bits(void **state) {
  (void)state;
  Tally with_hash = flip_bits("t.h5", 75);
  assert_int_equal(with_hash.wrong, 0); /* a hash covers every value */
  assert_true(with_hash.refused >= 25);
  Tally without = flip_bits(FIXTURE("odd-groups"), 75);
  assert_true(without.refused >= 10);
}

/* ---- sidecars and checkpoints ---- */

static void expect_bad_weights(const char *place, const char *says) {
  expect_error(2, says, "golden make --weights %s --case main -q -o w.h5", place);
  assert_false(file_exists("w.h5"));
  expect_no_leftovers();
}

typedef struct Patch {
  const char *says;
  size_t at;
  uint64_t value;
  int bytes;
} Patch;

enum { NAME_OFFSET_0 = 16 }; /* of the first record of a directory */

static void patch(char *data, size_t at, uint64_t value, int bytes) { memcpy(data + at, &value, (size_t)bytes); }

static uint64_t word_at(const char *data, size_t at) {
  uint64_t value;
  memcpy(&value, data + at, sizeof value);
  return value;
}

static void test_sidecars_that_lie(void **state) {
  (void)state;
  size_t size;
  char *whole = read_whole(FIXTURE_FILE("sidecar-rewind.dflash.cmf"), &size);
  size_t directory = (size_t)word_at(whole, 32), record = directory + NAME_OFFSET_0;
  const Patch patches[] = {
      {"a sidecar", 0, 0, 1},
      {"version", 4, 3, 4},
      {"feature", 12, 1U << 31 | 5, 4},
      {"", 16, UINT64_MAX - 8, 8},         /* header's offset */
      {"", 24, UINT64_MAX, 8},             /* header's length */
      {"", 32, size, 8},                   /* directory's offset */
      {"", 48, 4095, 8},                   /* data's offset */
      {"", 56, UINT64_MAX / 2, 8},         /* data's length */
      {"", directory, UINT64_MAX / 56, 8}, /* count: times 56 it overflows */
      {"", directory + 8, size, 8},        /* name pool */
      {"", record, UINT32_MAX, 4},         /* name */
      {"dtype|7", record + 6, 7, 1},
      {"", record + 7, 7, 1},          /* rank */
      {"", record + 8, UINT32_MAX, 4}, /* shape */
      {"", record + 32, 1, 8},         /* data: not aligned */
      {"", record + 32, UINT64_MAX / 64 * 64, 8},
      {"", record + 40, UINT64_MAX, 8}, /* bytes */
  };
  for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
    char *data = malloc(size);
    memcpy(data, whole, size);
    patch(data, 120, 0, 8); /* the directory's hash: not checked */
    patch(data, patches[i].at, patches[i].value, patches[i].bytes);
    write_whole("d.dflash.cmf", data, size);
    char says[64];
    snprintf(says, sizeof says, "d.dflash.cmf: |%s", patches[i].says);
    expect_bad_weights("d.dflash.cmf", says);
    free(data);
  }
  free(whole);
}

static void test_sidecars_cut_short_and_flipped(void **state) {
  (void)state;
  size_t size;
  char *data = read_whole(FIXTURE_FILE("sidecar-rewind.dflash.cmf"), &size);
  const DflashRandom random = dflash_random_stream(12, "sidecar");
  for (size_t i = 0; i < 10; i++) {
    write_whole("d.dflash.cmf", data, i < 4 ? i * 50 : size * (i - 3) / 7 - 1);
    expect_bad_weights("d.dflash.cmf", "d.dflash.cmf: ");
  }
  for (uint64_t i = 0; i < 20; i++) {
    size_t at = dflash_random_below(random, 2 * i, i < 10 ? 128 + 6000 : (uint32_t)size);
    char bit = (char)(1U << dflash_random_below(random, 2 * i + 1, 8));
    data[at] ^= bit;
    write_whole("d.dflash.cmf", data, size);
    data[at] ^= bit;
    Program p = program("golden make --weights d.dflash.cmf --case main -q -o w.h5");
    if (p.status != 0 && p.status != 2) fail_msg("byte %zu: exit status %d: %s", at, p.status, p.err);
    assert_int_equal(file_exists("w.h5"), p.status == 0); /* what it did not need may be damaged */
    program_close(&p);
    remove("w.h5");
  }
  free(data);
}

#define CONFIG FIXTURE_FILE("far-bf16-checkpoint/config.json")
#define TENSORS FIXTURE_FILE("far-bf16-checkpoint/model.safetensors")

/* The config with one text in place of another. */
static void write_config(const char *from, const char *to) {
  size_t size;
  char *config = read_whole(CONFIG, &size), *at = strstr(config, from);
  if (!at) fail_msg("no %s in %s", from, config);
  FILE *file = fopen("config.json", "w");
  assert_non_null(file);
  fprintf(file, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
  fclose(file);
  free(config);
}

static void test_checkpoints(void **state) {
  (void)state;
  static const char *const changes[][3] = {
      {"\"hidden_size\"", "\"hidden\"", "hidden_size"},
      {"\"DFlash2DraftModel\"", "\"DFlashDraftModel\"", "config.json"},
      {"\"conv_kernel_size\"", "\"conv_kernel\"", "config.json"},
      {"{", "[", "config.json"},
  };
  size_t size;
  char *tensors = read_whole(TENSORS, &size);
  write_whole("model.safetensors", tensors, size);
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    write_config(changes[i][0], changes[i][1]);
    expect_bad_weights(".", changes[i][2]);
  }
  copy_whole(CONFIG, "config.json");
  for (size_t i = 0; i < 8; i++) {
    write_whole("model.safetensors", tensors, i < 3 ? i * 5 : size * (i - 2) / 6 - 1);
    expect_bad_weights(".", "model.safetensors");
  }
  patch(tensors, 0, UINT64_MAX - 4, 8); /* the header's length */
  write_whole("model.safetensors", tensors, size);
  expect_bad_weights(".", "model.safetensors");
  remove("model.safetensors");
  expect_bad_weights(".", "model.safetensors");
  remove("config.json");
  expect_bad_weights(".", "config.json");
  free(tensors);
}

/* bf16 0x7fc0 in the data, wherever it lies, is no weight. */
static void test_a_checkpoint_with_nan(void **state) {
  (void)state;
  size_t size;
  char *tensors = read_whole(TENSORS, &size);
  patch(tensors, (8 + (size_t)word_at(tensors, 0) + size) / 4 * 2, 0x7fc0, 2);
  write_whole("model.safetensors", tensors, size);
  copy_whole(CONFIG, "config.json");
  expect_bad_weights(".", "finite");
  free(tensors);
}

int main(void) {
  dflash_h5_quiet();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_goldens_that_lie),
      cmocka_unit_test(test_a_damaged_case_among_others),
      cmocka_unit_test(test_a_changed_value_is_no_backend_s_fault),
      cmocka_unit_test(test_a_changed_scale_is_found),
      cmocka_unit_test(test_goldens_cut_short),
      cmocka_unit_test(test_flipped_bits),
      cmocka_unit_test(test_sidecars_that_lie),
      cmocka_unit_test(test_sidecars_cut_short_and_flipped),
      cmocka_unit_test(test_checkpoints),
      cmocka_unit_test(test_a_checkpoint_with_nan),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
