/* Tokens from candidates: kernels gather and pairs against plain C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dflash/tensor.h"
#include "draw.h"
#include "launch.h"
#include "select.h"
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

static void check_gather(const Gather *g, const int32_t *tokens, int32_t anchor) {
  const size_t bytes = (size_t)g->token_count * g->rank * (g->storage == DFLASH_STORAGE_F32 ? 4 : 2);
  const size_t words = (size_t)GATHER_ENTRIES * g->rank;
  const GatherPush push = {GATHER_ROWS,    GATHER_TOP,     g->rank,       (uint32_t)g->storage,
                           g->token_first, g->token_count, g->predecessor};
  unsigned char *codebook = test_memory((bytes + 3) / 4, 4);
  uint32_t *y = test_memory(words, 4);
  uint32_t best[2 * GATHER_ENTRIES];
  for (uint32_t i = 0; i < GATHER_ENTRIES; i++) {
    best[2 * i] = 0;
    best[2 * i + 1] = (uint32_t)tokens[i];
  }
  fill_codebook(g, codebook);
  memset(y, 0x77, words * 4);
  const TestArray arrays[] = {{codebook, (bytes + 3) / 4 * 4}, {best, sizeof best}, {&anchor, 4}, {y, words * 4}};
  test_launch(&kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_GATHER,
                                      .push = &push,
                                      .groups = {GATHER_ROWS, GATHER_TOP, 1},
                                      .arrays = arrays});
  check_gathered(g, tokens, anchor, y);
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

/* ---- pairs ---- */

typedef struct Sizes {
  uint32_t rows, top, rank, tokens; /* tokens: rows of a codebook */
  uint32_t before, after;           /* a storage, or VULKAN_GATHERED */
  uint32_t threads;
} Sizes;

/* What goes in and what comes out. P and C are rows of tokens or, gathered, of [rows][top]. */
typedef struct Pairs {
  Sizes sizes;
  float *p, *c, *hidden;
  uint32_t *best; /* [rows][top][2] */
  uint32_t anchor;
  float *scores; /* [rows][top][top] */
  uint32_t *nexts, *flags, *result;
} Pairs;

enum { ANCHOR = 2 };

static size_t entries_of(const Pairs *x) { return (size_t)x->sizes.rows * x->sizes.top; }
static size_t rows_of(const Pairs *x, uint32_t form) {
  return form == VULKAN_GATHERED ? entries_of(x) : x->sizes.tokens;
}
static size_t result_words(const Pairs *x) { return 2 * x->sizes.rows + 2 * entries_of(x) + 1; }

/* Numbers that a half holds, whole ones or parts of 64; else any, where they are stored in f32. */
static float *draw_numbers(const char *name, size_t count, bool whole, bool half) {
  const DflashRandom random = dflash_random_stream(13, name);
  float *x = test_memory(count, sizeof *x);
  for (size_t i = 0; i < count; i++) {
    const float drawn = (float)dflash_random_below(random, i, whole ? 9 : 255);
    x[i] = whole ? drawn - 4 : half ? (drawn - 127) / 64 : test_draw(random, i);
  }
  return x;
}

static bool is_half(uint32_t form) { return form == DFLASH_STORAGE_F16 || form == DFLASH_STORAGE_BF16; }

static Pairs open_pairs(Sizes sizes, bool whole) {
  Pairs x = {.sizes = sizes, .anchor = ANCHOR};
  const DflashRandom random = dflash_random_stream(17, "best");
  x.p = draw_numbers("p", rows_of(&x, sizes.before) * sizes.rank, whole, is_half(sizes.before));
  x.c = draw_numbers("c", rows_of(&x, sizes.after) * sizes.rank, whole, is_half(sizes.after));
  x.hidden = draw_numbers("hidden", (size_t)sizes.rows * sizes.rank, whole, false);
  x.best = test_memory(entries_of(&x) * 2, 4);
  x.scores = test_memory(entries_of(&x) * sizes.top, 4);
  x.nexts = test_memory(entries_of(&x), 4);
  x.flags = test_memory(2 + sizes.rows, 4);
  x.result = test_memory(result_words(&x), 4);
  for (size_t i = 0; i < entries_of(&x); i++) {
    x.best[2 * i] = test_bits(whole ? (float)dflash_random_below(random, i, 64) : test_draw(random, i));
    x.best[2 * i + 1] = dflash_random_below(random, entries_of(&x) + i, sizes.tokens);
  }
  return x;
}

