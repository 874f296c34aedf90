/* The choice of tokens, its kernels run as its launches say, against a plain sort and a plain walk. Logits, codebooks
 * and hidden values are eighths of small numbers, so every sum is exact and answers are compared bit by bit. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "sequence.h"
}

#include "../kernels/select.cuh"
#include "fibers.h"

static bool backwards;
static int launches;

/* tokens.c queues its kernels; here they run at once. */
extern "C" CudaAddress cuda_run_stamp(CudaRun *run) {
  (void)run;
  return 0;
}

extern "C" void cuda_run_launch(CudaRun *run, int kernel, CudaGrid grid, const void *arguments) {
  (void)run;
  launches++;
  assert_true(emulated_run({grid.x, grid.y, grid.z}, CUDA_THREADS, grid.shared, backwards, [&] {
    if (kernel == CUDA_KERNEL_top)
      dflash_top(*static_cast<const TopArgs *>(arguments));
    else if (kernel == CUDA_KERNEL_top_few)
      dflash_top_few(*static_cast<const TopArgs *>(arguments));
    else
      dflash_scores(*static_cast<const ScoresArgs *>(arguments));
  }));
}

/* ---- what is chosen from ---- */

struct Sizes {
  int64_t width, rows, top, rank;
};

static uint32_t state;
static uint32_t draw(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}
static float eighths(int range) { return ((float)draw(2 * (uint32_t)range + 1) - (float)range) / 8; }

struct Codebook {
  int32_t storage;
  std::vector<float> values;
  std::vector<uint16_t> halves; /* the same, stored */
  CudaAddress address() const {
    return storage == STORED_F32 ? (CudaAddress)values.data() : (CudaAddress)halves.data();
  }
};

static uint16_t f16_bits(float x) {
  for (uint32_t bits = 0; bits < 0x10000; bits++)
    if (emulated_decode_f16(bits) == x) return (uint16_t)bits;
  fail();
  return 0;
}

static Codebook make_codebook(int32_t storage, int64_t count) {
  Codebook book = {storage, std::vector<float>((size_t)count), std::vector<uint16_t>((size_t)count)};
  uint16_t stored[17];
  for (int i = 0; i < 17; i++) {
    const float x = (float)(i - 8) / 8;
    stored[i] = storage == STORED_F16 ? f16_bits(x) : (uint16_t)(__float_as_uint(x) >> 16);
  }
  for (size_t i = 0; i < book.values.size(); i++) {
    const uint32_t one = draw(17);
    book.values[i] = ((float)one - 8) / 8;
    book.halves[i] = stored[one];
  }
  return book;
}

struct Scene {
  Sizes sizes;
  std::vector<float> logits, hidden;
  Codebook before, after;
  int32_t anchor;
};

static Scene make_scene(const Sizes &sizes, int32_t before, int32_t after) {
  Scene s = {sizes,
             std::vector<float>((size_t)(sizes.rows * sizes.width)),
             std::vector<float>((size_t)(sizes.rows * sizes.rank)),
             make_codebook(before, sizes.width * sizes.rank),
             make_codebook(after, sizes.width * sizes.rank),
             (int32_t)draw((uint32_t)sizes.width)};
  for (float &x : s.logits) x = eighths(1 << 20);
  for (float &x : s.hidden) x = eighths(4);
  return s;
}

/* ---- what is answered ---- */

typedef std::vector<int32_t> Words; /* as ScoresArgs tells */

static size_t words_of(const Sizes &n) { return (size_t)(2 * n.rows + 2 * n.rows * n.top + 1); }

