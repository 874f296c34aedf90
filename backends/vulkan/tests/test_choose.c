/* Tokens from candidates: kernels gather, pairs and choose against plain C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dflash/tensor.h"
#include "draw.h"
#include "launch.h"
#include "values.h"

static TestKernels kernels;

/* gather: a codebook of tokens 0 .. TOKENS - 1 of which a part is bound. */
typedef struct Gather {
  int32_t storage;
  uint32_t rank, token_first, token_count;
  bool predecessor;
} Gather;

enum { GATHER_ROWS = 8, GATHER_TOP = 64, GATHER_ENTRIES = GATHER_ROWS * GATHER_TOP, UNTOUCHED = 0x77777777 };

/* The bits of an f16 or bf16 number as f32's. */
static uint32_t widen(int32_t storage, uint16_t bits) {
  if (storage == DFLASH_STORAGE_BF16) return (uint32_t)bits << 16;
  const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  if (exponent == 31) return sign | 0x7f800000 | mantissa << 13;
  const float size =
      exponent > 0 ? ldexpf((float)(mantissa | 0x400), (int)exponent - 25) : ldexpf((float)mantissa, -24);
  return sign | test_bits(size);
}

/* Element i of the whole codebook: halves take every pattern of bits. */
static uint32_t element(const Gather *g, size_t i) {
  if (g->storage == DFLASH_STORAGE_F32) return dflash_random_u32(dflash_random_stream(3, "f32"), i);
  return widen(g->storage, (uint16_t)(i * 40503));
}

static void fill_codebook(const Gather *g, void *codebook) {
  const size_t first = (size_t)g->token_first * g->rank, count = (size_t)g->token_count * g->rank;
  for (size_t i = 0; i < count; i++) {
    const uint32_t word = element(g, first + i);
    const uint16_t half = (uint16_t)((first + i) * 40503);
    if (g->storage == DFLASH_STORAGE_F32)
      memcpy((char *)codebook + 4 * i, &word, 4);
    else
      memcpy((char *)codebook + 2 * i, &half, 2);
  }
}

/* The token whose row is to stand at [row, candidate]; -1: none. */
static int32_t wanted(const Gather *g, const int32_t *best, int32_t anchor, uint32_t row, uint32_t candidate) {
  if (!g->predecessor) return best[row * GATHER_TOP + candidate];
  if (row > 0) return best[(row - 1) * GATHER_TOP + candidate];
  return candidate == 0 ? anchor : -1;
}

static bool is_nan_bits(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static void check_gathered(const Gather *g, const int32_t *best, int32_t anchor, const uint32_t *y) {
  for (uint32_t entry = 0; entry < GATHER_ENTRIES; entry++) {
    const int32_t token = wanted(g, best, anchor, entry / GATHER_TOP, entry % GATHER_TOP);
    const bool inside = token >= (int32_t)g->token_first && token < (int32_t)(g->token_first + g->token_count);
    for (uint32_t i = 0; i < g->rank; i++) {
      const uint32_t got = y[entry * g->rank + i];
      const uint32_t want = inside ? element(g, (size_t)token * g->rank + i) : UNTOUCHED;
      assert_true(got == want || (is_nan_bits(got) && is_nan_bits(want)));
    }
  }
}

static void check_gather(const Gather *g, const int32_t *best, int32_t anchor) {
  const size_t bytes = (size_t)g->token_count * g->rank * (g->storage == DFLASH_STORAGE_F32 ? 4 : 2);
  const size_t words = (size_t)GATHER_ENTRIES * g->rank;
  const GatherPush push = {GATHER_ROWS,    GATHER_TOP,     g->rank,       (uint32_t)g->storage,
                           g->token_first, g->token_count, g->predecessor};
  unsigned char *codebook = test_memory((bytes + 3) / 4, 4);
  uint32_t *y = test_memory(words, 4);
  fill_codebook(g, codebook);
  memset(y, 0x77, words * 4);
  const TestArray arrays[] = {
      {codebook, (bytes + 3) / 4 * 4}, {(void *)(uintptr_t)best, GATHER_ENTRIES * 4}, {&anchor, 4}, {y, words * 4}};
  test_launch(&kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_GATHER,
                                      .push = &push,
                                      .groups = {GATHER_ROWS, GATHER_TOP, 1},
                                      .arrays = arrays});
  check_gathered(g, best, anchor, y);
  free(y);
  free(codebook);
}

