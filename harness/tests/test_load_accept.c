/* Lawful variety: other layouts, byte orders, widths and kinds of text that other writers produce. */
#include "golden_copy.h"

#include <unistd.h>

static void expect_hashes_of(const char *fixture, const char *path) {
  DflashGoldenHashes hashes, expected;
  DflashGolden *golden = open_golden(fixture);
  assert_int_equal(dflash_golden_hashes(golden, &expected, NULL), DFLASH_OK);
  dflash_golden_close(golden);
  golden = open_golden(path);
  assert_int_equal(dflash_golden_hashes(golden, &hashes, NULL), DFLASH_OK);
  dflash_golden_close(golden);
  assert_string_equal(hashes.inputs, expected.inputs);
  assert_string_equal(hashes.values, expected.values);
  assert_string_equal(hashes.scales, expected.scales);
  unlink(path);
}

static hid_t chunked(int rank, const hsize_t *chunk, int deflate) {
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, rank, chunk);
  if (deflate) {
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 6);
    H5Pset_fletcher32(list);
  }
  return list;
}

static void chunks_filters_and_byte_orders(void **state) {
  (void)state;
  char path[512];
  const hsize_t chunk[2] = {3, 50};
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("layouts.h5", path));
  hid_t plain = chunked(2, chunk, 0), packed = chunked(2, chunk, 1), compact = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(compact, H5D_COMPACT);
  remake_f32(file, "/cases/main/context/taps", H5T_IEEE_F32LE, packed);
  remake_f32(file, "/cases/main/stages/head.logits", H5T_IEEE_F32BE, plain);
  remake_f32(file, "/cases/main/stages/attn.q_proj/1", H5T_IEEE_F32BE, H5P_DEFAULT);
  remake_f32(file, "/cases/main/stages/mlp.out/0", H5T_IEEE_F32LE, compact);
  remake_f32(file, "/cases/main/input/h", H5T_IEEE_F32BE, packed);
  H5Pclose(plain);
  H5Pclose(packed);
  H5Pclose(compact);
  H5Fclose(file);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void a_chunked_weight(void **state) {
  (void)state;
  char path[512];
  const hsize_t chunk[2] = {10, 10};
  const int64_t shape[] = {64, 192};
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("weight.h5", path)), packed = chunked(2, chunk, 1);
  remake_f32(file, "/weights/fc.weight", H5T_IEEE_F32BE, packed);
  set_text(file, "/weights/fc.weight", "storage", "f32");
  set_list(file, "/weights/fc.weight", "shape", shape, 2);
  H5Pclose(packed);
  H5Fclose(file);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void set_typed(hid_t file, const char *object, const char *name, hid_t type, hid_t space, const void *value,
                      hid_t memory) {
  drop_attribute(file, object, name);
  hid_t attribute = H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attribute >= 0);
  if (value) assert_true(H5Awrite(attribute, memory, value) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

static void set_fixed(hid_t file, const char *name, size_t size, H5T_str_t padding, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  H5Tset_strpad(type, padding);
  hsize_t one = 1;
  set_typed(file, "/", name, type, H5Screate_simple(1, &one, NULL), text, type);
  H5Tclose(type);
}

static void attributes_of_other_widths(void **state) {
  (void)state;
  char path[512];
  hsize_t one = 1;
  const int hidden = 64;
  const int64_t vocab = 512;
  const float theta = 10000.0f;
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("widths.h5", path));
  set_typed(file, "/geometry", "hidden", H5T_STD_I16BE, H5Screate_simple(1, &one, NULL), &hidden, H5T_NATIVE_INT);
  set_typed(file, "/geometry", "vocab", H5T_STD_U64LE, H5Screate(H5S_SCALAR), &vocab, H5T_NATIVE_INT64);
  set_typed(file, "/geometry", "rope_theta", H5T_IEEE_F32BE, H5Screate(H5S_SCALAR), &theta, H5T_NATIVE_FLOAT);
  set_typed(file, "/geometry", "no_rope", H5T_IEEE_F64LE, H5Screate(H5S_NULL), NULL, H5T_NATIVE_DOUBLE);
  H5Fclose(file);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void text_of_fixed_length(void **state) {
  (void)state;
  char path[512];
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("text.h5", path));
  set_fixed(file, "format", 13, H5T_STR_NULLPAD, "dflash-golden");
  set_fixed(file, "note", 8, H5T_STR_SPACEPAD, "hello   ");
  H5Fclose(file);
  DflashGolden *golden = open_golden(path);
  assert_string_equal(dflash_golden_attribute(golden, "note"), "hello");
  dflash_golden_close(golden);
  unlink(path);
}

