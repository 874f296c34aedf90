/* The best logits of a row: kernel top against a plain sort. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "launch.h"
#include "values.h"

static TestKernels kernels;

/* threads: of a workgroup */
typedef struct Sizes {
  uint32_t rows, width, chunk, top, threads;
} Sizes;

/* The sizes, what goes in and what comes out. */
typedef struct Rows {
  Sizes sizes;
  uint32_t chunks, *flags; /* [2 + rows] */
  float *logits;           /* [rows][width] */
  uint32_t *best;          /* [rows][top][2] */
} Rows;

static Rows open_rows(Sizes sizes) {
  Rows r = {.sizes = sizes, .chunks = (sizes.width + 3 + sizes.chunk - 1) / sizes.chunk};
  r.flags = test_memory(2 + sizes.rows, sizeof(uint32_t));
  r.logits = test_memory((size_t)sizes.rows * sizes.width, sizeof(float));
  r.best = test_memory((size_t)sizes.rows * sizes.top * 2, sizeof(uint32_t));
  return r;
}

static void close_rows(Rows *r) {
  free(r->flags);
  free(r->logits);
  free(r->best);
}

/* The counters begin at 0; the flags are what the test has left there. */
static void find_top(Rows *r) {
  const TopPush push = {r->sizes.width, r->sizes.chunk, r->chunks, r->sizes.top};
  const size_t best = (size_t)r->sizes.rows * r->sizes.top * 8;
  uint32_t *entries = test_memory(best * r->chunks / 4, 4);
  memset(entries, 0x77, best * r->chunks);
  memset(r->best, 0x77, best);
  memset(r->flags + 1, 0, (1 + (size_t)r->sizes.rows) * 4);
  test_launch(&kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_TOP,
                                      .constants = &r->sizes.threads,
                                      .constant_count = 1,
                                      .push = &push,
                                      .groups = {r->chunks, r->sizes.rows, 1},
                                      .arrays = (TestArray[]){{r->logits, (size_t)r->sizes.rows * r->sizes.width * 4},
                                                              {entries, best * r->chunks},
                                                              {r->best, best},
                                                              {r->flags, (2 + (size_t)r->sizes.rows) * 4}}});
  free(entries);
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

static void check_row(const Rows *r, uint32_t row) {
  const uint32_t width = r->sizes.width, *best = r->best + (size_t)row * r->sizes.top * 2;
  Entry *sorted = test_memory(width, sizeof *sorted);
  for (uint32_t i = 0; i < width; i++) sorted[i] = (Entry){r->logits[(size_t)row * width + i], (int32_t)i};
  qsort(sorted, width, sizeof *sorted, by_rank);
  for (uint32_t i = 0; i < r->sizes.top; i++) {
    assert_int_equal((int32_t)best[2 * i + 1], i < width ? sorted[i].token : -1);
    assert_int_equal(best[2 * i], test_bits(i < width ? sorted[i].value : -INFINITY));
  }
  free(sorted);
}

static void check_rows(Rows *r) {
  find_top(r);
  for (uint32_t row = 0; row < r->sizes.rows; row++) check_row(r, row);
}

/* Logits of any kind; few: many of them equal, with both zeros, subnormal numbers and infinities among them. */
static void draw_logits(Rows *r, const char *name, bool few) {
  static const float values[] = {0.0f, -0.0f, 1.5f, -INFINITY, 0x1p-149f, -0x1p-140f, INFINITY, -2.0f};
  const DflashRandom random = dflash_random_stream(7, name);
  for (size_t i = 0; i < (size_t)r->sizes.rows * r->sizes.width; i++)
    r->logits[i] = few ? values[dflash_random_below(random, i, 8)] : 10 * test_draw(random, i);
}

/* Widths that are no multiple of four: rows begin at all places of a quad. Chunks as large as can be, chunks of less
 * than `top` elements, and more entries than a workgroup merges at a time. */
static const Sizes all_sizes[] = {
    {1, 1, 8192, 1, 512},      {2, 1, 4, 1, 128},          {3, 7, 4096, 7, 256},      {1, 40, 16, 40, 128},
    {2, 255, 256, 3, 256},     {5, 257, 256, 256, 128},    {1, 700, 4096, 256, 512},  {3, 5001, 4096, 16, 256},
    {3, 1503, 1000, 5, 128},   {1, 300, 8, 11, 256},       {7, 1001, 20, 2, 512},     {2, 70000, 8192, 16, 512},
    {4, 70003, 2048, 64, 128}, {2, 35002, 4096, 65, 256},  {1, 9001, 8192, 256, 512}, {3, 3001, 12, 20, 128},
    {2, 2, 4, 5, 128},         {7, 248320, 8192, 16, 512},
};

