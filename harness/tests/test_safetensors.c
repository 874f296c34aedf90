#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/checkpoint.h"
#include "safetensors_image.h"

#define FIXTURE DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint/model.safetensors"

static DflashStatus parse_text(const char *header, size_t bytes, DflashSafetensors **parsed, DflashError *error) {
  size_t size;
  unsigned char *file = safetensors_make(header, NULL, bytes, &size);
  DflashStatus status = dflash_safetensors_parse(file, size, parsed, error);
  free(file);
  return status;
}

static void refuse(const char *header, size_t bytes, const char *expected) {
  DflashSafetensors *parsed;
  DflashError error = {0};
  DflashStatus status = parse_text(header, bytes, &parsed, &error);
  if (status != DFLASH_INVALID_DATA || strstr(error.message, expected) == NULL)
    fail_msg("status %d, \"%s\", expected \"%s\"", status, error.message, expected);
  assert_null(parsed);
  assert_null(strpbrk(error.message, "\n\r"));
}

#define ONE(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                         \
  "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first \
  "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static void test_refusals(void **state) {
  (void)state;
  refuse("", 0, "safetensors header is empty");
  refuse("[]", 0, "not one JSON object");
  refuse("{} x", 0, "not one JSON object");
  refuse("{", 0, "not one JSON object");
  refuse("{}", 1, "the tensors end at 0, the file's data has 1 bytes");
  refuse("{\"a\":7}", 0, "tensor a: dtype is absent");
  refuse(ONE("7", "[1]", "[0,4]"), 4, "tensor a: dtype is absent");
  refuse(ONE("\"F32\"", "7", "[0,4]"), 4, "tensor a: shape is no list");
  refuse(ONE("\"F32\"", "[-1]", "[0,4]"), 4, "tensor a: shape[0] is no size");
  refuse(ONE("\"F32\"", "[1,0.5]", "[0,4]"), 4, "tensor a: shape[1] is no size");
  refuse(ONE("\"F32\"", "[1,1e300]", "[0,4]"), 4, "tensor a: shape[1] is no size");
  refuse(ONE("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "tensor a: the product of its shape overflows");
  refuse(ONE("\"F32\"", "[2147483648,2147483648]", "[0,4]"), 4, "tensor a: the bytes of its shape overflow");
  refuse(ONE("\"F32\"", "[1073741824,4294967296]", "[0,0]"), 0, "tensor a: the bytes of its shape overflow");
  refuse(ONE("\"F32\"", "[2]", "[0,4]"), 4, "tensor a: data_offsets span 4 bytes, its shape takes 8 in F32");
  refuse(ONE("\"BF16\"", "[2]", "[0,8]"), 8, "tensor a: data_offsets span 8 bytes, its shape takes 4 in BF16");
  refuse(ONE("\"F32\"", "[1]", "[0]"), 4, "tensor a: data_offsets is not [begin, end]");
  refuse(ONE("\"F32\"", "[1]", "[0,4,8]"), 4, "tensor a: data_offsets is not [begin, end]");
  refuse(ONE("\"F32\"", "[1]", "[4,0]"), 4, "tensor a: data_offsets is not [begin, end]");
  refuse(ONE("\"F32\"", "[1]", "[-4,0]"), 4, "tensor a: data_offsets is not [begin, end]");
  refuse(ONE("\"F32\"", "[1]", "[0,1e18]"), 4, "tensor a: data_offsets is not [begin, end]");
  refuse(ONE("\"F32\"", "[1]", "[0,4]"), 3, "the tensors end at 4, the file's data has 3 bytes");
  refuse(ONE("\"F32\"", "[1]", "[0,4]"), 5, "the tensors end at 4, the file's data has 5 bytes");
  refuse(ONE("\"F32\"", "[1]", "[4,8]"), 8, "tensor a begins at 4 of the data, expected 0 (gap)");
  refuse(TWO("[0,4]", "[5,9]"), 9, "tensor b begins at 5 of the data, expected 4 (gap)");
  refuse(TWO("[0,4]", "[3,7]"), 7, "tensor b begins at 3 of the data, expected 4 (overlap)");
  refuse(TWO("[0,4]", "[0,4]"), 4, "(overlap)");
  refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, "tensor a is there twice");
}

static void test_length_field(void **state) {
  (void)state;
  DflashSafetensors *parsed;
  const uint64_t lengths[] = {3, 1 << 20, UINT64_MAX, UINT64_MAX - 7, INT64_MAX};
  unsigned char file[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    memcpy(file, &lengths[i], 8);
    assert_int_equal(dflash_safetensors_parse(file, sizeof file, &parsed, NULL), DFLASH_INVALID_DATA);
  }
  for (size_t size = 0; size < 8; size++)
    assert_int_equal(dflash_safetensors_parse(file, size, &parsed, NULL), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_safetensors_parse(NULL, 0, &parsed, NULL), DFLASH_INVALID_DATA);
}

static void test_lookup(void **state) {
  (void)state;
  const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                        "\"z\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[3,15]},"
                        "\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,3],\"data_offsets\":[0,3]},"
                        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[3,3]},"
                        "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[15,19]},"
                        "\"odd\":{\"dtype\":\"F6_E3M2\",\"shape\":[3],\"data_offsets\":[19,22]}}";
  size_t size;
  unsigned char *file = safetensors_make(header, NULL, 22, &size);
  DflashSafetensors *parsed;
  DflashTensor tensor;
  DflashError error = {0};
  if (dflash_safetensors_parse(file, size, &parsed, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_int_equal(dflash_safetensors_find(parsed, "z", &tensor, NULL), DFLASH_OK);
  assert_int_equal(tensor.storage, DFLASH_STORAGE_F16);
  assert_int_equal(tensor.rank, 2);
  assert_int_equal(tensor.shape[0], 2);
  assert_int_equal(tensor.shape[1], 3);
  assert_int_equal(tensor.bytes, 12);
  assert_ptr_equal(tensor.data, file + size - 22 + 3);
  assert_int_equal(dflash_safetensors_find(parsed, "a", &tensor, &error), DFLASH_INVALID_DATA);
  assert_string_equal(error.message, "tensor a has dtype U8, expected BF16, F16 or F32");
  assert_int_equal(dflash_safetensors_find(parsed, "odd", &tensor, NULL), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_safetensors_find(parsed, "scalar", &tensor, NULL), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_safetensors_find(parsed, "empty", &tensor, NULL), DFLASH_OK);
  assert_int_equal(tensor.bytes, 0);
  assert_int_equal(dflash_safetensors_find(parsed, "__metadata__", &tensor, NULL), DFLASH_UNAVAILABLE);
  assert_int_equal(dflash_safetensors_find(parsed, "", &tensor, NULL), DFLASH_UNAVAILABLE);
  dflash_safetensors_close(parsed);
  dflash_safetensors_close(NULL);
  free(file);
}

static void parse_any(const void *file, size_t size) {
  DflashSafetensors *parsed;
  DflashTensor tensor;
  DflashError error = {0};
  if (dflash_safetensors_parse(file, size, &parsed, &error) == DFLASH_OK)
    dflash_safetensors_find(parsed, "fc.weight", &tensor, &error);
  else
    assert_null(strpbrk(error.message, "\n\r"));
  dflash_safetensors_close(parsed);
}

/* The fixture cut at many lengths and with three bits of every byte of its header flipped: no crash, no read past the
 * end. */
static void test_fixture_damage(void **state) {
  (void)state;
  char *file;
  uint64_t size, header;
  assert_int_equal(dflash_read_file(FIXTURE, 1 << 24, &file, &size, NULL), DFLASH_OK);
  memcpy(&header, file, sizeof header);
  for (uint64_t cut = 0; cut < size; cut += cut < header + 64 ? 7 : 30011) {
    char *part = malloc(cut + 1);
    memcpy(part, file, cut);
    DflashSafetensors *parsed;
    assert_int_equal(dflash_safetensors_parse(part, cut, &parsed, NULL), DFLASH_INVALID_DATA);
    free(part);
  }
  for (uint64_t at = 0; at < header + 8; at++)
    for (int bit = 0; bit < 8; bit += 3) {
      file[at] ^= (char)(1 << bit);
      parse_any(file, size);
      file[at] ^= (char)(1 << bit);
    }
  free(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_length_field),
      cmocka_unit_test(test_lookup),
      cmocka_unit_test(test_fixture_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