static void rows_of_codebooks(void **state) {
  (void)state;
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16};
  const DflashRandom random = dflash_random_stream(5, "tokens");
  int32_t best[GATHER_ENTRIES];
  for (uint32_t i = 0; i < GATHER_ENTRIES; i++) best[i] = (int32_t)dflash_random_below(random, i, 500);
  best[70] = -1;
  for (size_t s = 0; s < 3; s++)
    for (int predecessor = 0; predecessor < 2; predecessor++) {
      check_gather(&(Gather){storages[s], 33, 0, 500, predecessor}, best, 499);
      check_gather(&(Gather){storages[s], 33, 101, 200, predecessor}, best, 101);
      check_gather(&(Gather){storages[s], 64, 301, 199, predecessor}, best, 300);
      check_gather(&(Gather){storages[s], 1, 7, 431, predecessor}, best, 0);
    }
}

/* Tokens in order: every f16 and bf16 there is. */
static void every_half(void **state) {
  (void)state;
  int32_t best[GATHER_ENTRIES];
  for (int32_t i = 0; i < GATHER_ENTRIES; i++) best[i] = i;
  check_gather(&(Gather){DFLASH_STORAGE_F16, 129, 0, GATHER_ENTRIES, false}, best, 0);
  check_gather(&(Gather){DFLASH_STORAGE_BF16, 129, 0, GATHER_ENTRIES, false}, best, 0);
}

typedef struct Pairs {
  uint32_t rows, top, rank;
  float *p, *c, *hidden, *pairs;
} Pairs;

static float *draw_numbers(const char *name, size_t count, bool whole) {
  const DflashRandom random = dflash_random_stream(13, name);
  float *x = test_memory(count, sizeof *x);
  for (size_t i = 0; i < count; i++)
    x[i] = whole ? (float)dflash_random_below(random, i, 9) - 4.0f : test_draw(random, i);
  return x;
}

static Pairs run_pairs(uint32_t rows, uint32_t top, uint32_t rank, bool whole) {
  const size_t entries = (size_t)rows * top * rank;
  Pairs x = {rows, top, rank, .p = draw_numbers("p", entries, whole), .c = draw_numbers("c", entries, whole)};
  x.hidden = draw_numbers("hidden", (size_t)rows * rank, whole);
  x.pairs = test_poisoned((size_t)rows * top * top);
  const PairsPush push = {rows, top, rank};
  const TestArray arrays[] = {{x.p, entries * 4},
                              {x.c, entries * 4},
                              {x.hidden, (size_t)rows * rank * 4},
                              {x.pairs, (size_t)rows * top * top * 4}};
  test_launch(&kernels,
              &(TestLaunch){.kernel = VULKAN_KERNEL_PAIRS, .push = &push, .groups = {top, rows, 1}, .arrays = arrays});
  return x;
}

static void close_pairs(Pairs *x) {
  free(x->p);
  free(x->c);
  free(x->hidden);
  free(x->pairs);
}

/* pairs[j][p][c] against the same in f64, within roundings of 16 chains and of each product. */
static void check_pair(const Pairs *x, uint32_t j, uint32_t p, uint32_t c, double roundings) {
  const float *before = x->p + (size_t)(j * x->top + p) * x->rank, *after = x->c + (size_t)(j * x->top + c) * x->rank;
  double sum = 0, size = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    const double term = (double)before[i] * x->hidden[j * x->rank + i] * after[i];
    sum += term;
    size += fabs(term);
  }
  assert_true(fabs(x->pairs[(j * x->top + p) * x->top + c] - sum) <= roundings * TEST_ROUNDING * size);
}