static std::vector<int32_t> expect_row(const Scene &s, int64_t row) {
  const float *logits = &s.logits[(size_t)(row * s.sizes.width)];
  std::vector<int32_t> tokens((size_t)s.sizes.width);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::partial_sort(tokens.begin(), tokens.begin() + s.sizes.top, tokens.end(),
                    [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  tokens.resize((size_t)s.sizes.top);
  return tokens;
}

static float expect_score(const Scene &s, int64_t row, int32_t before, int32_t after) {
  const int64_t rank = s.sizes.rank;
  double sum = 0;
  for (int64_t i = 0; i < rank; i++)
    sum += (double)s.before.values[(size_t)(before * rank + i)] * (double)s.hidden[(size_t)(row * rank + i)] *
           (double)s.after.values[(size_t)(after * rank + i)];
  return (float)((double)s.logits[(size_t)(row * s.sizes.width + after)] + sum);
}

static Words expect_words(const Scene &s) {
  const int64_t rows = s.sizes.rows, top = s.sizes.top;
  Words words(words_of(s.sizes));
  int32_t before = s.anchor;
  for (int64_t row = 0; row < rows; row++) {
    const std::vector<int32_t> tokens = expect_row(s, row);
    std::vector<float> scores;
    for (int32_t token : tokens) scores.push_back(expect_score(s, row, before, token));
    before = tokens[(size_t)(std::max_element(scores.begin(), scores.end()) - scores.begin())];
    words[(size_t)row] = before;
    words[(size_t)(rows + row)] = tokens[0];
    std::copy(tokens.begin(), tokens.end(), words.begin() + 2 * rows + row * top);
    memcpy(&words[(size_t)(2 * rows + rows * top + row * top)], scores.data(), (size_t)top * sizeof(float));
  }
  return words;
}

/* ---- what the kernels answer ---- */

struct Memory {
  std::vector<uint64_t> entries[2];
  std::vector<float> pairs;
  Words result;
  CudaInputs inputs;
};

/* As a sequence lays it out, and full of what is no answer. */
static Memory make_memory(const Scene &s) {
  const int64_t first = cuda_groups(s.sizes.width, CUDA_TOP_CHUNK);
  const int64_t second = cuda_groups(first * s.sizes.top, CUDA_TOP_CHUNK), row = s.sizes.rows * s.sizes.top;
  Memory m = {{std::vector<uint64_t>((size_t)(row * first), 0xa5a5a5a5a5a5a5a5u),
               std::vector<uint64_t>((size_t)(row * second), 0xa5a5a5a5a5a5a5a5u)},
              std::vector<float>((size_t)(row * s.sizes.top + 1), -77),
              Words(words_of(s.sizes), -1),
              CudaInputs()};
  m.inputs.anchor_token = s.anchor;
  return m;
}

static void run(const Scene &s, Memory &m) {
  static DflashModel model;
  CudaBlock block = {};
  model.geometry.selector_top = s.sizes.top;
  model.geometry.selector_rank = s.sizes.rank;
  model.predecessor.storage = s.before.storage;
  model.predecessor.weights = s.before.address();
  model.successor.storage = s.after.storage;
  model.successor.weights = s.after.address();
  block.inputs = (CudaAddress)&m.inputs;
  block.stages[DFLASH_STAGE_HEAD_LOGITS] = (CudaAddress)s.logits.data();
  block.stages[DFLASH_STAGE_SELECTOR_HIDDEN] = (CudaAddress)s.hidden.data();
  for (int i = 0; i < 2; i++) block.entries[i] = (CudaAddress)m.entries[i].data();
  block.pairs = (CudaAddress)m.pairs.data();
  block.result = (CudaAddress)m.result.data();
  CudaRun one = {};
  one.model = &model, one.block = &block, one.n_draft = s.sizes.rows, one.head_width = s.sizes.width;
  cuda_run_tokens(&one);
}

/* Twice in the same memory, and with threads in the other order: the same. */
static void check(const Scene &s) {
  const Words expected = expect_words(s);
  Memory m = make_memory(s);
  for (int turn = 0; turn < 2; turn++) {
    std::fill(m.result.begin(), m.result.end(), -1);
    backwards = turn == 1;
    run(s, m);
    for (size_t i = 0; i < expected.size(); i++)
      if (m.result[i] != expected[i])
        fail_msg("width %lld, rows %lld, top %lld, rank %lld: word %zu is %d, expected %d", (long long)s.sizes.width,
                 (long long)s.sizes.rows, (long long)s.sizes.top, (long long)s.sizes.rank, i, (int)m.result[i],
                 (int)expected[i]);
  }
}

static void check_fails(const Scene &s) {
  Memory m = make_memory(s);
  run(s, m);
  assert_int_equal(m.result.back(), 1);
}

/* ---- tests ---- */

static void test_sizes(void **unused) {
  (void)unused;
  static const int64_t widths[] = {1, 2, 31, 33, 255, 257, 1030, 4095, 4096, 4097, 4099, 8192, 8193, 20001};
  static const int64_t tops[] = {1, 2, 7, 16, 31, 32, 33, 100, 1024};
  int64_t rank = 1, rows = 1;
  for (int64_t width : widths)
    for (int64_t top : tops) {
      if (top > width || (top > 100 && width != 4099)) continue;
      check(make_scene({width, top > 100 ? 2 : rows, top, rank}, STORED_BF16, STORED_BF16));
      rank = rank * 7 % 71, rows = rows % 5 + 1;
    }
}

/* Lists of a row: more than a warp has lanes, the most that are merged at once, one more, and the published width. */
static void test_lists(void **unused) {
  (void)unused;
  const int64_t most = (int64_t)CUDA_FEW_LISTS * CUDA_TOP_CHUNK;
  check(make_scene({33 * CUDA_TOP_CHUNK - 2, 2, 32, 3}, STORED_F16, STORED_F16));
  launches = 0;
  check(make_scene({most, 2, 16, 2}, STORED_F16, STORED_F16));
  assert_int_equal(launches, 2 * 2);
  check(make_scene({most + 1, 2, 16, 2}, STORED_F16, STORED_F16));
  assert_int_equal(launches, 2 * 2 + 2 * 3);
  check(make_scene({most + 1, 2, 32, 2}, STORED_F16, STORED_F16));
  check(make_scene({248320, 7, 16, 2}, STORED_BF16, STORED_BF16));
}

/* Where the walk has no room for copies. */
static void test_rows(void **unused) {
  (void)unused;
  check(make_scene({300, 15, 16, 256}, STORED_BF16, STORED_BF16));
  check(make_scene({300, 16, 16, 40}, STORED_BF16, STORED_BF16));
}

static void test_storages(void **unused) {
  (void)unused;
  for (int32_t before : {STORED_F32, STORED_F16, STORED_BF16})
    for (int32_t after : {STORED_F32, STORED_F16, STORED_BF16}) check(make_scene({5000, 4, 11, 100}, before, after));
}

/* Logits in an order, all the same, of few values, zeros of both signs, infinities. */
static float special(int kind, int64_t i) {
  static const float zeros[] = {0.0f, -0.0f, -1.0f}, ends[] = {-INFINITY, INFINITY, 3.0f, -INFINITY};
  const float values[] = {(float)i / 8, -(float)i / 8, 2.5f, (float)draw(3), zeros[draw(3)], ends[draw(4)], -INFINITY};
  return values[kind];
}

static void test_special(void **unused) {
  (void)unused;
  for (int64_t width : {40, 4096, 9001})
    for (int64_t top : {1, 16, 40})
      for (int kind = 0; kind < 7; kind++) {
        if (top > width) continue;
        Scene s = make_scene({width, 2, top, 9}, STORED_BF16, STORED_F32);
        for (size_t i = 0; i < s.logits.size(); i++) s.logits[i] = special(kind, (int64_t)i % width);
        check(s);
      }
}

/* The best candidates beside each other, in one thread's part, at one stride, and among the last. */
static void test_places(void **unused) {
  (void)unused;
  for (int64_t step : {1, 4, 128, 256, 1024, 4096})
    for (int64_t first : {0, 37, 4090}) {
      Scene s = make_scene({33000, 2, 32, 4}, STORED_BF16, STORED_BF16);
      for (int64_t i = 0; i < 40; i++) s.logits[(size_t)((first + i * step) % 33000)] = 200000 + (float)draw(20);
      check(s);
    }
}

static void nan_at(Scene &s, size_t i, float nan) {
  const float kept = s.logits[i];
  s.logits[i] = nan;
  check_fails(s);
  s.logits[i] = kept;
}

static void test_nan(void **unused) {
  (void)unused;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t top : {1, 5, 40}) {
    Scene s = make_scene({300, 2, top, 4}, STORED_BF16, STORED_BF16);
    for (size_t i = 0; i < s.logits.size(); i += 3) nan_at(s, i, i % 2 ? nan : -nan);
    s = make_scene({8200, 2, top, 4}, STORED_BF16, STORED_BF16);
    for (size_t i = 0; i < s.logits.size(); i += 511) nan_at(s, i, -nan);
    for (size_t i : {4095u, 4096u, 8199u}) nan_at(s, i, nan);
    check(s);
    for (float &x : s.logits) x = nan;
    check_fails(s);
    s = make_scene({300, 3, top, 40}, STORED_BF16, STORED_BF16);
    s.hidden.back() = nan;
    check_fails(s);
  }
}

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(test_sizes),   cmocka_unit_test(test_lists),
                              cmocka_unit_test(test_rows),    cmocka_unit_test(test_storages),
                              cmocka_unit_test(test_special), cmocka_unit_test(test_places),
                              cmocka_unit_test(test_nan)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
