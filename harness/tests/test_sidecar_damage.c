#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "cmf_image.h"

#define FIXTURE DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf"

static void assert_one_line(const DflashError *error) {
  assert_int_not_equal(error->message[0], '\0');
  assert_null(strpbrk(error->message, "\n\r"));
}

static void assert_refused(const void *bytes, uint64_t size, const char *expected) {
  DflashSidecar sidecar;
  DflashError error = {0};
  DflashStatus status = dflash_sidecar_parse(bytes, size, &sidecar, &error);
  if (status != DFLASH_INVALID_DATA || strstr(error.message, expected) == NULL)
    fail_msg("status %d, \"%s\", expected \"%s\"", status, error.message, expected);
  assert_one_line(&error);
  dflash_sidecar_close(&sidecar);
}

static void assert_accepted(const Image *image) {
  DflashSidecar sidecar;
  DflashError error = {0};
  if (dflash_sidecar_parse(image->bytes, image->size, &sidecar, &error) != DFLASH_OK) fail_msg("%s", error.message);
  dflash_sidecar_close(&sidecar);
}

/* Opens or refuses in one line; what is under test is that it does either. */
static DflashStatus parse_any(const void *bytes, uint64_t size) {
  DflashSidecar sidecar;
  DflashError error = {0};
  DflashStatus status = dflash_sidecar_parse(bytes, size, &sidecar, &error);
  if (status != DFLASH_OK) assert_one_line(&error);
  dflash_sidecar_close(&sidecar);
  return status;
}

typedef struct Damage {
  const char *expected;
  void (*apply)(Image *image);
} Damage;

/* ---- envelope and sections ---- */

static void bad_magic(Image *i) { i->bytes[3] = 2; }
static void bad_version(Image *i) { put_u32(i->bytes + 4, 1); }
static void unknown_feature(Image *i) { put_u32(i->bytes + 12, 5 | 1 << 3); }
static void high_feature(Image *i) { put_u32(i->bytes + 12, UINT32_C(1) << 31); }
static void no_header(Image *i) { put_u64(i->bytes + 16, 0); }
static void no_directory(Image *i) { put_u64(i->bytes + 40, 0); }
static void no_data(Image *i) { put_u64(i->bytes + 48, 0); }
static void header_in_envelope(Image *i) { put_u64(i->bytes + 16, 127); }
static void data_in_envelope(Image *i) { put_u64(i->bytes + 48, 64); }
static void header_far(Image *i) { put_u64(i->bytes + 16, UINT64_MAX); }
static void header_wraps(Image *i) { put_u64(i->bytes + 24, UINT64_MAX - 100); }
static void directory_past_end(Image *i) { put_u64(i->bytes + 40, i->size); }
static void data_one_too_long(Image *i) { put_u64(i->bytes + 56, get_u64(i->bytes + 56) + 1); }
static void data_unaligned(Image *i) { put_u64(i->bytes + 48, i->data + 64), put_u64(i->bytes + 56, 64); }
static void header_on_directory(Image *i) { put_u64(i->bytes + 24, i->header_bytes + 1); }
static void directory_on_data(Image *i) { put_u64(i->bytes + 40, i->data - i->directory + 1); }
static void header_damaged(Image *i) { i->bytes[IMAGE_HEADER_AT + 3] ^= 1; }
static void directory_damaged(Image *i) { i->bytes[i->pool] ^= 1; }

static void test_envelope_damage(void **state) {
  (void)state;
  const Damage damages[] = {
      {"not a CMF file", bad_magic},
      {"version is 1, expected 2", bad_version},
      {"required_features has unknown bits 0x8", unknown_feature},
      {"required_features has unknown bits 0x80000000", high_feature},
      {"header section is absent", no_header},
      {"directory section is absent", no_directory},
      {"data section is absent", no_data},
      {"header section begins at 127, inside the envelope", header_in_envelope},
      {"data section begins at 64, inside the envelope", data_in_envelope},
      {"header section", header_far},
      {"ends past the file's", header_wraps},
      {"directory section", directory_past_end},
      {"data section", data_one_too_long},
      {"no multiple of 4096", data_unaligned},
      {"header and directory sections overlap", header_on_directory},
      {"directory and data sections overlap", directory_on_data},
      {"header section is damaged", header_damaged},
      {"directory section is damaged", directory_damaged},
  };
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    Image image = image_sidecar(image_header);
    damages[i].apply(&image);
    assert_refused(image.bytes, image.size, damages[i].expected);
    image_free(&image);
  }
}