static void check_pairs(uint32_t rows, uint32_t top, uint32_t rank, bool whole) {
  Pairs x = run_pairs(rows, top, rank, whole);
  for (uint32_t j = 0; j < rows; j++)
    for (uint32_t p = 0; p < top; p++)
      for (uint32_t c = 0; c < top; c++) {
        if (j == 0 && p > 0)
          assert_true(isnan(x.pairs[p * top + c])); /* nothing comes before row 0 but the anchor */
        else
          check_pair(&x, j, p, c, whole ? 0 : 6 + rank / 16.0);
      }
  close_pairs(&x);
}

static void pair_sums(void **state) {
  (void)state;
  for (int whole = 0; whole < 2; whole++) {
    check_pairs(1, 1, 1, whole);
    check_pairs(7, 16, 256, whole);
    check_pairs(3, 9, 17, whole);
    check_pairs(2, 31, 40, whole);
    check_pairs(1, 256, 5, whole);
  }
}

/* A row does not depend on how many follow. */
static void pair_sums_of_cut_blocks(void **state) {
  (void)state;
  Pairs all = run_pairs(5, 6, 50, false), few = run_pairs(2, 6, 50, false);
  assert_memory_equal(few.pairs, all.pairs, 6 * sizeof(float));
  assert_memory_equal(few.pairs + 36, all.pairs + 36, 36 * sizeof(float));
  close_pairs(&all);
  close_pairs(&few);
}

enum { WALK_ROWS = 5, WALK_TOP = 6, WALK_ENTRIES = WALK_ROWS * WALK_TOP };

typedef struct Walk {
  uint32_t rows, top, flags, *result;
  float *values, *pairs;
  int32_t *tokens;
} Walk;

static size_t result_words(const Walk *w) { return 2 * (size_t)w->rows * (1 + w->top) + 1; }

/* few: values and pairs of which many are equal, infinities of one sign among them. */
static Walk open_walk(uint32_t rows, uint32_t top, bool few, uint64_t seed) {
  static const float numbers[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -INFINITY, 0.25f, 2.0f};
  const DflashRandom random = dflash_random_stream(seed, "walk");
  const size_t entries = (size_t)rows * top;
  Walk w = {rows, top, 0, NULL, test_memory(entries, 4), test_memory(entries * top, 4), test_memory(entries, 4)};
  for (size_t i = 0; i < entries * (1 + top); i++) {
    float *place = i < entries ? &w.values[i] : &w.pairs[i - entries];
    *place = few ? numbers[dflash_random_below(random, i, 8)] : test_draw(random, i);
  }
  for (size_t i = 0; i < entries; i++) w.tokens[i] = (int32_t)(i * 7919 % 248320);
  w.result = test_memory(result_words(&w), 4);
  return w;
}

static void close_walk(Walk *w) {
  free(w->values);
  free(w->pairs);
  free(w->tokens);
  free(w->result);
}

static void choose(Walk *w) {
  float unused = 0;
  const size_t entries = (size_t)w->rows * w->top;
  const ChoosePush push = {w->rows, w->top, 1};
  memset(w->result, 0x77, result_words(w) * 4);
  const TestArray arrays[] = {
      {w->values, entries * 4}, {w->tokens, entries * 4},        {w->pairs, entries * w->top * 4}, {&unused, 4},
      {&w->flags, 4},           {w->result, result_words(w) * 4}};
  test_launch(&kernels,
              &(TestLaunch){.kernel = VULKAN_KERNEL_CHOOSE, .push = &push, .groups = {1, 1, 1}, .arrays = arrays});
}

/* The walk in plain C; its scores are one f32 addition, so every bit counts. */
static void check_walk(const Walk *w, uint32_t flags) {
  const size_t entries = (size_t)w->rows * w->top;
  const uint32_t *scores = w->result + 2 * w->rows + entries;
  for (uint32_t row = 0, before = 0; row < w->rows; row++) {
    uint32_t best = 0;
    float largest = 0;
    for (uint32_t c = 0; c < w->top; c++) {
      const float score = w->values[row * w->top + c] + w->pairs[(row * w->top + before) * w->top + c];
      assert_int_equal(scores[row * w->top + c], test_bits(score));
      if (c > 0 && !(score > largest)) continue;
      largest = score;
      best = c;
    }
    assert_int_equal(w->result[row], w->tokens[row * w->top + best]);
    assert_int_equal(w->result[w->rows + row], w->tokens[row * w->top]);
    before = best;
  }
  assert_memory_equal(w->result + 2 * w->rows, w->tokens, entries * 4);
  assert_int_equal(w->result[2 * w->rows + 2 * entries], flags);
  assert_int_equal(w->flags, flags);
}