static void drawn_logits(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++) {
    Rows r = open_rows(all_sizes[i]);
    draw_logits(&r, "drawn", false);
    check_rows(&r);
    draw_logits(&r, "few", true);
    check_rows(&r);
    assert_int_equal(r.flags[0], 0);
    close_rows(&r);
  }
}

/* All equal, all minus infinity, and one value that every chunk has. */
static void equal_logits(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){2, 900, 100, 30, 128});
  for (size_t i = 0; i < 1800; i++) r.logits[i] = i < 900 ? -INFINITY : -0.0f;
  check_rows(&r);
  for (size_t i = 0; i < 1800; i++) r.logits[i] = i % 100 == 99 ? 5.0f : -(float)(i % 50);
  check_rows(&r);
  close_rows(&r);
}

/* What no bound on the largest of some elements tells apart: the best stand together, or all are equal but a few. */
static void logits_together(void **state) {
  (void)state;
  static const Sizes sizes[] = {{3, 20001, 8192, 16, 512}, {2, 20002, 2048, 200, 128}};
  for (size_t s = 0; s < 2; s++) {
    Rows r = open_rows(sizes[s]);
    const uint32_t count = r.sizes.rows * r.sizes.width, half = r.sizes.width / 2;
    for (uint32_t i = 0; i < count; i++) r.logits[i] = (float)(i % r.sizes.width);
    check_rows(&r);
    for (uint32_t i = 0; i < count; i++) r.logits[i] = -(float)(i % r.sizes.width);
    check_rows(&r);
    for (uint32_t i = 0; i < count; i++) r.logits[i] = 1.0f;
    check_rows(&r);
    for (uint32_t row = 0; row < r.sizes.rows; row++) {
      r.logits[row * r.sizes.width + half] = 2.0f;
      r.logits[row * r.sizes.width + half + 7] = INFINITY;
    }
    check_rows(&r);
    for (uint32_t i = 0; i < count; i++) r.logits[i] = i % r.sizes.width % 512 < 8 ? 3.0f : -INFINITY;
    check_rows(&r);
    close_rows(&r);
  }
}

static void subnormal_logits_differ(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){1, 600, 200, 9, 256});
  for (size_t i = 0; i < 600; i++) r.logits[i] = (float)(i % 100) * 0x1p-149f - 0x1p-143f;
  check_rows(&r);
  close_rows(&r);
}

/* A row is the same whatever rows follow, and wherever it begins. */
static void rows_alone(void **state) {
  (void)state;
  Rows all = open_rows((Sizes){5, 3001, 2048, 17, 128}), one = open_rows((Sizes){1, 3001, 2048, 17, 128});
  draw_logits(&all, "alone", true);
  find_top(&all);
  for (size_t row = 0; row < 5; row++) {
    memcpy(one.logits, all.logits + row * 3001, sizeof(float) * 3001);
    find_top(&one);
    assert_memory_equal(one.best, all.best + row * 34, 34 * 4);
  }
  close_rows(&all);
  close_rows(&one);
}

static void nan_is_flagged(void **state) {
  (void)state;
  Rows r = open_rows((Sizes){2, 1001, 400, 4, 128});
  const size_t places[] = {0, 399, 400, 1000, 1001, 2001};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    draw_logits(&r, "nan", false);
    r.logits[places[i]] = i % 2 ? NAN : -NAN;
    r.flags[0] = i == 2 ? 4 : 0;
    find_top(&r);
    assert_int_equal(r.flags[0], i == 2 ? 5 : 1);
    for (size_t best = 0; best < 8; best++) {
      assert_in_range(r.best[2 * best + 1], 0, 1000);
      assert_true((r.best[2 * best] & 0x7fffffff) <= 0x7f800000);
    }
  }
  close_rows(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drawn_logits),    cmocka_unit_test(equal_logits),
      cmocka_unit_test(logits_together), cmocka_unit_test(subnormal_logits_differ),
      cmocka_unit_test(rows_alone),      cmocka_unit_test(nan_is_flagged),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
