#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/draw.h"
#include "model/geometry.h"
#include "model/storage.h"

static DflashGeometry tiny(void) {
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, "tiny") == 0) return dflash_preset(i)->geometry;
  fail_msg("no preset tiny");
  return (DflashGeometry){0};
}

static DflashWeightEntry find_entry(const DflashGeometry *g, const char *name) {
  DflashWeightEntry entry;
  for (int64_t i = 0; i < dflash_weight_count(g); i++) {
    dflash_weight_entry(g, i, &entry);
    if (strcmp(entry.name, name) == 0) return entry;
  }
  fail_msg("no weight %s", name);
  return entry;
}

static DflashTensor draw(const DflashGeometry *g, const DflashWeightEntry *entry, int32_t storage, uint64_t seed,
                         int threads) {
  DflashTensor tensor;
  DflashError error = {0};
  DflashPool *pool = dflash_pool_open(threads);
  if (dflash_draw_weight(g, entry, storage, seed, 0, pool, &tensor, &error) != DFLASH_OK) fail_msg("%s", error.message);
  dflash_pool_close(pool);
  return tensor;
}

static void release(DflashTensor *tensor) { free((void *)(uintptr_t)tensor->data); }

static void roots_are_exact(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 5000; n++) {
    uint64_t r = dflash_draw_root(n);
    assert_true(r * r <= n && (r + 1) * (r + 1) > n);
  }
  assert_true(dflash_draw_root(UINT64_MAX) == UINT32_MAX);
  assert_true(dflash_draw_root((uint64_t)UINT32_MAX * UINT32_MAX) == UINT32_MAX);
  assert_true(dflash_draw_root((uint64_t)UINT32_MAX * UINT32_MAX - 1) == UINT32_MAX - 1);
}

static void inverse_roots_and_logarithms_are_close(void **state) {
  (void)state;
  for (uint64_t n = 1; n < UINT64_C(1) << 62; n = n * 3 + 1) {
    double expected = 1.0 / sqrt((double)n);
    assert_true(fabs((double)dflash_draw_inverse_root(n) - expected) < 1e-6 * expected);
  }
  assert_true(dflash_draw_inverse_root(1) == 1.0f && dflash_draw_inverse_root(4) == 0.5f);
  float x = 1e-6f;
  for (int i = 0; i < 80; i++, x *= 1.37f) {
    double off = log2((double)x) * 256.0 - dflash_draw_log2(x);
    assert_true(off > -0.01 && off < 1.01);
  }
}

static void normal_numbers_do_not_depend_on_the_pieces(void **state) {
  (void)state;
  enum { N = 3000 };
  static float whole[N], pieces[N];
  DflashRandom stream = dflash_random_stream(7, "test");
  dflash_draw_normal(stream, 11, N, 0.3f, whole);
  for (size_t at = 0, size = 1; at < N; at += size, size = size % 700 + 13) {
    if (size > N - at) size = N - at;
    dflash_draw_normal(stream, 11 + at, size, 0.3f, pieces + at);
  }
  assert_memory_equal(whole, pieces, sizeof whole);
}

static void normal_numbers_have_their_moments(void **state) {
  (void)state;
  enum { N = 1 << 18 };
  float *values = malloc(N * sizeof *values);
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  assert_non_null(values);
  dflash_draw_normal(dflash_random_stream(1, "moments"), 0, N, 2.0f, values);
  for (int i = 0; i < N; i++) {
    double x = (double)values[i] / 2.0;
    sum += x, squares += x * x, fourth += x * x * x * x, largest = fmax(largest, fabs(x));
  }
  assert_true(fabs(sum / N) < 0.01 && fabs(squares / N - 1.0) < 0.01);
  assert_true(fourth / N > 2.6 && fourth / N < 2.8); /* 2.7 for a sum of four, 3 for a normal */
  assert_true(largest > 3.0 && largest < 3.47);
  free(values);
}

static void streams_and_seeds_differ(void **state) {
  (void)state;
  DflashGeometry g = tiny();
  DflashWeightEntry a = find_entry(&g, "layers.0.self_attn.q_proj.weight");
  DflashWeightEntry b = find_entry(&g, "layers.1.self_attn.q_proj.weight");
  DflashTensor first = draw(&g, &a, DFLASH_STORAGE_F32, 1, 1), other = draw(&g, &b, DFLASH_STORAGE_F32, 1, 1);
  DflashTensor seeded = draw(&g, &a, DFLASH_STORAGE_F32, 2, 1);
  int same = 0;
  for (uint64_t i = 0; i < first.bytes / 4; i++) {
    same += ((const float *)first.data)[i] == ((const float *)other.data)[i];
    same += ((const float *)first.data)[i] == ((const float *)seeded.data)[i];
  }
  assert_true(same < 3);
  release(&first), release(&other), release(&seeded);
}

