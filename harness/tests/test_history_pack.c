/* Packs: what goes in comes out, in few bytes; what is no pack is refused. */
#include <math.h>

#include "records.h"

#include "base/random.h"
#include "store/fields.h"
#include "store/history_columns.h"
#include "store/history_pack.h"

typedef struct Draw {
  DflashRandom random;
  uint64_t at;
} Draw;

static uint64_t next(Draw *draw) {
  uint64_t high = dflash_random_u32(draw->random, draw->at++);
  return high << 32 | dflash_random_u32(draw->random, draw->at++);
}

static DflashText pack_of(const char *lines) {
  DflashText pack = {0};
  DflashError error = {0};
  if (dflash_pack(lines, strlen(lines), &pack, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return pack;
}

static void expect_same_line(const char *a, size_t a_size, const char *b, size_t b_size) {
  cJSON *first = cJSON_ParseWithLength(a, a_size), *second = cJSON_ParseWithLength(b, b_size);
  assert_non_null(first);
  assert_non_null(second);
  char *left = dflash_record_line(first), *right = dflash_record_line(second);
  assert_string_equal(left, right);
  free(left);
  free(right);
  cJSON_Delete(first);
  cJSON_Delete(second);
}

/* Line by line the same records, to the last bit and in the same order of members. */
static size_t expect_round_trip(const char *lines) {
  DflashText pack = pack_of(lines), back = {0};
  assert_int_equal(dflash_unpack(pack.data, pack.size, &back, NULL), DFLASH_OK);
  const char *a = lines, *b = back.data ? back.data : "";
  while (*a) {
    size_t a_size = strcspn(a, "\n"), b_size = strcspn(b, "\n");
    expect_same_line(a, a_size, b, b_size);
    a += a_size + 1;
    b += b_size + 1;
  }
  assert_int_equal(*b, 0);
  size_t size = pack.size;
  dflash_text_free(&back);
  dflash_text_free(&pack);
  return size;
}

static void records_come_back(void **state) {
  (void)state;
  expect_round_trip("");
  expect_round_trip("{}\n");
  expect_round_trip("{\"a\":1}\n{\"a\":2}\n{\"b\":[1,2,[3,-4]],\"a\":0.5}\n");
  expect_round_trip("{\"12\":\"34 \\\" 56: -1\",\"\":7,\"x\\\\\":[],\"x\":[8,{\"y\":9},10]}\n");
  expect_round_trip("{\"a\":[true,false,null,\"1e5\",{}],\"b\":\"\\u0001\"}\n[1]\n2\n");
}

static void numbers_keep_their_bits(void **state) {
  (void)state;
  expect_round_trip("{\"a\":[1e300,-1e-300,5e-324,1.7976931348623157e308,0.1,0]}\n");
  expect_round_trip("{\"a\":[9007199254740991,-9007199254740991,0,1,-1]}\n");
  expect_round_trip("{\"a\":[9007199254740992,18446744073709551615,1e22]}\n");
  expect_round_trip("{\"a\":[255,256,65535,65536,4294967295,4294967296,-128]}\n{\"a\":0.25}\n");
}

static void drawn_numbers_keep_their_bits(void **state) {
  (void)state;
  Draw random = {dflash_random_stream(7, "numbers"), 0};
  for (int round = 0; round < 60; round++) {
    DflashText lines = {0};
    dflash_text_append(&lines, "{\"first\":%d,\"list\":[0", round);
    for (int i = 0; i < 40 * round; i++) {
      double value = ldexp((double)next(&random), (int)(next(&random) % 40) - 60);
      dflash_text_append(&lines, round % 3 ? ",%.0f" : ",%.17g", next(&random) % 2 ? value : -value);
    }
    dflash_text_append(&lines, "]}\n");
    expect_round_trip(lines.data);
    dflash_text_free(&lines);
  }
}

/* The samples of a steady block: 2 bytes each at most. */
static void samples_are_small(void **state) {
  (void)state;
  Draw random = {dflash_random_stream(3, "samples"), 0};
  DflashText lines = {0};
  dflash_text_append(&lines, "{\"samples\":[2000000");
  for (int i = 1; i < 4000; i++) {
    double noise = 0;
    for (int k = 0; k < 6; k++) noise += (double)(next(&random) % 5000) - 2499.5; /* sigma 3.5 us */
    dflash_text_append(&lines, ",%.0f", 2000000 + noise);
  }
  dflash_text_append(&lines, "]}\n");
  size_t size = expect_round_trip(lines.data);
  assert_true(size < 2 * 4000);
  dflash_text_free(&lines);
}

/* What noise leaves no way around: sigma of 1% of a block, in whole nanoseconds, takes log2(4.13 sigma) bits, and 8% on
 * top are for codes. Half a minute of blocks of 60 us to 240 ms; beside the rest of a run of the published geometry
 * (14 kB) they stay within 20 kB and 2 bytes a sample. */
static void noisy_samples_take_their_entropy(void **state) {
  (void)state;
  static const struct {
    double ns;
    int count;
  } blocks[] = {{6e4, 20000}, {6e5, 20000}, {5e6, 6000}, {2.4e7, 1250}, {2.4e8, 1000}};
  Draw random = {dflash_random_stream(5, "noisy samples"), 0};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
    const double ns = blocks[i].ns, count = blocks[i].count;
    DflashText lines = {0};
    dflash_text_append(&lines, "{\"samples\":[%.0f", ns);
    for (int k = 1; k < blocks[i].count; k++) {
      double noise = 0; /* of six uniform draws: sigma 0.707 */
      for (int j = 0; j < 6; j++) noise += ldexp((double)(next(&random) >> 11), -53) - 0.5;
      dflash_text_append(&lines, ",%.0f", ns * (1 + 0.01 * noise / 0.7071));
    }
    dflash_text_append(&lines, "]}\n");
    const double size = (double)expect_round_trip(lines.data);
    assert_true(size <= 1.08 * count * log2(4.13 * 0.01 * ns) / 8 + 400);
    assert_true(14000 + size <= 20000 + 2 * count);
    dflash_text_free(&lines);
  }
}

static void too_many_names_are_refused(void **state) {
  (void)state;
  DflashText lines = {0}, pack = {0};
  DflashError error = {0};
  dflash_text_append(&lines, "{\"a\":1");
  for (int i = 0; i < DFLASH_COLUMNS_MOST + 1; i++) dflash_text_append(&lines, ",\"n%d\":%d", i, i);
  dflash_text_append(&lines, "}\n");
  assert_int_equal(dflash_pack(lines.data, lines.size, &pack, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "4096"));
  dflash_text_free(&pack);
  dflash_text_free(&lines);
}

#define LINES "{\"a\":[1,2,3,0.5],\"b\":[7,8],\"c\":{\"a\":1000000000,\"d\":\"text 5\"}}\n{\"a\":2}\n"

static void a_part_is_no_pack(void **state) {
  (void)state;
  DflashText pack = pack_of(LINES);
  for (size_t size = 0; size < pack.size; size++) {
    DflashText back = {0};
    assert_int_equal(dflash_unpack(pack.data, size, &back, NULL), DFLASH_INVALID_DATA);
    dflash_text_free(&back);
  }
  dflash_text_bytes(&pack, "x", 1);
  DflashText back = {0};
  assert_int_equal(dflash_unpack(pack.data, pack.size, &back, NULL), DFLASH_INVALID_DATA);
  dflash_text_free(&back);
  dflash_text_free(&pack);
}

/* The checksum of zlib finds every change of a bit that matters; a few fill up a byte. */
static void a_changed_bit_is_found(void **state) {
  (void)state;
  DflashText pack = pack_of(LINES);
  int silent = 0;
  for (size_t bit = 0; bit < 8 * pack.size; bit++) {
    DflashText back = {0};
    pack.data[bit / 8] = (char)(pack.data[bit / 8] ^ 1 << bit % 8);
    if (dflash_unpack(pack.data, pack.size, &back, NULL) == DFLASH_OK) {
      assert_string_equal(back.data, LINES);
      silent++;
    }
    pack.data[bit / 8] = (char)(pack.data[bit / 8] ^ 1 << bit % 8);
    dflash_text_free(&back);
  }
  assert_true(silent < 16);
  dflash_text_free(&pack);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(records_come_back),
                                     cmocka_unit_test(numbers_keep_their_bits),
                                     cmocka_unit_test(drawn_numbers_keep_their_bits),
                                     cmocka_unit_test(samples_are_small),
                                     cmocka_unit_test(noisy_samples_take_their_entropy),
                                     cmocka_unit_test(too_many_names_are_refused),
                                     cmocka_unit_test(a_part_is_no_pack),
                                     cmocka_unit_test(a_changed_bit_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
