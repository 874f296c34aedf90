#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_h5.h"
#include "model/checkpoint.h"
#include "safetensors_image.h"

#define FIXTURE DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint"
#define GOLDEN DFLASH_GOLDEN_FOLDER "/far-bf16.h5"
#define FOLDER DFLASH_SCRATCH_FOLDER "/checkpoint-scratch"
#define SINGLE FOLDER "/model.safetensors"
#define INDEX FOLDER "/model.safetensors.index.json"

static const char config[] =
    "{\"architectures\":[\"DFlash2DraftModel\"],\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":6,\"vocab_size\":5,\"rms_norm_eps\":1e-06,"
    "\"layer_types\":[\"full_attention\"],\"rope_theta\":1e4,\"num_target_layers\":3,\"dflash_config\":{"
    "\"block_size\":2,\"conv_kernel_size\":2,\"conv_group_size\":16,\"target_layer_ids\":[0,2],\"mask_token_id\":4,"
    "\"selector_rank\":3,\"selector_top_k\":2}}";

static DflashGeometry config_geometry(void) {
  DflashGeometry geometry;
  assert_int_equal(dflash_checkpoint_config(config, sizeof config - 1, &geometry, NULL), DFLASH_OK);
  return geometry;
}

static int make_folder(void **state) {
  (void)state;
  mkdir(FOLDER, 0777);
  unlink(SINGLE);
  unlink(INDEX);
  return dflash_write_file(FOLDER "/config.json", config, sizeof config - 1, NULL);
}

/* Element i of tensor `index`: exact in f16 and in bf16. */
static float element(int64_t index, int64_t i) { return (float)((i * 5 + index) % 127 - 63) / 32; }

static int64_t element_count(const DflashWeightEntry *entry) {
  int64_t count = 1;
  for (int i = 0; i < entry->rank; i++) count *= entry->shape[i];
  return count;
}

static void add_tensor(SafetensorsImage *image, const DflashGeometry *geometry, int64_t index, int32_t storage) {
  DflashWeightEntry entry;
  dflash_weight_entry(geometry, index, &entry);
  int64_t count = element_count(&entry);
  size_t width = storage == DFLASH_STORAGE_F32 ? 4 : 2;
  unsigned char *data = malloc((size_t)count * width);
  for (int64_t i = 0; i < count; i++) {
    float value = element(index, i);
    uint16_t half = storage == DFLASH_STORAGE_F16 ? dflash_f16_round(value) : dflash_bf16_round(value);
    memcpy(data + (size_t)i * width, width == 4 ? (void *)&value : (void *)&half, width);
  }
  const char *dtype = storage == DFLASH_STORAGE_F32 ? "F32" : storage == DFLASH_STORAGE_F16 ? "F16" : "BF16";
  safetensors_add(image, entry.name, dtype, entry.shape, entry.rank, data, (size_t)count * width);
  free(data);
}

static int32_t storage_of(int64_t index) { return (int32_t)(index % 3); }

static void add_padding(SafetensorsImage *image, size_t bytes) {
  const int64_t shape[1] = {(int64_t)bytes};
  safetensors_add(image, "padding", "U8", shape, 1, "1234567", bytes);
}

/* All tensors but `missing` in one file, behind `padding` bytes. */
static void write_single(size_t padding, int64_t missing) {
  DflashGeometry geometry = config_geometry();
  SafetensorsImage image = {0};
  add_padding(&image, padding);
  for (int64_t i = 0; i < dflash_weight_count(&geometry); i++)
    if (i != missing) add_tensor(&image, &geometry, i, storage_of(i));
  safetensors_finish(&image, SINGLE);
}

