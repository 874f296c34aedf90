/* Attention: kernels attend and mix against f64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "attention.h"
#include "draw.h"
#include "values.h"

static TestKernels kernels;

static void check_sizes(const AttentionSizes *sizes) {
  Attention a = attention_open(sizes);
  attention_run(&kernels, &a);
  attention_check(&a);
  attention_close(&a);
}

/* rows, kv_heads, rep, head_dim, len, splits, begin, step, end, loud. A compiled kernel takes a certain number of
 * queries: sizes are such that few are needed. */
static const AttentionSizes all_sizes[] = {
    {1, 1, 1, 2, 0, 1, 0, 0, 0, false},         {2, 2, 1, 2, 1, 3, 0, 0, 1, false},
    {8, 2, 4, 128, 257, 3, 0, 0, 257, false},   {8, 1, 4, 128, 1000, 32, 40, 1, 1000, false},
    {8, 2, 4, 128, 31, 32, 0, 3, 31, true},     {3, 2, 7, 64, 257, 3, 100, 9, 250, false},
    {10, 1, 7, 64, 1000, 3, 0, 90, 1000, true}, {4, 1, 2, 10, 31, 1, 7, 11, 29, false},
    {36, 1, 2, 10, 257, 3, 5, 20, 200, false},  {7, 1, 3, 80, 257, 32, 0, 40, 257, true},
    {8, 3, 3, 80, 31, 3, 31, 0, 31, false},     {3, 2, 6, 256, 257, 3, 1, 100, 256, false},
    {4, 1, 3, 256, 1000, 1, 3, 5, 900, true},   {300, 1, 1, 2, 31, 3, 0, 1, 31, false}};

static void matches_f64(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++) check_sizes(&all_sizes[i]);
}

/* Each context length and number of splits, with windows. */
static void any_context(void **state) {
  (void)state;
  static const uint32_t lens[] = {0, 1, 31, 32, 33, 257, 1000}, splits[] = {1, 3, 32};
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
    for (size_t j = 0; j < sizeof splits / sizeof *splits; j++)
      for (uint32_t step = 0; step < 2; step++)
        check_sizes(&(AttentionSizes){4, 1, 2, 10, lens[i], splits[j], step * lens[i] / 3, step * 2,
                                      lens[i] - lens[i] / 7, i % 2 == 1});
}

/* How queries are cut into tiles and batches, and how many threads there are, decides no bit. */
static void tiles_change_nothing(void **state) {
  (void)state;
  static const uint32_t others[][3] = {{16, 2, 256}, {16, 1, 128}, {8, 2, 128}, {8, 1, 256}};
  for (uint32_t head_dim = 10; head_dim < 256; head_dim += 130) { /* values in one slab, and in two */
    Attention a = attention_open(&(AttentionSizes){13, 1, 3, head_dim, 300, 2, 2, 11, 299, false});
    const size_t bytes = 13 * 3 * head_dim * sizeof(float);
    float *first = test_memory(bytes, 1);
    attention_run(&kernels, &a);
    memcpy(first, a.y, bytes);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
      const uint32_t constants[] = {head_dim, others[i][0], others[i][1], others[i][2]};
      attention_run_with(&kernels, &a, constants);
      assert_memory_equal(a.y, first, bytes);
    }
    free(first);
    attention_close(&a);
  }
}

/* Segments of a context: right, and the same whichever dispatch runs last. */
static void segments_run_in_any_order(void **state) {
  (void)state;
  Attention a = attention_open(&(AttentionSizes){5, 2, 3, 12, 700, 8, 30, 50, 690, false});
  float first[5 * 6 * 12];
  for (uint32_t splits = 2; splits < 8; splits += 5) {
    attention_run_segments(&kernels, &a, 250, splits, false);
    attention_check(&a);
    memcpy(first, a.y, sizeof first);
    attention_run_segments(&kernels, &a, 250, splits, true);
    assert_memory_equal(a.y, first, sizeof first);
  }
  attention_close(&a);
}

/* A block cut to its first rows: the same sums of the context's parts. (Its own part differs: rows see all rows.) */
static void check_cut_blocks(AttentionSizes sizes) {
  Attention whole = attention_open(&sizes);
  attention_run(&kernels, &whole);
  for (sizes.rows = 2; sizes.rows < 10; sizes.rows += 4) { /* tiles of 8, then 32 queries */
    Attention cut = attention_open(&sizes);
    attention_run(&kernels, &cut);
    const size_t few = (size_t)cut.heads * cut.sizes.rows, all = (size_t)whole.heads * whole.sizes.rows;
    for (uint32_t part = 0; part < sizes.splits; part++) {
      assert_memory_equal(cut.sums + part * few * 2, whole.sums + part * all * 2, few * 8);
      assert_memory_equal(cut.mixes + part * few * 10, whole.mixes + part * all * 10, few * 40);
    }
    attention_close(&cut);
  }
  attention_close(&whole);
}