/* ---- directory and tensors: damaged, then sealed again, so that the damage is reached ---- */

enum { FC = 0, HIDDEN_NORM = 1, NORM = 2, PREDECESSOR = 4 };

static void count_huge(Image *i) { put_u64(i->bytes + i->directory, UINT64_MAX / 56 + 2); }
static void count_one_more(Image *i) { put_u64(i->bytes + i->directory, (i->directory_bytes - 16) / 56 + 1); }
static void pool_in_records(Image *i) { put_u64(i->bytes + i->directory + 8, 16); }
static void pool_far(Image *i) { put_u64(i->bytes + i->directory + 8, UINT64_MAX); }
static void name_far(Image *i) { put_u32(image_record(i, FC), UINT32_MAX); }
static void name_long(Image *i) { put_u16(image_record(i, FC) + 4, UINT16_MAX); }
static void name_latin1(Image *i) { i->bytes[i->pool] = 0xe9; }
static void name_overlong(Image *i) { memcpy(i->bytes + i->pool, "\xc0\xaf", 2); }
static void name_surrogate(Image *i) { memcpy(i->bytes + i->pool, "\xed\xa0\x80", 3); }
static void name_copied(Image *i) { memcpy(image_record(i, NORM), image_record(i, HIDDEN_NORM), 6); }
static void names_shared(Image *i) {
  put_u32(image_record(i, NORM), 0);
  put_u16(image_record(i, NORM) + 4, 60); /* spans the names of others */
}
static void rank_seven(Image *i) { image_record(i, FC)[7] = 7; }
static void shape_past_rank(Image *i) { put_u32(image_record(i, FC) + 8 + 4 * 5, 1); }
static void renamed(Image *i) { i->bytes[i->pool] = 'x'; }
static void unknown_dtype(Image *i) { image_record(i, FC)[6] = 7; }
static void rank_zero(Image *i) { image_record(i, NORM)[7] = 0, put_u32(image_record(i, NORM) + 8, 0); }
static void rank_four(Image *i) { image_record(i, FC)[7] = 4; }
static void unaligned(Image *i) { put_u64(image_record(i, FC) + 32, 32); }
static void offset_far(Image *i) { put_u64(image_record(i, FC) + 32, UINT64_MAX - 63); }
static void bytes_wrap(Image *i) { put_u64(image_record(i, NORM) + 40, UINT64_MAX); }
static void bytes_short(Image *i) { put_u64(image_record(i, NORM) + 40, 124); }
static void wrong_shape(Image *i) { put_u32(image_record(i, NORM) + 8, 31); }
static void huge_shape(Image *i) {
  put_u32(image_record(i, FC) + 8, UINT32_MAX), put_u32(image_record(i, FC) + 12, UINT32_MAX);
}
static void f16_vector(Image *i) { image_record(i, NORM)[6] = 1, put_u64(image_record(i, NORM) + 40, 64); }
static void q8_codebook(Image *i) { image_record(i, PREDECESSOR)[6] = 9; }
static void overlap(Image *i) { memcpy(image_record(i, NORM) + 32, image_record(i, HIDDEN_NORM) + 32, 8); }
static void data_damaged(Image *i) { image_tensor_data(i, FC)[5] ^= 0x10; }

static void set_norm_bits(Image *i, uint32_t bits) {
  put_u32(image_tensor_data(i, NORM) + 8, bits);
  put_u64(image_record(i, NORM) + 48, 0); /* not checked */
}
static void nan_inside(Image *i) { set_norm_bits(i, 0x7fc00000); }
static void infinity_inside(Image *i) { set_norm_bits(i, 0xff800000); }