static void close_pairs(Pairs *x) {
  free(x->p);
  free(x->c);
  free(x->hidden);
  free(x->best);
  free(x->scores);
  free(x->nexts);
  free(x->flags);
  free(x->result);
}

/* A number that the storage holds, as 16 bits. */
static uint16_t to_half(uint32_t form, float x) {
  const uint32_t bits = test_bits(x);
  if (form == DFLASH_STORAGE_BF16) return (uint16_t)(bits >> 16);
  if (x == 0) return 0;
  if (isnan(x)) return 0x7e00;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

/* As it is stored, in memory of its own. */
static TestArray stored(uint32_t form, const float *x, size_t count) {
  TestArray array = {test_memory(count + 1, 4), is_half(form) ? (count + 1) / 2 * 4 : count * 4};
  for (size_t i = 0; i < count; i++) {
    const uint16_t half = is_half(form) ? to_half(form, x[i]) : 0;
    if (is_half(form))
      memcpy((char *)array.data + 2 * i, &half, 2);
    else
      memcpy((char *)array.data + 4 * i, &x[i], 4);
  }
  return array;
}

/* The counter begins at 0; the flags are what the test has left there. `pieces`: that rows are read in whole pieces,
 * where they can be. */
static void launch_pairs(Pairs *x, bool pieces) {
  const Sizes *s = &x->sizes;
  const size_t entries = entries_of(x), scores = entries * s->top;
  const PairsPush push = {s->rows, s->top, s->rank, s->tokens};
  const uint32_t constants[] = {s->threads, s->before, s->after, pieces && s->rank % 8 == 0};
  float *pairs = test_poisoned(scores + entries);
  const TestArray arrays[] = {stored(s->before, x->p, rows_of(x, s->before) * s->rank),
                              stored(s->after, x->c, rows_of(x, s->after) * s->rank),
                              {x->best, entries * 8},
                              {&x->anchor, 4},
                              {x->hidden, (size_t)s->rows * s->rank * 4},
                              {pairs, (scores + entries) * 4},
                              {x->flags, (2 + (size_t)s->rows) * 4},
                              {x->result, result_words(x) * 4}};
  x->flags[1] = 0;
  memset(x->result, 0x77, result_words(x) * 4);
  test_launch(&kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_PAIRS,
                                      .constants = constants,
                                      .constant_count = 4,
                                      .push = &push,
                                      .groups = {s->top, s->rows, 1},
                                      .arrays = arrays});
  memcpy(x->scores, pairs, scores * 4);
  memcpy(x->nexts, pairs + scores, entries * 4);
  free(pairs);
  free(arrays[0].data);
  free(arrays[1].data);
}

static float logit_of(const Pairs *x, uint32_t j, uint32_t c) {
  float logit;
  memcpy(&logit, &x->best[2 * (j * x->sizes.top + c)], 4);
  return logit;
}

static uint32_t token_of(const Pairs *x, uint32_t j, uint32_t c) { return x->best[2 * (j * x->sizes.top + c) + 1]; }

/* Rows of P for candidate p before row j, and of C for candidate c of row j. */
static const float *before_of(const Pairs *x, uint32_t j, uint32_t p) {
  if (x->sizes.before == VULKAN_GATHERED) return x->p + ((size_t)j * x->sizes.top + p) * x->sizes.rank;
  return x->p + (size_t)(j == 0 ? ANCHOR : token_of(x, j - 1, p)) * x->sizes.rank;
}

static const float *after_of(const Pairs *x, uint32_t j, uint32_t c) {
  const size_t row = x->sizes.after == VULKAN_GATHERED ? (size_t)j * x->sizes.top + c : token_of(x, j, c);
  return x->c + row * x->sizes.rank;
}

/* scores[j][p][c] against the same in f64: a chain of eight columns of each 256, five sums of lanes, a product and the
 * logit. */