static void cut_blocks_keep_the_context(void **state) {
  (void)state;
  check_cut_blocks((AttentionSizes){11, 2, 4, 10, 257, 3, 7, 9, 250, false});
  check_cut_blocks((AttentionSizes){11, 1, 4, 10, 1000, 10, 7, 60, 990, false});
}

/* A context of which nobody sees anything is empty, and marked so in every part. */
static void empty_parts_are_marked(void **state) {
  (void)state;
  Attention a = attention_open(&(AttentionSizes){2, 1, 4, 10, 50, 3, 50, 0, 50, false});
  attention_run(&kernels, &a);
  attention_check(&a);
  for (size_t i = 0; i < 3 * 8; i++) {
    assert_int_equal(test_bits(a.sums[2 * i]), test_bits(-INFINITY));
    assert_int_equal(test_bits(a.sums[2 * i + 1]), 0);
  }
  for (size_t i = 0; i < 3 * 8 * 10; i++) assert_true(a.mixes[i] == 0);
  attention_close(&a);
}

/* Where a number of the data becomes x, y must follow the rules of f32, and elements that do not depend on it must keep
 * their bits. */
static void plant(Attention *a, const Attention *clean, float *place, float x) {
  const size_t count = (size_t)a->sizes.rows * a->heads * a->sizes.head_dim;
  const float before = *place;
  *place = x;
  attention_run(&kernels, a);
  attention_check(a);
  size_t changed = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(a->y[i]) && isfinite(clean->y[i])) changed += test_bits(a->y[i]) != test_bits(clean->y[i]);
  if (isnan(x)) assert_int_equal(changed, 0);
  *place = before;
}

static size_t count_nan(const Attention *a) {
  const size_t count = (size_t)a->sizes.rows * a->heads * a->sizes.head_dim;
  size_t found = 0;
  for (size_t i = 0; i < count; i++) found += isnan(a->y[i]);
  return found;
}

/* 2 kv heads of 2 heads of 10 dimensions; rows see the context from 0, 9, 18 and 27 on. */
static const AttentionSizes planted = {4, 2, 2, 10, 70, 2, 0, 9, 70, false};

static void nan_reaches_who_sees_it(void **state) {
  (void)state;
  Attention a = attention_open(&planted), clean = attention_open(&planted);
  attention_run(&kernels, &clean);
  assert_int_equal(count_nan(&clean), 0);
  plant(&a, &clean, &a.q[(2 * 4 + 3) * 10 + 3], NAN); /* one row of one head */
  assert_int_equal(count_nan(&a), 10);
  plant(&a, &clean, &a.k[(10 * 2 + 1) * 10 + 9], NAN); /* rows 0 and 1 of 2 heads */
  assert_int_equal(count_nan(&a), 2 * 2 * 10);
  plant(&a, &clean, &a.v[(20 * 2 + 0) * 10 + 9], NAN); /* rows 0 to 2, one dimension */
  assert_int_equal(count_nan(&a), 3 * 2);
  plant(&a, &clean, &a.v[(10 * 2 + 0) * 10 + 9], NAN); /* rows 0 and 1 */
  assert_int_equal(count_nan(&a), 2 * 2);
  plant(&a, &clean, &a.v[(69 * 2 + 0) * 10], -NAN);
  assert_int_equal(count_nan(&a), 4 * 2);
  plant(&a, &clean, &a.own_k[(3 * 2 + 1) * 10], NAN); /* every row */
  assert_int_equal(count_nan(&a), 4 * 2 * 10);
  plant(&a, &clean, &a.own_v[(0 * 2 + 1) * 10 + 5], NAN);
  assert_int_equal(count_nan(&a), 4 * 2);
  attention_close(&a);
  attention_close(&clean);
}

/* The context's last row, which a query that sees nothing of it must not meet. */
static void nan_at_the_end(void **state) {
  (void)state;
  const AttentionSizes sizes = {4, 2, 2, 10, 70, 2, 0, 25, 70, false}; /* from 0, 25, 50 and 70 on */
  Attention a = attention_open(&sizes), clean = attention_open(&sizes);
  attention_run(&kernels, &clean);
  plant(&a, &clean, &a.v[(69 * 2 + 1) * 10 + 2], NAN);
  assert_int_equal(count_nan(&a), 3 * 2);
  attention_close(&a);
  attention_close(&clean);
}