static void check_values(DflashCheckpoint *checkpoint) {
  for (int64_t index = 0; index < dflash_weight_count(&checkpoint->geometry); index++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&checkpoint->geometry, index, &entry);
    const DflashTensor *tensor = dflash_weight_at(&checkpoint->geometry, &checkpoint->set, index);
    bool vector = entry.kind == DFLASH_KIND_VECTOR || entry.kind == DFLASH_KIND_BASE;
    assert_int_equal(tensor->storage, vector ? DFLASH_STORAGE_F32 : storage_of(index));
    assert_int_equal((uintptr_t)tensor->data % 4, 0);
    int64_t cols = dflash_tensor_cols(tensor);
    for (int64_t i = 0; i < element_count(&entry); i++)
      assert_true(dflash_tensor_at(tensor, i / cols, i % cols) == (double)element(index, i));
  }
}

static void assert_opens(void) {
  DflashCheckpoint checkpoint;
  DflashError error = {0};
  if (dflash_checkpoint_open(FOLDER, &checkpoint, &error) != DFLASH_OK) fail_msg("%s", error.message);
  check_values(&checkpoint);
  dflash_checkpoint_close(&checkpoint);
  dflash_checkpoint_close(&checkpoint);
}

static void refuse(const char *expected) {
  DflashCheckpoint checkpoint;
  DflashError error = {0};
  assert_int_not_equal(dflash_checkpoint_open(FOLDER, &checkpoint, &error), DFLASH_OK);
  if (strstr(error.message, expected) == NULL) fail_msg("\"%s\", expected \"%s\"", error.message, expected);
  assert_memory_equal(error.message, FOLDER, sizeof FOLDER - 1);
  dflash_checkpoint_close(&checkpoint);
}

static void test_import_equals_golden(void **state) {
  (void)state;
  DflashCheckpoint checkpoint;
  DflashError error = {0};
  if (dflash_checkpoint_open(FIXTURE, &checkpoint, &error) != DFLASH_OK) fail_msg("%s", error.message);
  fixture_compare_geometry(GOLDEN, &checkpoint.geometry, checkpoint.set.weights.inv_freq);
  fixture_compare_weights(GOLDEN, &checkpoint.geometry, &checkpoint.set);
  assert_int_equal(checkpoint.mapping_count, 1);
  dflash_checkpoint_close(&checkpoint);
}

/* Every alignment of the data, and all three dtypes in vectors, base kernels, matrices and codebooks. */
static void test_single_file(void **state) {
  (void)state;
  for (size_t padding = 0; padding < 8; padding++) {
    write_single(padding, -1);
    assert_opens();
  }
}

static void write_index(const char *even, const char *odd) {
  DflashGeometry geometry = config_geometry();
  DflashText index = {0};
  for (int64_t i = 0; i < dflash_weight_count(&geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&geometry, i, &entry);
    dflash_text_append(&index, "%s\"%s\":%s", i == 0 ? "{\"weight_map\":{" : ",", entry.name, i % 2 == 0 ? even : odd);
  }
  dflash_text_append(&index, "}}");
  assert_int_equal(dflash_write_file(INDEX, index.data, index.size, NULL), DFLASH_OK);
  dflash_text_free(&index);
}

static void write_shards(void) {
  DflashGeometry geometry = config_geometry();
  SafetensorsImage images[2] = {0};
  for (int64_t i = 0; i < dflash_weight_count(&geometry); i++) add_tensor(&images[i % 2], &geometry, i, storage_of(i));
  safetensors_finish(&images[0], FOLDER "/shard-0.safetensors");
  safetensors_finish(&images[1], FOLDER "/shard-1.safetensors");
}

static void test_shards(void **state) {
  (void)state;
  write_shards();
  write_index("\"shard-0.safetensors\"", "\"shard-1.safetensors\"");
  assert_opens();
  write_index("\"shard-0.safetensors\"", "\"shard-0.safetensors\"");
  refuse("tensor hidden_norm.weight is missing");
  const char *outside[] = {
      "\"../shard-1.safetensors\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "7", "\"a\\\\b\"", "\"a/b\""};
  for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
    write_index("\"shard-0.safetensors\"", outside[i]);
    refuse("expected a file name without / and ..");
  }
  write_index("\"shard-0.safetensors\"", "\"shard-9.safetensors\"");
  refuse("shard-9.safetensors: cannot open");
  write_index("\"shard-0.safetensors\"", "null");
  refuse("hidden_norm.weight is missing");
  dflash_write_file(INDEX, "{}", 2, NULL);
  refuse("weight_map is no object");
  dflash_write_file(INDEX, "{", 1, NULL);
  refuse("not one JSON object");
}

