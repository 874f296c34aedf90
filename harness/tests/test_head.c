#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmf_image.h"
#include "safetensors_image.h"

#define FOLDER DFLASH_SCRATCH_FOLDER "/head-scratch"
#define TARGET FOLDER "/target.cmf"
#define SINGLE FOLDER "/model.safetensors"
#define INDEX FOLDER "/model.safetensors.index.json"
#define CONFIG FOLDER "/config.json"

static int make_folder(void **state) {
  (void)state;
  mkdir(FOLDER, 0777);
  const char *files[] = {TARGET, SINGLE, INDEX, CONFIG};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) unlink(files[i]);
  return 0;
}

static void write_text(const char *path, const char *text) {
  assert_int_equal(dflash_write_file(path, text, strlen(text), NULL), DFLASH_OK);
}

static void assert_head(const char *path, const char *name, int32_t storage, int first) {
  DflashGeometry geometry = image_geometry();
  DflashHead head;
  DflashError error = {0};
  if (dflash_head_open(path, &geometry, &head, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_string_equal(head.name, name);
  assert_int_equal(head.tensor.storage, storage);
  assert_int_equal(head.tensor.shape[0], geometry.vocab);
  assert_int_equal(head.tensor.shape[1], geometry.hidden);
  assert_int_equal((uintptr_t)head.tensor.data % 4, 0);
  assert_int_equal(((const unsigned char *)head.tensor.data)[0], first);
  dflash_head_close(&head);
  dflash_head_close(&head);
}

static void refuse(const char *path, const char *expected) {
  DflashGeometry geometry = image_geometry();
  DflashHead head;
  DflashError error = {0};
  assert_int_not_equal(dflash_head_open(path, &geometry, &head, &error), DFLASH_OK);
  if (strstr(error.message, expected) == NULL) fail_msg("\"%s\", expected \"%s\"", error.message, expected);
  if (strstr(error.message, FOLDER) == NULL) fail_msg("\"%s\" names no file", error.message);
  assert_null(head.tensor.data);
  dflash_head_close(&head);
}

/* ---- CMF ---- */

static const ImageTensor lm_head = {"lm_head.weight", DFLASH_STORAGE_Q8_2F, 2, {5, 32}, 5 * 32 + 2 * 5 + 2 * 32};
static const ImageTensor embedding = {"model.embed_tokens.weight", DFLASH_STORAGE_Q4TP, 2, {5, 32}, 5 * (16 + 4 + 1)};
static const ImageTensor bare = {"embed_tokens.weight", DFLASH_STORAGE_F16, 2, {5, 32}, 320};
static const ImageTensor other = {"model.norm.weight", 77, 1, {32}, 7};

static Image write_cmf(const char *header, const ImageTensor *first, const ImageTensor *second) {
  const ImageTensor tensors[2] = {*first, *second};
  Image image = image_make(header, tensors, 2);
  assert_int_equal(dflash_write_file(TARGET, image.bytes, image.size, NULL), DFLASH_OK);
  return image;
}

static void assert_cmf(const char *header, const ImageTensor *first, const ImageTensor *second, int taken) {
  Image image = write_cmf(header, first, second);
  const ImageTensor *tensor = taken == 0 ? first : second;
  assert_head(TARGET, tensor->name, tensor->dtype, image_tensor_data(&image, taken)[0]);
  image_free(&image);
}

static void refuse_cmf(const char *header, const ImageTensor *first, const ImageTensor *second, const char *expected) {
  Image image = write_cmf(header, first, second);
  refuse(TARGET, expected);
  image_free(&image);
}

#define TIED "{\"arch\":{\"arch_name\":\"qwen3\",\"tie_word_embeddings\":true}}"
#define UNTIED "{\"arch\":{\"arch_name\":\"qwen3\",\"tie_word_embeddings\":false}}"

static void test_cmf(void **state) {
  (void)state;
  assert_cmf(UNTIED, &embedding, &lm_head, 1);
  assert_cmf(TIED, &lm_head, &embedding, 0);
  assert_cmf(TIED, &other, &embedding, 1);
  assert_cmf("{}", &bare, &other, 0);
  assert_cmf("no JSON, and none is needed", &lm_head, &other, 0);
  refuse_cmf(UNTIED, &other, &embedding, "tie_word_embeddings is false");
  refuse_cmf("no JSON", &other, &embedding, "header is not one JSON object");
  ImageTensor renamed = bare;
  strcpy(renamed.name, "embed.weight");
  refuse_cmf(TIED, &other, &renamed, "no head: neither lm_head.weight nor an embedding");
}

static void test_cmf_forms(void **state) {
  (void)state;
  ImageTensor changed = lm_head;
  changed.dtype = 3;
  refuse_cmf(TIED, &embedding, &changed, "tensor lm_head.weight has dtype 3");
  changed = lm_head;
  changed.shape[0] = 6;
  refuse_cmf(TIED, &embedding, &changed, "lm_head.weight: rank 2 and shape [6, 32], expected rank 2 and [5, 32]");
  changed = lm_head;
  changed.rank = 3;
  changed.shape[2] = 1;
  refuse_cmf(TIED, &embedding, &changed, "lm_head.weight: rank 3");
  changed = lm_head;
  changed.bytes++;
  refuse_cmf(TIED, &embedding, &changed, "lm_head.weight: 235 bytes, expected 234");
}

static void test_cmf_damage(void **state) {
  (void)state;
  Image image = write_cmf(UNTIED, &embedding, &lm_head);
  image_tensor_data(&image, 1)[3] ^= 4;
  dflash_write_file(TARGET, image.bytes, image.size, NULL);
  refuse(TARGET, "tensor lm_head.weight is damaged");
  image_tensor_data(&image, 1)[3] ^= 4;
  memset(image_tensor_data(&image, 1) + 5 * 32, 0xff, 2); /* a row's scale is NaN */
  put_u64(image_record(&image, 1) + 48, 0);
  image_seal(&image);
  dflash_write_file(TARGET, image.bytes, image.size, NULL);
  refuse(TARGET, "lm_head.weight");
  for (uint64_t size = 4; size < image.size; size += 97) {
    dflash_write_file(TARGET, image.bytes, size, NULL);
    refuse(TARGET, TARGET);
  }
  image_free(&image);
}

/* ---- safetensors ---- */

static const int64_t head_shape[2] = {5, 32};

/* A bf16 tensor of the head's shape, all elements bytes of `value`, after `padding` bytes. */
static void write_safetensors(const char *path, size_t padding, const char *name, int value) {
  SafetensorsImage image = {0};
  unsigned char data[320];
  const int64_t shape[1] = {(int64_t)padding};
  memset(data, value, sizeof data);
  safetensors_add(&image, "padding", "U8", shape, 1, "1234567", padding);
  safetensors_add(&image, name, "BF16", head_shape, 2, data, sizeof data);
  safetensors_finish(&image, path);
}

static void test_safetensors_file(void **state) {
  (void)state;
  for (size_t padding = 0; padding < 5; padding++) {
    write_safetensors(FOLDER "/a.safetensors", padding, "lm_head.weight", 60);
    assert_head(FOLDER "/a.safetensors", "lm_head.weight", DFLASH_STORAGE_BF16, 60);
  }
  write_safetensors(FOLDER "/a.safetensors", 0, "embed_tokens.weight", 61);
  assert_head(FOLDER "/a.safetensors", "embed_tokens.weight", DFLASH_STORAGE_BF16, 61);
  write_text(CONFIG, "{\"tie_word_embeddings\":false}");
  refuse(FOLDER "/a.safetensors", "tie_word_embeddings is false");
  write_text(CONFIG, "{\"text_config\":{\"tie_word_embeddings\":false}}");
  refuse(FOLDER "/a.safetensors", "tie_word_embeddings is false");
  write_text(CONFIG, "{");
  refuse(FOLDER "/a.safetensors", "config.json is not one JSON object");
  write_text(CONFIG, "{\"tie_word_embeddings\":true}");
  assert_head(FOLDER "/a.safetensors", "embed_tokens.weight", DFLASH_STORAGE_BF16, 61);
  write_safetensors(FOLDER "/a.safetensors", 0, "head", 61);
  refuse(FOLDER "/a.safetensors", "no head");
  write_safetensors(FOLDER "/a.safetensors", 0, "lm_head.weight", 0xff);
  refuse(FOLDER "/a.safetensors", "lm_head.weight");
}

static void test_folder(void **state) {
  (void)state;
  refuse(FOLDER, "holds neither model.safetensors nor model.safetensors.index.json");
  write_safetensors(FOLDER "/b.safetensors", 1, "lm_head.weight", 62);
  write_safetensors(FOLDER "/c.safetensors", 1, "model.embed_tokens.weight", 63);
  write_text(INDEX, "{\"weight_map\":{\"lm_head.weight\":\"b.safetensors\",\"x\":\"missing.safetensors\"}}");
  assert_head(FOLDER, "lm_head.weight", DFLASH_STORAGE_BF16, 62);
  assert_head(INDEX, "lm_head.weight", DFLASH_STORAGE_BF16, 62);
  write_text(INDEX, "{\"weight_map\":{\"model.embed_tokens.weight\":\"c.safetensors\"}}");
  assert_head(FOLDER "/", "model.embed_tokens.weight", DFLASH_STORAGE_BF16, 63);
  write_text(INDEX, "{\"weight_map\":{\"lm_head.weight\":\"../head-scratch/b.safetensors\"}}");
  refuse(FOLDER, "expected a file name without / and ..");
  write_text(INDEX, "{\"weight_map\":{\"lm_head.weight\":\"c.safetensors\"}}"); /* which has no such tensor */
  refuse(FOLDER, "no head");
  write_safetensors(SINGLE, 3, "lm_head.weight", 59);
  assert_head(FOLDER, "lm_head.weight", DFLASH_STORAGE_BF16, 59);
}

static void test_no_target(void **state) {
  (void)state;
  refuse(FOLDER "/absent", "cannot open");
  write_text(FOLDER "/empty", "");
  refuse(FOLDER "/empty", "a safetensors file has at least 8");
  write_text(FOLDER "/text", "neither the one nor the other");
  refuse(FOLDER "/text", "the header's length is");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_cmf, make_folder),        cmocka_unit_test_setup(test_cmf_forms, make_folder),
      cmocka_unit_test_setup(test_cmf_damage, make_folder), cmocka_unit_test_setup(test_safetensors_file, make_folder),
      cmocka_unit_test_setup(test_folder, make_folder),     cmocka_unit_test_setup(test_no_target, make_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