static void check_size(const DflashGeometry *g, const DflashWeightEntry *entry, int32_t storage, double gain) {
  DflashTensor tensor = draw(g, entry, storage, 3, 2);
  int64_t rows = dflash_tensor_rows(&tensor), cols = dflash_tensor_cols(&tensor);
  double squares = 0, sum = 0, *row = malloc((size_t)cols * sizeof *row);
  assert_non_null(row);
  assert_int_equal(dflash_tensor_check(&tensor, entry->name, NULL), DFLASH_OK);
  for (int64_t r = 0; r < rows; r++) {
    dflash_tensor_row(&tensor, r, 0, cols, row);
    for (int64_t i = 0; i < cols; i++) squares += row[i] * row[i], sum += row[i];
  }
  double size = sqrt(squares / (double)rows);
  if (!(size > 0.85 * gain && size < 1.15 * gain))
    fail_msg("%s storage %d: %g, not %g", entry->name, storage, size, gain);
  assert_true(fabs(sum / sqrt(squares * (double)(rows * cols))) <
              0.06); /* about zero: a mean would add up over columns */
  free(row);
  release(&tensor);
}

/* A matrix keeps the size of what it multiplies, whatever its storage. */
static void storages_have_one_size(void **state) {
  (void)state;
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                     DFLASH_STORAGE_Q4TP};
  DflashGeometry g = tiny();
  DflashWeightEntry gate = find_entry(&g, "layers.1.mlp.gate_proj.weight");
  DflashWeightEntry down = find_entry(&g, "layers.0.mlp.down_proj.weight");
  DflashWeightEntry kernel = find_entry(&g, "layers.0.mlp_conv.kernel_projection.weight");
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    check_size(&g, &gate, storages[i], 1.0);
    check_size(&g, &down, storages[i], 2.0);
    check_size(&g, &kernel, storages[i], 0.5);
  }
}

static void every_row_of_codes_holds_minus_128(void **state) {
  (void)state;
  DflashGeometry g = tiny();
  DflashWeightEntry head;
  dflash_weight_head_entry(&g, &head);
  DflashTensor tensor = draw(&g, &head, DFLASH_STORAGE_Q8_2F, 1, 2);
  const signed char *codes = tensor.data;
  int64_t positive = 0, negative = 0;
  for (int64_t row = 0; row < g.vocab; row++) {
    int least = 0;
    for (int64_t col = 0; col < g.hidden; col++) {
      signed char code = codes[row * g.hidden + col];
      least += code == -128;
      positive += code > 0;
      negative += code < 0;
    }
    assert_true(least >= 1 && least < 4);
  }
  assert_true(llabs(positive - negative) < (positive + negative) / 16);
  release(&tensor);
}

/* Three groups a row: 15 bits of codes in two bytes, the last bit unused. */
static void all_nibbles_and_codes_occur(void **state) {
  (void)state;
  DflashGeometry g = tiny();
  DflashWeightEntry entry = {.name = "layers.0.mlp.gate_proj.weight", .kind = DFLASH_KIND_MATRIX, .rank = 2};
  entry.shape[0] = 1500, entry.shape[1] = 96;
  DflashTensor tensor = draw(&g, &entry, DFLASH_STORAGE_Q4TP, 1, 2);
  const unsigned char *data = tensor.data, *codes = data + 1500 * 3 * 16 + 1500 * 4;
  int nibbles[16] = {0}, rungs[32] = {0};
  for (int i = 0; i < 1500 * 48; i++) nibbles[data[i] & 15]++, nibbles[data[i] >> 4]++;
  for (int row = 0; row < 1500; row++) {
    int bits = codes[2 * row] | codes[2 * row + 1] << 8;
    for (int group = 0; group < 3; group++) rungs[bits >> (5 * group) & 31]++;
    assert_int_equal(bits >> 15, 0);
  }
  for (int i = 0; i < 16; i++) assert_true(nibbles[i] > 200);
  for (int i = 0; i < 32; i++) assert_true(rungs[i] > 0);
  float ladder[32];
  uint16_t pair[2];
  memcpy(pair, data + 1500 * 48, sizeof pair);
  dflash_q4tp_ladder(pair[0], pair[1], ladder);
  assert_true(ladder[31] / ladder[0] > 4.0f && ladder[31] / ladder[0] < 16.0f);
  release(&tensor);
}

static void threads_change_nothing(void **state) {
  (void)state;
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                     DFLASH_STORAGE_Q4TP};
  DflashGeometry g = tiny();
  g.intermediate = 20000;
  DflashWeightEntry entry = find_entry(&g, "layers.0.mlp.up_proj.weight");
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    DflashTensor one = draw(&g, &entry, storages[i], 9, 1), three = draw(&g, &entry, storages[i], 9, 3);
    assert_true(one.bytes == three.bytes);
    assert_memory_equal(one.data, three.data, one.bytes);
    release(&one), release(&three);
  }
}