static void test_missing_parts(void **state) {
  (void)state;
  refuse("holds neither model.safetensors nor model.safetensors.index.json");
  DflashGeometry geometry = config_geometry();
  for (int64_t i = 0; i < dflash_weight_count(&geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&geometry, i, &entry);
    write_single(0, i);
    refuse(entry.name);
  }
  write_single(0, -1);
  dflash_write_file(FOLDER "/config.json", "{}", 2, NULL);
  refuse("config.json: architectures names none");
  unlink(FOLDER "/config.json");
  refuse("config.json: cannot open");
}

/* One tensor in another form than the configuration asks for. */
static void refuse_tensor(int64_t index, const char *dtype, const int64_t *shape, int rank, const void *data,
                          size_t bytes, const char *expected) {
  DflashGeometry geometry = config_geometry();
  DflashWeightEntry entry;
  SafetensorsImage image = {0};
  for (int64_t i = 0; i < dflash_weight_count(&geometry); i++)
    if (i != index) add_tensor(&image, &geometry, i, storage_of(i));
  dflash_weight_entry(&geometry, index, &entry);
  safetensors_add(&image, entry.name, dtype, shape, rank, data, bytes);
  safetensors_finish(&image, SINGLE);
  refuse(expected);
}

static void test_tensors_in_another_form(void **state) {
  (void)state;
  enum { NORM = 2 };
  float values[33] = {0};
  const uint16_t halves[32] = {[7] = 0x7e00}, bfloats[32] = {[9] = 0xff80};
  const int64_t width[1] = {32}, wide[1] = {33}, matrix[2] = {1, 32};
  refuse_tensor(NORM, "F32", wide, 1, values, sizeof values, "norm.weight: rank 1 and shape [33]");
  refuse_tensor(NORM, "F32", matrix, 2, values, 128, "norm.weight: rank 2 and shape [1, 32]");
  refuse_tensor(NORM, "I32", width, 1, values, 128, "norm.weight has dtype I32, expected BF16, F16 or F32");
  refuse_tensor(NORM, "F16", width, 1, halves, 64, "norm.weight");
  refuse_tensor(NORM, "BF16", width, 1, bfloats, 64, "norm.weight");
  values[31] = NAN;
  refuse_tensor(NORM, "F32", width, 1, values, 128, "norm.weight");
}

/* A configuration may claim any size: it is refused by the file's tensors, and no memory is taken for it. */
static void test_claims_of_the_config(void **state) {
  (void)state;
  write_single(0, -1);
  const char *edits[][3] = {
      {"\"head_dim\":6", "\"head_dim\":17179869184", "self_attn.q_proj.weight"},
      {"\"vocab_size\":5", "\"vocab_size\":1099511627776", "candidate_selector.predecessor_codebook"},
      {"\"hidden_size\":32", "\"hidden_size\":4503599627370496", "config.json"},
  };
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    const char *at = strstr(config, edits[i][0]);
    DflashText text = {0};
    dflash_text_append(&text, "%.*s%s%s", (int)(at - config), config, edits[i][1], at + strlen(edits[i][0]));
    assert_int_equal(dflash_write_file(FOLDER "/config.json", text.data, text.size, NULL), DFLASH_OK);
    refuse(edits[i][2]);
    dflash_text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_import_equals_golden),
      cmocka_unit_test_setup(test_single_file, make_folder),
      cmocka_unit_test_setup(test_shards, make_folder),
      cmocka_unit_test_setup(test_missing_parts, make_folder),
      cmocka_unit_test_setup(test_tensors_in_another_form, make_folder),
      cmocka_unit_test_setup(test_claims_of_the_config, make_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