static void infinity_follows_f32(void **state) {
  (void)state;
  Attention a = attention_open(&planted), clean = attention_open(&planted);
  attention_run(&kernels, &clean);
  for (int sign = -1; sign < 2; sign += 2) {
    const float x = (float)sign * INFINITY;
    plant(&a, &clean, &a.v[(20 * 2 + 1) * 10 + 2], x); /* infinite where it is seen */
    plant(&a, &clean, &a.own_v[(1 * 2 + 0) * 10 + 7], x);
    plant(&a, &clean, &a.k[(15 * 2 + 0) * 10 + 1], x); /* scores of either infinity: NaN, or no weight */
    plant(&a, &clean, &a.own_k[(2 * 2 + 1) * 10 + 1], x);
    plant(&a, &clean, &a.q[(1 * 4 + 2) * 10 + 1], x);
  }
  attention_close(&a);
  attention_close(&clean);
}

/* Scores of minus infinity: a whole part of them has no weight, all of them are NaN. */
static void scores_of_minus_infinity(void **state) {
  (void)state;
  Attention a = attention_open(&(AttentionSizes){2, 1, 1, 2, 70, 2, 0, 0, 70, false});
  for (uint32_t i = 0; i < 4; i++) a.q[i] = 1;
  for (uint32_t key = 0; key < 64; key++) a.k[2 * key] = -INFINITY;
  attention_run(&kernels, &a);
  attention_check(&a);
  assert_int_equal(count_nan(&a), 0);
  a.v[9] = NAN; /* without weight, but seen: 0 NaN */
  attention_run(&kernels, &a);
  attention_check(&a);
  assert_int_equal(count_nan(&a), 2);
  for (uint32_t key = 64; key < 70; key++) a.k[2 * key] = -INFINITY;
  for (uint32_t key = 0; key < 2; key++) a.own_k[2 * key] = -INFINITY;
  attention_run(&kernels, &a);
  assert_int_equal(count_nan(&a), 4);
  attention_close(&a);
}

/* Constants fit the device, and the queries. */
static void constants_fit(void **state) {
  (void)state;
  DflashModel model = {.geometry = {.heads = 28, .kv_heads = 4, .head_dim = 80}};
  VulkanTraits *traits = &model.device.traits;
  for (traits->shared_bytes = 16384; traits->shared_bytes <= 65536; traits->shared_bytes *= 2)
    for (traits->max_threads = 128; traits->max_threads <= 1024; traits->max_threads *= 2)
      for (int64_t rows = 1; rows <= 4096; rows = rows * 2 + 1) {
        uint32_t constants[VULKAN_ATTEND_CONSTANTS];
        vulkan_attend_constants(&model, rows, constants);
        const uint32_t queries = constants[1], tiles = vulkan_attend_tiles(&model, rows);
        assert_int_equal(constants[0], 80);
        assert_true(queries == 8 || queries == 16 || queries == 32);
        assert_true(constants[2] == 1 || constants[2] == 2 || constants[2] == 4);
        assert_int_equal(constants[3], traits->max_threads < 256 ? 128 : 256);
        assert_true(8 * queries <= constants[3]);
        assert_int_equal(vulkan_mix_threads(traits), constants[3]);
        assert_true(constants[3] <= traits->max_threads);
        assert_true(tiles * queries >= rows * 7 && (tiles - 1) * queries < rows * 7);
        if (traits->shared_bytes == 65536 && traits->max_threads >= 256 && rows * 7 > 16)
          assert_true(queries == 32 && constants[2] == 4);
      }
}

/* As many parts as the kernel makes of what can be seen. */
static void parts_are_enough(void **state) {
  (void)state;
  assert_int_equal(vulkan_attend_parts(0, 7), 1);
  assert_int_equal(vulkan_attend_parts(1, 7), 1);
  assert_int_equal(vulkan_attend_parts(64, 7), 1);
  assert_int_equal(vulkan_attend_parts(65, 7), 2);
  assert_int_equal(vulkan_attend_parts(100000, 7), 7);
  assert_int_equal(vulkan_attend_parts(100000, 1), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_f64),
      cmocka_unit_test(any_context),
      cmocka_unit_test(tiles_change_nothing),
      cmocka_unit_test(segments_run_in_any_order),
      cmocka_unit_test(cut_blocks_keep_the_context),
      cmocka_unit_test(empty_parts_are_marked),
      cmocka_unit_test(nan_reaches_who_sees_it),
      cmocka_unit_test(nan_at_the_end),
      cmocka_unit_test(infinity_follows_f32),
      cmocka_unit_test(scores_of_minus_infinity),
      cmocka_unit_test(constants_fit),
      cmocka_unit_test(parts_are_enough),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