static void test_directory_damage(void **state) {
  (void)state;
  const Damage damages[] = {
      {"directory: count is", count_huge},
      {"directory: count is", count_one_more},
      {"the name pool begins at 16", pool_in_records},
      {"the name pool begins at", pool_far},
      {"record 0's name", name_far},
      {"record 0's name", name_long},
      {"record 0's name is not UTF-8", name_latin1},
      {"record 0's name is not UTF-8", name_overlong},
      {"record 0's name is not UTF-8", name_surrogate},
      {"names overlap in the pool", name_copied},
      {"names overlap in the pool", names_shared},
      {"record 0's ndim is 7", rank_seven},
      {"record 0's shape[5] is 1, expected 0", shape_past_rank},
      {"tensor dflash.fc.weight is missing", renamed},
      {"tensor dflash.fc.weight has dtype 7", unknown_dtype},
      {"tensor dflash.norm.weight has ndim 0", rank_zero},
      {"tensor dflash.fc.weight has ndim 4", rank_four},
      {"tensor dflash.fc.weight begins at 32 of the data, no multiple of 64", unaligned},
      {"tensor dflash.fc.weight", offset_far},
      {"ends past the data section's", bytes_wrap},
      {"norm.weight: 124 bytes, expected 128", bytes_short},
      {"norm.weight: rank 1 and shape [31], expected rank 1 and [32]", wrong_shape},
      {"fc.weight: rank 2 and shape [4294967295, 4294967295]", huge_shape},
      {"norm.weight: storage is f16", f16_vector},
      {"predecessor_codebook: storage is q8_2f", q8_codebook},
      {"overlap", overlap},
      {"tensor dflash.fc.weight is damaged", data_damaged},
      {"norm.weight", nan_inside},
      {"norm.weight", infinity_inside},
  };
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    Image image = image_sidecar(image_header);
    damages[i].apply(&image);
    image_seal(&image);
    assert_refused(image.bytes, image.size, damages[i].expected);
    image_free(&image);
  }
}

static void test_name_twice(void **state) {
  (void)state;
  ImageTensor tensors[IMAGE_TENSORS_MAX];
  int count = image_sidecar_tensors(tensors);
  tensors[count] = tensors[NORM];
  Image image = image_make(image_header, tensors, count + 1);
  assert_refused(image.bytes, image.size, "tensor dflash.norm.weight is there twice");
  image_free(&image);
}

/* ---- header ---- */

static void refuse_header(const char *from, const char *to, const char *expected) {
  char *header = text_replaced(image_header, from, to);
  Image image = image_sidecar(header);
  assert_refused(image.bytes, image.size, expected);
  image_free(&image);
  free(header);
}

static void test_header_damage(void **state) {
  (void)state;
  refuse_header("dflash2_sidecar", "qwen3", "arch.arch_name is qwen3, expected dflash2_sidecar");
  refuse_header("\"dflash2_sidecar\"", "7", "arch.arch_name is absent");
  refuse_header("arch_name", "Arch_name", "arch.arch_name is absent");
  refuse_header("\"dflash\":", "\"dflash1\":", "provenance.dflash is no object");
  refuse_header("\"hidden\":32", "\"hidden\":\"32\"", "provenance.dflash");
  refuse_header("\"hidden\":32,", "", "hidden");
  refuse_header("\"hidden\":32", "\"hidden\":32.5", "hidden");
  refuse_header("\"hidden\":32", "\"hidden\":1e300", "hidden");
  refuse_header("\"block\":2", "\"block\":1", "block");
  refuse_header("\"hidden\":32", "\"hidden\":4611686018427387904", "provenance.dflash");
  refuse_header("\"vocab\":5", "\"vocab\":1099511627776", "candidate_selector.predecessor_codebook");
  refuse_header("\"head_dim\":16", "\"head_dim\":8589934592", "self_attn.q_proj.weight");
  refuse_header("\"layers\":1", "\"layers\":2", "tensor dflash.layers.1.input_layernorm.weight is missing");
  refuse_header("00c0ffee", "not hex", "trunk_hash64 is not hex, expected 1 to 64 hex digits");
  refuse_header("\"00c0ffee\"", "12", "trunk_hash64 is no string");
  refuse_header("{\"arch\"", "[\"arch\"", "header is not one JSON object");
  refuse_header("}}}", "}}} x", "header is not one JSON object");
  refuse_header("}}}", "}}", "header is not one JSON object");
  refuse_header("dflash2", "dflash\xff", "header is not JSON text in UTF-8");
}