static void gains_and_kernels_differ_everywhere(void **state) {
  (void)state;
  DflashGeometry g = tiny();
  DflashWeightEntry norm = find_entry(&g, "layers.1.input_layernorm.weight");
  DflashWeightEntry base = find_entry(&g, "layers.1.attention_conv.base_kernel");
  DflashTensor gains = draw(&g, &norm, DFLASH_STORAGE_F32, 1, 1), kernels = draw(&g, &base, DFLASH_STORAGE_F32, 1, 1);
  const float *gain = gains.data, *kernel = kernels.data;
  for (int64_t i = 0; i < g.hidden; i++)
    assert_true(gain[i] > 0.1f && gain[i] < 1.9f && (!i || gain[i] != gain[i - 1]));
  for (uint64_t i = 1; i < kernels.bytes / 4; i++) assert_true(kernel[i] != kernel[i - 1] && kernel[i] != 1.0f);
  release(&gains), release(&kernels);
}

static void storage_follows_the_kind(void **state) {
  (void)state;
  DflashWeightEntry vector = {.kind = DFLASH_KIND_VECTOR}, matrix = {.kind = DFLASH_KIND_MATRIX};
  DflashWeightEntry book = {.kind = DFLASH_KIND_CODEBOOK};
  matrix.sidecar_storage = DFLASH_STORAGE_Q4TP;
  assert_int_equal(dflash_draw_storage(&matrix, "sidecar"), DFLASH_STORAGE_Q4TP);
  assert_int_equal(dflash_draw_storage(&matrix, "q8_2f"), DFLASH_STORAGE_Q8_2F);
  assert_int_equal(dflash_draw_storage(&vector, "bf16"), DFLASH_STORAGE_F32);
  assert_int_equal(dflash_draw_storage(&book, "q8_2f"), DFLASH_STORAGE_F16);
  assert_int_equal(dflash_draw_storage(&book, "bf16"), DFLASH_STORAGE_BF16);
  assert_int_equal(dflash_draw_storage(&matrix, "q4tp"), -1);
  assert_int_equal(dflash_draw_storage(&matrix, ""), -1);
}

static void a_width_that_a_storage_cannot_take_is_refused(void **state) {
  (void)state;
  DflashGeometry g = tiny();
  DflashWeightEntry entry = {.name = "layers.0.mlp.gate_proj.weight", .kind = DFLASH_KIND_MATRIX, .rank = 2};
  DflashTensor tensor;
  DflashError error = {0};
  entry.shape[0] = 4, entry.shape[1] = 40;
  assert_true(dflash_draw_weight(&g, &entry, DFLASH_STORAGE_Q4TP, 1, 0, NULL, &tensor, &error) != DFLASH_OK);
  assert_non_null(strstr(error.message, "gate_proj"));
  assert_true(dflash_draw_weight(&g, &entry, DFLASH_STORAGE_Q4TP, 1, 0, NULL, &tensor, NULL) != DFLASH_OK);
}

static void rows_repeat_in_every_storage(void **state) {
  (void)state;
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F};
  DflashGeometry g = tiny();
  DflashWeightEntry head;
  dflash_weight_head_entry(&g, &head);
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    DflashTensor tensor = draw(&g, &head, storages[i], 1, 1);
    dflash_draw_repeat_rows(&tensor, 5, 15);
    for (int64_t col = 0; col < g.hidden; col++) {
      assert_true(dflash_tensor_at(&tensor, 3, col) == dflash_tensor_at(&tensor, 8, col));
      assert_true(dflash_tensor_at(&tensor, 3, col) == dflash_tensor_at(&tensor, 13, col));
    }
    assert_true(dflash_tensor_at(&tensor, 0, 0) != dflash_tensor_at(&tensor, 15, 0));
    release(&tensor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roots_are_exact),
      cmocka_unit_test(inverse_roots_and_logarithms_are_close),
      cmocka_unit_test(normal_numbers_do_not_depend_on_the_pieces),
      cmocka_unit_test(normal_numbers_have_their_moments),
      cmocka_unit_test(streams_and_seeds_differ),
      cmocka_unit_test(storages_have_one_size),
      cmocka_unit_test(every_row_of_codes_holds_minus_128),
      cmocka_unit_test(all_nibbles_and_codes_occur),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(gains_and_kernels_differ_everywhere),
      cmocka_unit_test(storage_follows_the_kind),
      cmocka_unit_test(a_width_that_a_storage_cannot_take_is_refused),
      cmocka_unit_test(rows_repeat_in_every_storage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