static void check_score(const Pairs *x, uint32_t j, uint32_t p, uint32_t c, bool whole) {
  const float *before = before_of(x, j, p), *after = after_of(x, j, c), *hidden = x->hidden + (size_t)j * x->sizes.rank;
  const uint32_t chain = (x->sizes.rank + 255) / 256 * 8, roundings = whole ? 0 : 7 + chain;
  double sum = logit_of(x, j, c), size = fabs(sum);
  for (uint32_t i = 0; i < x->sizes.rank; i++) {
    const double term = (double)before[i] * hidden[i] * after[i];
    sum += term;
    size += fabs(term);
  }
  assert_true(fabs(x->scores[(j * x->sizes.top + p) * x->sizes.top + c] - sum) <= roundings * TEST_ROUNDING * size);
}

/* From the scores that the device found, so every bit counts: the best after each p, then the way. */
static uint32_t best_after(const Pairs *x, uint32_t j, uint32_t p) {
  const float *scores = x->scores + ((size_t)j * x->sizes.top + p) * x->sizes.top;
  uint32_t best = 0;
  for (uint32_t c = 1; c < x->sizes.top; c++)
    if (scores[c] > scores[best]) best = c;
  return best;
}

static void check_walk(const Pairs *x, uint32_t flags) {
  const uint32_t rows = x->sizes.rows, top = x->sizes.top;
  const size_t entries = entries_of(x);
  for (uint32_t j = 0, before = 0; j < rows; j++) {
    const uint32_t best = best_after(x, j, before);
    for (uint32_t c = 0; c < top; c++) {
      assert_int_equal(x->result[2 * rows + j * top + c], token_of(x, j, c));
      assert_int_equal(x->result[2 * rows + entries + j * top + c], test_bits(x->scores[(j * top + before) * top + c]));
    }
    assert_int_equal(x->result[j], token_of(x, j, best));
    assert_int_equal(x->result[rows + j], token_of(x, j, 0));
    before = best;
  }
  assert_int_equal(x->result[2 * rows + 2 * entries], flags);
  assert_int_equal(x->flags[0], flags);
}

/* Rows of no candidate are NaN: nothing of them may be read, not even past the end of a neighbour. */
static void poison_others(Pairs *x) {
  const size_t tokens = x->sizes.tokens, rank = x->sizes.rank;
  for (size_t token = 0; token < tokens; token++) {
    bool wanted = token == ANCHOR;
    for (size_t i = 0; i < entries_of(x); i++) wanted = wanted || x->best[2 * i + 1] == token;
    for (size_t i = 0; i < rank && !wanted; i++) {
      if (x->sizes.before != VULKAN_GATHERED) x->p[token * rank + i] = NAN;
      if (x->sizes.after != VULKAN_GATHERED) x->c[token * rank + i] = NAN;
    }
  }
}

static void check_pairs(Sizes sizes, bool whole) {
  Pairs x = open_pairs(sizes, whole);
  poison_others(&x);
  launch_pairs(&x, true);
  for (uint32_t j = 0; j < sizes.rows; j++)
    for (uint32_t p = 0; p < sizes.top; p++)
      for (uint32_t c = 0; c < sizes.top; c++) {
        if (j == 0 && p > 0)
          assert_true(isnan(x.scores[p * sizes.top + c])); /* nothing comes before row 0 but the anchor */
        else
          check_score(&x, j, p, c, whole);
      }
  check_walk(&x, 0);
  close_pairs(&x);
}

enum { F32 = DFLASH_STORAGE_F32, F16 = DFLASH_STORAGE_F16, BF16 = DFLASH_STORAGE_BF16 };