static void test_header_variants_that_open(void **state) {
  (void)state;
  const char *edits[][2] = {
      {"}}}", "}}}  \n\t "},
      {"{\"arch\"", "{\"unknown\":[1,{}],\"arch\""},
      {",\"base_binding\":{\"trunk_hash64\":\"00c0ffee\"}", ""},
      {"\"window\":0", "\"window\":0,\"windows\":[],\"no_rope\":[]"},
      {"\"window\":0", "\"window\":0,\"windows\":[7],\"no_rope\":[0]"},
  };
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    char *header = text_replaced(image_header, edits[i][0], edits[i][1]);
    Image image = image_sidecar(header);
    assert_accepted(&image);
    image_free(&image);
    free(header);
  }
}

static void test_unreadable_router_counts_as_none(void **state) {
  (void)state;
  const char *routes[] = {"7", "{}",
                          "{\"block\":{\"metric\":\"mse_unit\",\"phi_layer\":0,\"rank\":1,\"mean\":\"AA==\"}}"};
  dflash_log_level(DFLASH_LOG_ERROR);
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    char member[160];
    snprintf(member, sizeof member, "\"provenance\":{\"dflash_route\":%s,", routes[i]);
    char *header = text_replaced(image_header, "\"provenance\":{", member);
    Image image = image_sidecar(header);
    DflashSidecar sidecar;
    assert_int_equal(dflash_sidecar_parse(image.bytes, image.size, &sidecar, NULL), DFLASH_OK);
    assert_false(sidecar.router.present);
    assert_null(sidecar.router.block.mean);
    dflash_sidecar_close(&sidecar);
    image_free(&image);
    free(header);
  }
  dflash_log_level(DFLASH_LOG_WARNING);
}

static void test_deep_nesting(void **state) {
  (void)state;
  const size_t depth = 200000;
  char *header = malloc(depth + 1);
  memset(header, '[', depth);
  header[depth] = '\0';
  Image image = image_sidecar(header);
  assert_refused(image.bytes, image.size, "header is not one JSON object");
  image_free(&image);
  for (size_t i = 0; i + 5 < depth; i += 5) memcpy(header + i, "{\"a\":", 5);
  image = image_sidecar(header);
  assert_refused(image.bytes, image.size, "header is not one JSON object");
  image_free(&image);
  free(header);
}

/* ---- what is ignored ---- */

static void test_ignored_parts(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  put_u32(image.bytes + 8, UINT32_MAX);                                   /* flags */
  put_u32(image.bytes + 12, 0x67);                                        /* every known feature */
  memset(image.bytes + 64, 0xff, 48);                                     /* masks, vocabulary, index */
  memset(image.bytes + 112, 0, 16);                                       /* hashes that are not checked */
  memset(image.bytes + image.directory + image.directory_bytes, 0xff, 8); /* padding */
  for (int i = 0; i < image.count; i++) put_u64(image_record(&image, i) + 48, 0);
  assert_accepted(&image);
  image_tensor_data(&image, FC)[5] ^= 0x10; /* no hash sees it, and the values stay finite */
  assert_accepted(&image);
  image_free(&image);
}

static void test_tensors_that_are_not_needed(void **state) {
  (void)state;
  ImageTensor tensors[IMAGE_TENSORS_MAX];
  int count = image_sidecar_tensors(tensors);
  tensors[count] = (ImageTensor){.name = "other.weight", .dtype = 200, .rank = 6, .shape = {1, 2, 3, 4, 5, 6}};
  Image image = image_make(image_header, tensors, count + 1);
  unsigned char *record = image_record(&image, count);
  put_u64(record + 32, UINT64_MAX); /* nothing of it is read */
  put_u64(record + 40, UINT64_MAX);
  put_u64(record + 48, 1);
  image_seal(&image);
  assert_accepted(&image);
  image_free(&image);
}

/* ---- every length, every bit ---- */

static void test_every_length(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  for (uint64_t size = 0; size < image.size; size++) {
    unsigned char *part = dflash_alloc(size, 1); /* of its own, so that a read past it is seen */
    memcpy(part, image.bytes, size);
    assert_int_equal(parse_any(part, size), DFLASH_INVALID_DATA);
    free(part);
  }
  image_free(&image);
}

/* Envelope bytes that nothing reads: flags, masks, vocabulary, index. */
static int ignored_byte(const Image *image, uint64_t at) {
  uint64_t directory_end = image->directory + image->directory_bytes;
  return (at >= 8 && at < 12) || (at >= 64 && at < 112) || (at >= directory_end && at < image->data);
}

