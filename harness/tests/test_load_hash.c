/* Hashes: each covers its part of the file, independent of layout and order. */
#include "golden_copy.h"

#include "load/hash.h"
#include <unistd.h>

/* Made by the Python function in docs/golden-format.md, which shares nothing with this code. */
static const char *const known_hashes[6][2] = {{"945e242903e749e7a80dd9fdee58a1467ccf1b2ddc2319e2050da6ac060a7014",
                                                "804e06c0a97126c97c2419cb74087096b89c2a3d214fe9ad51b901b9eb161f8e"},
                                               {"846c445fbab3002f3ebe2d5af94d6c06271093aed5b3534c8d4ba1246ef1b159",
                                                "0dddd6c914fe0088915e4dfdb08fafa6000aea4164d84e3c512f29f3c40c9aeb"},
                                               {"cd1f1c87e3bad21057db8999250297f1e8dda91ad70bd431554cb5b7630fa20d",
                                                "8fbcac26e54a8a9ffd5d9923515c3c383c90bc3acdf1bc7dc9302e6e9774fda9"},
                                               {"b0d337348a5ee32476ada338580d552f220d36bc3e90d6ef0fdf561f6aa8327e",
                                                "d9735a5104374005357b94b38c523f5b8d87a39eed47cb01b23e77a9015a8c8a"},
                                               {"9771113cba2ae199da6cfb6e5276069153ff335373904d54845194cf06ff077a",
                                                "b69f01dbceabbc7cac28777453aa74e0356da1b2b2dadd13f4340301f63d1ae8"},
                                               {"bcef2d6f2821d71146f048a0d6c3aee1fdfbc7c7634a062013b3930ff12b7d33",
                                                "a3fced67a72dcb0825d28899561400097cd2fd4cc1cc93df3d493b8b52770832"}};