static void pair_scores(void **state) {
  (void)state;
  static const Sizes sizes[] = {
      {1, 1, 1, 3, F32, F32, 128},        {7, 16, 256, 900, F16, F16, 512},
      {7, 16, 256, 900, BF16, BF16, 256}, {3, 9, 17, 50, F16, BF16, 128},
      {2, 31, 40, 70, F32, F16, 512},     {1, 256, 5, 300, BF16, F32, 256},
      {2, 256, 24, 9, F16, F32, 128},     {3, 5, 600, 20, VULKAN_GATHERED, F16, 512},
      {3, 5, 264, 20, F32, F32, 128},     {4, 17, 263, 30, F16, VULKAN_GATHERED, 256},
      {15, 3, 8, 90, F16, F16, 512},
  };
  for (int whole = 0; whole < 2; whole++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_pairs(sizes[i], whole);
}

static void assert_same_scores(const Pairs *a, const Pairs *b, size_t rows) {
  const size_t top = a->sizes.top;
  assert_memory_equal(a->scores, b->scores, top * sizeof(float));
  assert_memory_equal(a->scores + top * top, b->scores + top * top, (rows - 1) * top * top * sizeof(float));
}

/* A row does not depend on how many follow, nor on the threads, nor on how the rows of codebooks are read. */
static void equal_bits(void **state) {
  (void)state;
  static const Sizes sizes = {5, 6, 520, 40, F32, F32, 512};
  Sizes cut = sizes, narrow = sizes;
  cut.rows = 2;
  narrow.threads = 128;
  Pairs all = open_pairs(sizes, false), few = open_pairs(cut, false), other = open_pairs(narrow, false);
  memcpy(few.best, all.best, entries_of(&few) * 8);
  launch_pairs(&all, true);
  launch_pairs(&few, true);
  assert_same_scores(&all, &few, 2);
  launch_pairs(&other, true);
  assert_same_scores(&all, &other, 5);
  launch_pairs(&other, false);
  assert_same_scores(&all, &other, 5);
  assert_memory_equal(all.result, other.result, result_words(&all) * 4);
  close_pairs(&all);
  close_pairs(&few);
  close_pairs(&other);
}

/* A candidate that is none has no row: its logit alone is its score. */
static void no_candidate(void **state) {
  (void)state;
  Pairs x = open_pairs((Sizes){2, 4, 24, 9, F16, F16, 128}, false);
  x.best[2 * 6 + 1] = UINT32_MAX;
  launch_pairs(&x, true);
  for (uint32_t p = 0; p < 4; p++) assert_int_equal(test_bits(x.scores[(4 + p) * 4 + 2]), x.best[2 * 6]);
  close_pairs(&x);
}

/* ---- walks: gathered rows, C the unit matrix, so that P is what is added to the logits ---- */

enum { WALK_ROWS = 5, WALK_TOP = 6, WALK_ENTRIES = WALK_ROWS * WALK_TOP };

static void set_logit(Pairs *w, size_t entry, float logit) { w->best[2 * entry] = test_bits(logit); }

/* few: logits and sums of which many are equal, infinite logits of one sign among them. */
static Pairs open_walk(uint32_t rows, uint32_t top, bool few, uint64_t seed) {
  static const float numbers[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -INFINITY, 0.25f, 2.0f};
  const DflashRandom random = dflash_random_stream(seed, "walk");
  Pairs w = open_pairs((Sizes){rows, top, top, 248320, VULKAN_GATHERED, VULKAN_GATHERED, top < 9 ? 128 : 512}, false);
  const size_t entries = entries_of(&w);
  for (size_t i = 0; i < entries; i++) {
    set_logit(&w, i, few ? numbers[dflash_random_below(random, i, 8)] : test_draw(random, i));
    w.best[2 * i + 1] = (uint32_t)(i * 7919 % 248320);
  }
  for (size_t i = 0; i < entries * top; i++) {
    w.p[i] = few ? numbers[dflash_random_below(random, entries + i, 5)] : test_draw(random, entries + i);
    w.c[i] = i % top == i / top % top;
  }
  for (size_t i = 0; i < entries; i++) w.hidden[i] = 1;
  return w;
}

static void walk(Pairs *w) { launch_pairs(w, true); }

static void check_sums(const Pairs *w) {
  const uint32_t top = w->sizes.top;
  for (uint32_t j = 0; j < w->sizes.rows; j++)
    for (uint32_t p = 0; p < (j == 0 ? 1 : top); p++)
      for (uint32_t c = 0; c < top; c++) {
        const size_t at = ((size_t)j * top + p) * top + c;
        assert_int_equal(test_bits(w->scores[at]), test_bits(logit_of(w, j, c) + (0.0f + w->p[at])));
      }
}

static void walks(void **state) {
  (void)state;
  static const uint32_t sizes[][2] = {{1, 1}, {7, 16}, {15, 3}, {5, 256}, {4095, 2}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int few = 0; few < 2; few++) {
      Pairs w = open_walk(sizes[i][0], sizes[i][1], few, i);
      walk(&w);
      check_sums(&w);
      check_walk(&w, 0);
      close_pairs(&w);
    }
}

/* Equal scores: the first candidate, wherever it stands. */
static void ties_go_to_the_first(void **state) {
  (void)state;
  for (uint32_t first = 0; first < WALK_TOP; first++) {
    Pairs w = open_walk(WALK_ROWS, WALK_TOP, false, 1);
    for (uint32_t i = 0; i < WALK_ENTRIES; i++) set_logit(&w, i, i % WALK_TOP < first ? -9.0f : i % 2 ? 0.0f : -0.0f);
    for (uint32_t i = 0; i < WALK_ENTRIES * WALK_TOP; i++) w.p[i] = i % 2 ? 0.0f : -0.0f;
    walk(&w);
    for (uint32_t row = 0; row < WALK_ROWS; row++) assert_int_equal(w.result[row], token_of(&w, row, first));
    close_pairs(&w);
  }
}

static uint32_t chosen_in(const Pairs *w, uint32_t row) {
  uint32_t chosen = 0;
  while (token_of(w, row, chosen) != w->result[row]) chosen++;
  return chosen;
}

/* NaN counts where the walk meets it, and nowhere else. A number of P that is NaN makes all sums after that p NaN. */
static void nan_on_the_way(void **state) {
  (void)state;
  Pairs w = open_walk(WALK_ROWS, WALK_TOP, false, 2);
  walk(&w);
  const uint32_t chosen = chosen_in(&w, 2), other = (chosen + 1) % WALK_TOP;
  const uint32_t on = (3 * WALK_TOP + chosen) * WALK_TOP + 5, off = (3 * WALK_TOP + other) * WALK_TOP + 5;
  w.p[off] = NAN;
  walk(&w);
  check_walk(&w, 0);
  w.p[off] = 0;
  w.p[on] = NAN;
  walk(&w);
  assert_int_equal(w.flags[0], 2);
  assert_int_equal(w.result[2 * WALK_ROWS + 2 * WALK_ENTRIES], 2);
  for (uint32_t row = 0; row < WALK_ROWS; row++) assert_in_range(w.result[row], 0, 248319);
  w.p[on] = 0;
  w.flags[0] = 1; /* what was seen before stays */
  walk(&w);
  check_walk(&w, 1);
  w.flags[0] = 0;
  for (uint32_t i = 0; i < WALK_ENTRIES; i++) set_logit(&w, i, NAN);
  walk(&w);
  assert_int_equal(w.flags[0], 2);
  close_pairs(&w);
}

/* One candidate's score is NaN: it loses, and is told of, wherever it stands. */
static void nan_loses(void **state) {
  (void)state;
  for (uint32_t c = 0; c < WALK_TOP; c++) {
    Pairs w = open_walk(WALK_ROWS, WALK_TOP, false, 4);
    for (uint32_t i = 0; i < WALK_TOP; i++) set_logit(&w, 2 * WALK_TOP + i, i == c ? NAN : -INFINITY);
    walk(&w);
    assert_int_equal(w.flags[0], 2);
    assert_int_equal(w.result[2], token_of(&w, 2, c == 0));
    close_pairs(&w);
  }
}

/* Infinity is a score; infinities of both signs add up to NaN. */
static void infinite_scores(void **state) {
  (void)state;
  Pairs w = open_walk(WALK_ROWS, WALK_TOP, false, 3);
  set_logit(&w, 3, INFINITY);
  for (uint32_t c = 0; c < WALK_TOP; c++) set_logit(&w, WALK_TOP + c, -INFINITY);
  walk(&w);
  check_walk(&w, 0);
  w.p[3] = -3e38f;
  w.c[3 * WALK_TOP + 3] = 2; /* their product is minus infinity */
  walk(&w);
  assert_int_equal(w.flags[0], 2);
  close_pairs(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_codebooks),    cmocka_unit_test(every_half),     cmocka_unit_test(pair_scores),
      cmocka_unit_test(equal_bits),           cmocka_unit_test(no_candidate),   cmocka_unit_test(walks),
      cmocka_unit_test(ties_go_to_the_first), cmocka_unit_test(nan_on_the_way), cmocka_unit_test(nan_loses),
      cmocka_unit_test(infinite_scores),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
