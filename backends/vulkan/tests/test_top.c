/* The best logits of a row: kernels top and top_merge against a plain sort. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "launch.h"
#include "values.h"

static TestKernels kernels;

typedef struct Sizes {
  uint32_t rows, width, chunk, top;
} Sizes;

/* The sizes, what goes in and what comes out. */
typedef struct Rows {
  Sizes sizes;
  uint32_t chunks, flags;
  float *logits, *values, *best_values; /* [rows][width], [rows][chunks][top], [rows][top] */
  int32_t *tokens, *best_tokens;
} Rows;

static Rows open_rows(Sizes sizes) {
  Rows r = {.sizes = sizes, .chunks = (sizes.width + sizes.chunk - 1) / sizes.chunk};
  const size_t entries = (size_t)sizes.rows * r.chunks * sizes.top, best = (size_t)sizes.rows * sizes.top;
  r.logits = test_memory((size_t)sizes.rows * sizes.width, sizeof(float));
  r.values = test_memory(entries, sizeof(float));
  r.tokens = test_memory(entries, sizeof(int32_t));
  r.best_values = test_memory(best, sizeof(float));
  r.best_tokens = test_memory(best, sizeof(int32_t));
  return r;
}

static void close_rows(Rows *r) {
  free(r->logits);
  free(r->values);
  free(r->tokens);
  free(r->best_values);
  free(r->best_tokens);
}

static void find_top(Rows *r) {
  const TopPush push = {r->sizes.width, r->sizes.chunk, r->chunks, r->sizes.top};
  const size_t entries = (size_t)r->sizes.rows * r->chunks * r->sizes.top * 4;
  memset(r->values, 0xff, entries);
  memset(r->tokens, 0x77, entries);
  test_launch(&kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_TOP,
                                      .push = &push,
                                      .groups = {r->chunks, r->sizes.rows, 1},
                                      .arrays = (TestArray[]){{r->logits, (size_t)r->sizes.rows * r->sizes.width * 4},
                                                              {r->values, entries},
                                                              {r->tokens, entries},
                                                              {&r->flags, sizeof r->flags}}});
}

static void merge(Rows *r) {
  const TopMergePush push = {r->chunks * r->sizes.top, r->sizes.top};
  const size_t entries = (size_t)r->sizes.rows * push.count * 4, best = (size_t)r->sizes.rows * push.top * 4;
  memset(r->best_values, 0xff, best);
  memset(r->best_tokens, 0x77, best);
  test_launch(
      &kernels,
      &(TestLaunch){.kernel = VULKAN_KERNEL_TOP_MERGE,
                    .push = &push,
                    .groups = {r->sizes.rows, 1, 1},
                    .arrays = (TestArray[]){
                        {r->values, entries}, {r->tokens, entries}, {r->best_values, best}, {r->best_tokens, best}}});
}

typedef struct Entry {
  float value;
  int32_t token;
} Entry;

static int by_rank(const void *left, const void *right) {
  const Entry *a = left, *b = right;
  if (a->value != b->value) return a->value > b->value ? -1 : 1;
  return (a->token > b->token) - (a->token < b->token);
}

/* Entries of logits begin .. end of a row, in the order wanted, must stand in values and tokens; then come missing
 * ones. */
static void check_entries(const Rows *r, uint32_t row, uint32_t begin, uint32_t end, const float *values,
                          const int32_t *tokens) {
  const uint32_t count = end - begin;
  Entry *sorted = test_memory(count, sizeof *sorted);
  for (uint32_t i = 0; i < count; i++)
    sorted[i] = (Entry){r->logits[(size_t)row * r->sizes.width + begin + i], (int32_t)(begin + i)};
  qsort(sorted, count, sizeof *sorted, by_rank);
  for (uint32_t i = 0; i < r->sizes.top; i++) {
    assert_int_equal(tokens[i], i < count ? sorted[i].token : -1);
    assert_int_equal(test_bits(values[i]), test_bits(i < count ? sorted[i].value : -INFINITY));
  }
  free(sorted);
}

static void check_rows(Rows *r) {
  find_top(r);
  merge(r);
  for (uint32_t row = 0; row < r->sizes.rows; row++) {
    for (uint32_t chunk = 0; chunk < r->chunks; chunk++) {
      const uint32_t begin = chunk * r->sizes.chunk;
      const uint32_t end = begin + r->sizes.chunk < r->sizes.width ? begin + r->sizes.chunk : r->sizes.width;
      const size_t at = ((size_t)row * r->chunks + chunk) * r->sizes.top;
      check_entries(r, row, begin, end, r->values + at, r->tokens + at);
    }
    const size_t at = (size_t)row * r->sizes.top;
    check_entries(r, row, 0, r->sizes.width, r->best_values + at, r->best_tokens + at);
  }
}

/* Logits of any kind; few: many of them equal, with both zeros, subnormal numbers and infinities among them. */
static void draw_logits(Rows *r, const char *name, bool few) {
  static const float values[] = {0.0f, -0.0f, 1.5f, -INFINITY, 0x1p-149f, -0x1p-140f, INFINITY, -2.0f};
  const DflashRandom random = dflash_random_stream(7, name);
  for (size_t i = 0; i < (size_t)r->sizes.rows * r->sizes.width; i++)
    r->logits[i] = few ? values[dflash_random_below(random, i, 8)] : 10 * test_draw(random, i);
}

static const Sizes all_sizes[] = {
    {1, 1, 4096, 1},   {2, 1, 1, 1},       {3, 7, 4096, 7},     {1, 40, 16, 40},
    {2, 255, 256, 3},  {1, 257, 256, 256}, {1, 700, 4096, 256}, {1, 5000, 4096, 16},
    {3, 1500, 999, 5}, {1, 300, 7, 11},    {7, 1000, 20, 2},    {2, 70000, 4096, 16},
};

static void drawn_logits(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++) {
    Rows r = open_rows(all_sizes[i]);
    draw_logits(&r, "drawn", false);
    check_rows(&r);
    draw_logits(&r, "few", true);
    check_rows(&r);
    assert_int_equal(r.flags, 0);
    close_rows(&r);
  }
}

/* All equal, all minus infinity, and one value that every chunk has. */
static void equal_logits(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){2, 900, 100, 30});
  for (size_t i = 0; i < 1800; i++) r.logits[i] = i < 900 ? -INFINITY : -0.0f;
  check_rows(&r);
  for (size_t i = 0; i < 1800; i++) r.logits[i] = i % 100 == 99 ? 5.0f : -(float)(i % 50);
  check_rows(&r);
  close_rows(&r);
}

static void subnormal_logits_differ(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){1, 600, 200, 9});
  for (size_t i = 0; i < 600; i++) r.logits[i] = (float)(i % 100) * 0x1p-149f - 0x1p-143f;
  check_rows(&r);
  close_rows(&r);
}

static void nan_is_flagged(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){2, 1000, 400, 4});
  const size_t places[] = {0, 399, 400, 999, 1999};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    draw_logits(&r, "nan", false);
    r.logits[places[i]] = i % 2 ? NAN : -NAN;
    r.flags = i == 2 ? 4 : 0;
    find_top(&r);
    assert_int_equal(r.flags, i == 2 ? 5 : 1);
    merge(&r);
    for (size_t best = 0; best < 8; best++) {
      assert_in_range(r.best_tokens[best], 0, 999);
      assert_false(isnan(r.best_values[best]));
    }
  }
  close_rows(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drawn_logits),
      cmocka_unit_test(equal_logits),
      cmocka_unit_test(subnormal_logits_differ),
      cmocka_unit_test(nan_is_flagged),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