/* The same function: of nothing, and of what add_scales makes. */
static const char no_scales[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char made_scales[] = "14a76a765afe19dc6e0c8efe4dfc15632b4c82436d74904f98f5e66efb0c9a1a";

static void fixtures_have_the_hashes_that_python_computes(void **state) {
  (void)state;
  for (int f = 0; f < 6; f++) {
    DflashGoldenHashes hashes;
    DflashGolden *golden = open_golden(all_fixtures[f]);
    assert_int_equal(dflash_golden_hashes(golden, &hashes, NULL), DFLASH_OK);
    assert_string_equal(hashes.inputs, known_hashes[f][0]);
    assert_string_equal(hashes.values, known_hashes[f][1]);
    assert_string_equal(hashes.scales, no_scales);
    dflash_golden_close(golden);
  }
}

typedef struct Change {
  const char *path;
  size_t index;
  int inputs, values, scales; /* what the check must say */
} Change;

/* Geometry, case attributes and operations are seen by inputs_hash too: below. */
static const Change changes[] = {
    {"/weights/layers.2.mlp.down_proj.weight", 17, 0, 1, 1},
    {"/target/head", 3, 0, 1, 1},
    {"/router/rows", 5, 0, 1, 1},
    {"/geometry/inv_freq", 1, 0, 1, 1},
    {"/cases/main/context/taps", 0, 0, 1, 1},
    {"/cases/main/input/h", 9, 0, 1, 1},
    {"/cases/main/stages/attn.mix/1", 7, 1, 0, 1},
    {"/cases/main/stages/final.norm", 511, 1, 0, 1},
    {"/cases/main/context_state/k/2", 2, 1, 0, 1},
    {"/cases/main/scales/exact/alone/attn.mix/0", 3, 1, 1, 0},
    {"/cases/main/scales/exact/alone/scores", 1, 1, 1, 0},
    {"/cases/main/scales/exact/chain/context_state.v/2", 5, 1, 1, 0},
    {"/cases/main/scales/exact/chain/head.logits", 9, 1, 1, 0},
};

static void write_hashed(const char *path) {
  DflashGoldenHashes hashes;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  DflashCase c;
  load_case(golden, &c);
  add_scales(&c, dflash_golden_geometry(golden));
  assert_int_equal(write_copy(golden, &c, path, &hashes, NULL), DFLASH_OK);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

static void expect_verdicts(const char *path, int inputs, int values, int scales, const char *what) {
  int found_inputs = 7, found_values = 7, found_scales = 7;
  DflashGolden *golden = open_golden(path);
  assert_int_equal(dflash_golden_check_hashes(golden, &found_inputs, &found_values, NULL), DFLASH_OK);
  assert_int_equal(dflash_golden_check_scales_hash(golden, &found_scales, NULL), DFLASH_OK);
  dflash_golden_close(golden);
  if (found_inputs != inputs || found_values != values || found_scales != scales)
    fail_msg("%s: inputs %d, values %d, scales %d; expected %d, %d, %d", what, found_inputs, found_values, found_scales,
             inputs, values, scales);
}

static void each_hash_covers_its_part(void **state) {
  (void)state;
  char original[512], path[512];
  write_hashed(scratch_path("hashed.h5", original));
  scratch_path("changed.h5", path);
  expect_verdicts(original, 1, 1, 1, "as written");
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    hid_t file = open_copy(original, path);
    poke_f32(file, changes[i].path, changes[i].index, 0.75f);
    H5Fclose(file);
    expect_verdicts(path, changes[i].inputs, changes[i].values, changes[i].scales, changes[i].path);
  }
  hid_t file = open_copy(original, path);
  set_i64(file, "/cases/main", "anchor_token", 77);
  H5Fclose(file);
  expect_verdicts(path, 0, 1, 1, "anchor_token");
  file = open_copy(original, path);
  set_i64(file, "/cases/main", "exact", 1);
  H5Fclose(file);
  expect_verdicts(path, 0, 1, 1, "exact");
  file = open_copy(original, path);
  set_f64(file, "/geometry", "eps", 1e-5);
  H5Fclose(file);
  expect_verdicts(path, 0, 1, 1, "eps");
  unlink(original);
  unlink(path);
}

static void a_stored_hash_may_be_absent_or_wrong(void **state) {
  (void)state;
  char original[512], path[512];
  write_hashed(scratch_path("stored.h5", original));
  hid_t file = open_copy(original, scratch_path("absent.h5", path));
  drop_attribute(file, "/", "inputs_hash");
  set_text(file, "/", "values_hash", "0000");
  H5Fclose(file);
  expect_verdicts(path, -1, 0, 1, "one absent, one wrong");
  unlink(original);
  unlink(path);
}

static void scales_have_the_hash_that_python_computes(void **state) {
  (void)state;
  char path[512];
  DflashGoldenHashes hashes;
  write_hashed(scratch_path("scaled.h5", path));
  DflashGolden *golden = open_golden(path);
  assert_int_equal(dflash_golden_hashes(golden, &hashes, NULL), DFLASH_OK);
  assert_string_equal(hashes.inputs, known_hashes[0][0]);
  assert_string_equal(hashes.values, known_hashes[0][1]);
  assert_string_equal(hashes.scales, made_scales);
  dflash_golden_close(golden);
  unlink(path);
}

/* Without the hash all is as it was before there was one; a set of scales that is gone shows. */
static void the_hash_of_scales_may_be_absent(void **state) {
  (void)state;
  char original[512], path[512];
  write_hashed(scratch_path("scaled.h5", original));
  hid_t file = open_copy(original, scratch_path("unscaled.h5", path));
  assert_true(H5Ldelete(file, "/cases/main/scales/exact/chain", H5P_DEFAULT) >= 0);
  H5Fclose(file);
  expect_verdicts(path, 1, 1, 0, "a set gone");
  file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  drop_attribute(file, "/", "scales_hash");
  H5Fclose(file);
  expect_verdicts(path, 1, 1, -1, "no hash");
  unlink(original);
  unlink(path);
}

static void notes_are_not_hashed(void **state) {
  (void)state;
  char original[512], path[512];
  write_hashed(scratch_path("noted.h5", original));
  hid_t file = open_copy(original, scratch_path("renoted.h5", path));
  set_text(file, "/", "note", "another");
  set_text(file, "/", "generator", "somebody");
  H5Fclose(file);
  expect_verdicts(path, 1, 1, 1, "note");
  unlink(original);
  unlink(path);
}

/* "a b" stands before "a": its path goes on with a space where the other has a slash. */
static void cases_sort_as_paths(void **state) {
  (void)state;
  assert_true(dflash_hash_case_order("a", "b") < 0);
  assert_true(dflash_hash_case_order("a b", "a") < 0);
  assert_true(dflash_hash_case_order("a-b", "a") < 0);
  assert_true(dflash_hash_case_order("a", "a0") < 0);
  assert_true(dflash_hash_case_order("a", "aa") < 0);
  assert_true(dflash_hash_case_order("\xc3\xa9", "z") > 0);
  assert_int_equal(dflash_hash_case_order("same", "same"), 0);
}

static void several_cases_hash_alike_in_any_order(void **state) {
  (void)state;
  static const char *const names[2][3] = {{"a", "a b", "a0"}, {"a0", "a", "a b"}};
  char path[512];
  DflashGoldenHashes hashes[2];
  DflashGolden *golden = open_golden(FIXTURE("operations"));
  const DflashWeights *weights = dflash_golden_weights(golden);
  const DflashGeometry *g = dflash_golden_geometry(golden);
  DflashWeightSet set = {.weights = *weights, .layers = (DflashLayerWeights *)weights->layers};
  DflashCase c;
  load_case(golden, &c);
  add_scales(&c, g);
  char *kept = c.name;
  for (int round = 0; round < 2; round++) {
    DflashGoldenWriter *writer;
    assert_int_equal(dflash_golden_create(scratch_path("several.h5", path), g, weights->inv_freq, &writer, NULL),
                     DFLASH_OK);
    for (int64_t i = 0; i < dflash_weight_count(g); i++) {
      DflashWeightEntry entry;
      dflash_weight_entry(g, i, &entry);
      assert_int_equal(dflash_golden_write_weight(writer, entry.name, dflash_weight_at(g, &set, i), NULL), DFLASH_OK);
    }
    assert_int_equal(dflash_golden_write_weight(writer, "/target/head", &weights->head, NULL), DFLASH_OK);
    for (int i = 0; i < 3; i++) {
      c.name = (char *)names[round][i];
      c.anchor_token = (unsigned char)names[round][i][strlen(names[round][i]) - 1];
      assert_int_equal(dflash_golden_write_case(writer, &c, NULL), DFLASH_OK);
    }
    assert_int_equal(dflash_golden_commit(writer, &hashes[round], NULL), DFLASH_OK);
  }
  c.name = kept;
  assert_memory_equal(&hashes[0], &hashes[1], sizeof hashes[0]);
  dflash_case_close(&c);
  dflash_golden_close(golden);
  assert_int_equal(read_everything(path, NULL), DFLASH_OK);
  unlink(path);
}

int main(void) {
  dflash_h5_quiet();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixtures_have_the_hashes_that_python_computes),
      cmocka_unit_test(each_hash_covers_its_part),
      cmocka_unit_test(a_stored_hash_may_be_absent_or_wrong),
      cmocka_unit_test(scales_have_the_hash_that_python_computes),
      cmocka_unit_test(the_hash_of_scales_may_be_absent),
      cmocka_unit_test(notes_are_not_hashed),
      cmocka_unit_test(cases_sort_as_paths),
      cmocka_unit_test(several_cases_hash_alike_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