static void walks(void **state) {
  (void)state;
  static const uint32_t sizes[][2] = {{1, 1}, {7, 16}, {15, 3}, {2, 256}, {4095, 2}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int few = 0; few < 2; few++) {
      Walk w = open_walk(sizes[i][0], sizes[i][1], few, i);
      choose(&w);
      check_walk(&w, 0);
      close_walk(&w);
    }
}

/* Equal scores: the first candidate, wherever it stands. */
static void ties_go_to_the_first(void **state) {
  (void)state;
  for (uint32_t first = 0; first < WALK_TOP; first++) {
    Walk w = open_walk(WALK_ROWS, WALK_TOP, false, 1);
    for (uint32_t i = 0; i < WALK_ENTRIES; i++) w.values[i] = i % WALK_TOP < first ? -9.0f : 0.0f;
    for (uint32_t i = 0; i < WALK_ENTRIES * WALK_TOP; i++) w.pairs[i] = i % 2 ? 0.0f : -0.0f;
    choose(&w);
    for (uint32_t row = 0; row < WALK_ROWS; row++) assert_int_equal(w.result[row], w.tokens[row * WALK_TOP + first]);
    close_walk(&w);
  }
}

/* NaN counts where the walk meets it, and nowhere else. */
static void nan_on_the_way(void **state) {
  (void)state;
  Walk w = open_walk(WALK_ROWS, WALK_TOP, false, 2);
  choose(&w);
  uint32_t chosen = 0;
  while ((uint32_t)w.tokens[2 * WALK_TOP + chosen] != w.result[2]) chosen++;
  const uint32_t other = (chosen + 1) % WALK_TOP, on = (3 * WALK_TOP + chosen) * WALK_TOP + 5;
  const uint32_t off = (3 * WALK_TOP + other) * WALK_TOP + 5;
  w.pairs[off] = NAN;
  choose(&w);
  check_walk(&w, 0);
  w.pairs[off] = 0;
  w.pairs[on] = NAN;
  choose(&w);
  assert_int_equal(w.flags, 2);
  assert_int_equal(w.result[2 * WALK_ROWS + 2 * WALK_ENTRIES], 2);
  for (uint32_t row = 0; row < WALK_ROWS; row++) assert_in_range(w.result[row], 0, 248319);
  w.pairs[on] = 0;
  w.flags = 1; /* what was seen before stays */
  choose(&w);
  check_walk(&w, 1);
  w.flags = 0;
  for (uint32_t i = 0; i < WALK_ENTRIES; i++) w.values[i] = NAN;
  choose(&w);
  assert_int_equal(w.flags, 2);
  close_walk(&w);
}

/* Infinity is a score; infinities of both signs add up to NaN. */
static void infinite_scores(void **state) {
  (void)state;
  Walk w = open_walk(WALK_ROWS, WALK_TOP, false, 3);
  w.values[3] = INFINITY;
  for (uint32_t c = 0; c < WALK_TOP; c++) w.values[WALK_TOP + c] = -INFINITY;
  choose(&w);
  check_walk(&w, 0);
  w.pairs[3] = -INFINITY;
  choose(&w);
  assert_int_equal(w.flags, 2);
  close_walk(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_codebooks),
      cmocka_unit_test(every_half),
      cmocka_unit_test(pair_sums),
      cmocka_unit_test(pair_sums_of_cut_blocks),
      cmocka_unit_test(walks),
      cmocka_unit_test(ties_go_to_the_first),
      cmocka_unit_test(nan_on_the_way),
      cmocka_unit_test(infinite_scores),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