static int in_tensor(const Image *image, uint64_t at) {
  for (int i = 0; i < image->count; i++) {
    uint64_t begin = image->data + get_u64(image_record(image, i) + 32);
    if (at >= begin && at < begin + get_u64(image_record(image, i) + 40)) return 1;
  }
  return 0;
}

/* With all hashes in place a flipped bit is found wherever it counts. The features and the hash fields themselves
 * are left out: a bit of them may be a lawful other value (0x04 to a known feature; a hash of 0 needs 64 flips). */
static void test_every_bit(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  for (uint64_t at = 0; at < image.size; at++) {
    if (ignored_byte(&image, at) || (at >= image.data && !in_tensor(&image, at))) continue;
    for (int bit = 0; bit < 8; bit += at < image.data ? 1 : 5) {
      image.bytes[at] ^= (unsigned char)(1 << bit);
      DflashStatus status = parse_any(image.bytes, image.size);
      if (status == DFLASH_OK && !(at >= 12 && at < 16)) fail_msg("bit %d of byte %d went unseen", bit, (int)at);
      image.bytes[at] ^= (unsigned char)(1 << bit);
    }
  }
  image_free(&image);
}

/* Without hashes the damage reaches every parser. */
static void test_every_bit_unhashed(void **state) {
  (void)state;
  Image image = image_sidecar(image_header);
  dflash_log_level(DFLASH_LOG_ERROR);
  for (int i = 0; i < image.count; i++) put_u64(image_record(&image, i) + 48, 0);
  memset(image.bytes + 112, 0, 16);
  for (uint64_t at = 0; at < image.directory + image.directory_bytes; at++)
    for (int bit = 0; bit < 8; bit++) {
      image.bytes[at] ^= (unsigned char)(1 << bit);
      parse_any(image.bytes, image.size);
      image.bytes[at] ^= (unsigned char)(1 << bit);
    }
  dflash_log_level(DFLASH_LOG_WARNING);
  image_free(&image);
}

static void test_fixture_bits(void **state) {
  (void)state;
  char *file;
  uint64_t size;
  assert_int_equal(dflash_read_file(FIXTURE, 1 << 24, &file, &size, NULL), DFLASH_OK);
  for (uint64_t at = 128; at < size; at += at < 12288 ? 41 : 15013) {
    file[at] ^= 0x20;
    int padding = at >= 8046 + 3445 && at < 12288;
    if ((parse_any(file, size) == DFLASH_OK) != padding) fail_msg("byte %d went unseen", (int)at);
    file[at] ^= 0x20;
  }
  const uint64_t lengths[] = {0, 4, 127, 128, 8045, 8046, 8062, 11490, 11491, 12287, 12288, size - 1};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    assert_int_equal(parse_any(file, lengths[i]), DFLASH_INVALID_DATA);
  assert_int_equal(parse_any(file, size), DFLASH_OK);
  free(file);
}

/* The hash's own properties: the length counts, words may change places. */
static void test_hash64(void **state) {
  (void)state;
  const uint64_t words[3] = {1, 2, 3}, swapped[3] = {3, 2, 1};
  const char text[16] = "abc";
  assert_true(dflash_hash64(words, 0) == 0);
  assert_true(dflash_hash64(words, 24) == dflash_hash64(swapped, 24));
  assert_true(dflash_hash64(words, 24) != dflash_hash64(words, 16));
  assert_true(dflash_hash64(text, 3) != dflash_hash64(text, 8));
  assert_true(dflash_hash64(text, 3) != dflash_hash64(text, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_envelope_damage),
      cmocka_unit_test(test_directory_damage),
      cmocka_unit_test(test_name_twice),
      cmocka_unit_test(test_header_damage),
      cmocka_unit_test(test_header_variants_that_open),
      cmocka_unit_test(test_unreadable_router_counts_as_none),
      cmocka_unit_test(test_deep_nesting),
      cmocka_unit_test(test_ignored_parts),
      cmocka_unit_test(test_tensors_that_are_not_needed),
      cmocka_unit_test(test_every_length),
      cmocka_unit_test(test_every_bit),
      cmocka_unit_test(test_every_bit_unhashed),
      cmocka_unit_test(test_fixture_bits),
      cmocka_unit_test(test_hash64),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