static void tokens_and_operations_of_other_integers(void **state) {
  (void)state;
  typedef struct {
    int64_t extra, n_rows, first_row;
    int16_t pos;
    int64_t op;
  } Wide;
  char path[512];
  const Wide ops[10] = {{0, 12, 0, 100, 0}, {0, 0, 0, 0, 2},   {0, 30, 12, 50, 0}, {0, 5, 42, 20, 0},
                        {0, 30, 47, 25, 0}, {0, 3, 77, 30, 0}, {0, 9, 80, 33, 0},  {0, 0, 0, 38, 1},
                        {0, 0, 0, 90, 1},   {0, 0, 89, 36, 0}};
  const hsize_t count = 10, drafts = 7;
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Wide));
  H5Tinsert(type, "extra", HOFFSET(Wide, extra), H5T_NATIVE_INT64);
  H5Tinsert(type, "n_rows", HOFFSET(Wide, n_rows), H5T_NATIVE_INT64);
  H5Tinsert(type, "first_row", HOFFSET(Wide, first_row), H5T_NATIVE_INT64);
  H5Tinsert(type, "pos", HOFFSET(Wide, pos), H5T_NATIVE_INT16);
  H5Tinsert(type, "op", HOFFSET(Wide, op), H5T_NATIVE_INT64);
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("integers.h5", path));
  put_dataset(file, "/cases/main/context/ops", type, 1, &count, H5P_DEFAULT, type, ops);
  H5Tclose(type);
  int64_t chosen[7];
  hid_t dataset = H5Dopen2(file, "/cases/main/output/chosen", H5P_DEFAULT);
  H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, chosen);
  H5Dclose(dataset);
  put_dataset(file, "/cases/main/output/chosen", H5T_STD_I64BE, 1, &drafts, H5P_DEFAULT, H5T_NATIVE_INT64, chosen);
  H5Fclose(file);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void what_is_unknown_is_ignored(void **state) {
  (void)state;
  char path[512];
  const hsize_t one = 1;
  const float value = 1;
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("unknown.h5", path));
  put_dataset(file, "/more", H5T_IEEE_F32LE, 1, &one, H5P_DEFAULT, H5T_NATIVE_FLOAT, &value);
  put_dataset(file, "/weights/more.weight", H5T_IEEE_F32LE, 1, &one, H5P_DEFAULT, H5T_NATIVE_FLOAT, &value);
  put_dataset(file, "/cases/main/stages/more", H5T_IEEE_F32LE, 1, &one, H5P_DEFAULT, H5T_NATIVE_FLOAT, &value);
  set_i64(file, "/geometry", "more", 3);
  H5Fclose(file);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void empty_context_stages_may_be_left_out(void **state) {
  (void)state;
  char path[512];
  hid_t file = open_copy(FIXTURE("operations"), scratch_path("left-out.h5", path));
  H5Ldelete(file, "/cases/main/stages/context.fc", H5P_DEFAULT);
  H5Ldelete(file, "/cases/main/stages/context.k", H5P_DEFAULT);
  H5Fclose(file);
  DflashError error = {0};
  if (read_everything(path, &error) != DFLASH_OK) fail_msg("%s", error.message);
  unlink(path);
}

static void a_user_block_before_the_file(void **state) {
  (void)state;
  char path[512], *data;
  uint64_t size;
  scratch_path("block.h5", path);
  hid_t list = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(list, 512);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, list, H5P_DEFAULT);
  hid_t from = H5Fopen(FIXTURE("operations"), H5F_ACC_RDONLY, H5P_DEFAULT);
  static const char *const groups[] = {"geometry", "weights", "target", "cases"};
  for (int i = 0; i < 4; i++) assert_true(H5Ocopy(from, groups[i], file, groups[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
  set_text(file, "/", "format", "dflash-golden");
  set_i64(file, "/", "version", 1);
  H5Fclose(from);
  H5Fclose(file);
  H5Pclose(list);
  assert_int_equal(dflash_read_file(path, (uint64_t)1 << 30, &data, &size, NULL), DFLASH_OK);
  assert_int_equal(data[0], 0);
  free(data);
  expect_hashes_of(FIXTURE("operations"), path);
}

static void the_newest_file_version(void **state) {
  (void)state;
  char path[512];
  scratch_path("newest.h5", path);
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  hid_t from = H5Fopen(FIXTURE("operations"), H5F_ACC_RDONLY, H5P_DEFAULT);
  static const char *const groups[] = {"geometry", "weights", "target", "cases"};
  for (int i = 0; i < 4; i++) assert_true(H5Ocopy(from, groups[i], file, groups[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
  set_text(file, "/", "format", "dflash-golden");
  set_i64(file, "/", "version", 1);
  H5Fclose(from);
  H5Fclose(file);
  H5Pclose(list);
  expect_hashes_of(FIXTURE("operations"), path);
}

int main(void) {
  dflash_h5_quiet();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_filters_and_byte_orders),
      cmocka_unit_test(a_chunked_weight),
      cmocka_unit_test(attributes_of_other_widths),
      cmocka_unit_test(text_of_fixed_length),
      cmocka_unit_test(tokens_and_operations_of_other_integers),
      cmocka_unit_test(what_is_unknown_is_ignored),
      cmocka_unit_test(empty_context_stages_may_be_left_out),
      cmocka_unit_test(a_user_block_before_the_file),
      cmocka_unit_test(the_newest_file_version),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
