/* Tiled products on the host: every form against plain sums, at sizes that are no multiple of anything, and for any
 * number of blocks of threads. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "../kernels/tiled/parts.cuh"
#include "../kernels/tiled/product.cuh"
#include "../kernels/tiled/sum.cuh"
#include "fibers.h"

template <class T> static CudaAddress address(const std::vector<T> &v) {
  return reinterpret_cast<CudaAddress>(v.data());
}

static uint64_t state_of_draw = 88172645463325252ull;
static uint32_t draw() {
  state_of_draw ^= state_of_draw << 13;
  state_of_draw ^= state_of_draw >> 7;
  state_of_draw ^= state_of_draw << 17;
  return static_cast<uint32_t>(state_of_draw >> 32);
}
/* Whole mantissas, sizes of some powers of two. */
static float drawn_number() {
  const float size = ldexpf(static_cast<float>(draw() >> 8), static_cast<int>(draw() % 8) - 26);
  return draw() % 2 ? -size : size;
}
static std::vector<uint8_t> drawn_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t &b : bytes) b = static_cast<uint8_t>(draw());
  return bytes;
}

struct Stored {
  std::vector<uint8_t> weights, codes;
  std::vector<float> ladders, scales;
  std::vector<uint16_t> rows, columns; /* f16 of 0.5 to 2 */
  std::vector<float> y;
  CudaMatrix m = {};
};

static void run(unsigned x, unsigned y, size_t shared, bool backwards, const std::function<void()> &kernel) {
  assert_true(emulated_run({x, y, 1}, CUDA_THREADS, shared, backwards, kernel));
}

static void make(Stored &s, bool q4, int rows, int cols) {
  s.weights = drawn_bytes(static_cast<size_t>(rows) * cols / (q4 ? 2 : 1));
  s.codes = drawn_bytes(static_cast<size_t>(rows) * ((cols / 32 * 5 + 7) / 8));
  for (int i = 0; i < rows; i++) {
    s.ladders.push_back(ldexpf(1 + i % 3 * 0.25f, -i % 5)), s.ladders.push_back(1.03125f);
    s.rows.push_back(static_cast<uint16_t>(0x3800 + draw() % 0x800));
  }
  for (int i = 0; i < cols; i++) s.columns.push_back(static_cast<uint16_t>(0x3800 + draw() % 0x800));
  s.m.weights = address(s.weights), s.m.codes = address(s.codes);
  s.m.scales = q4 ? address(s.ladders) : address(s.rows), s.m.columns = address(s.columns);
  s.m.rows = rows, s.m.cols = cols, s.m.storage = q4 ? STORED_Q4TP : STORED_Q8_2F;
  const int padded = tiled_weight_tiles(rows) * TILED_WEIGHTS;
  s.scales.assign(static_cast<size_t>(padded) * (cols / 32 + 1), NAN);
  const TiledScalesArgs a = {s.m, address(s.scales)};
  if (q4) run(static_cast<unsigned>(padded / CUDA_WARPS), 1, 0, false, [&] { dflash_tiled_scales(a); });
}

/* The value of a weight without what tiles leave to the end or to x: rungs are made one after the other. */
static double weight_of(const Stored &s, int row, int col) {
  const size_t i = static_cast<size_t>(row) * s.m.cols + col;
  if (s.m.storage == STORED_Q8_2F)
    return static_cast<double>(static_cast<int8_t>(s.weights[i])) * static_cast<double>(decode_f16(s.rows[row]));
  const int group = col / 32, bytes = static_cast<int>((s.m.cols / 32 * 5 + 7) / 8);
  int code = 0;
  for (int bit = group * 5, n = 0; n < 5; bit++, n++)
    code |= (s.codes[static_cast<size_t>(row) * bytes + bit / 8] >> bit % 8 & 1) << n;
  float rung = s.ladders[2 * row];
  for (int c = 0; c < code; c++) rung *= s.ladders[2 * row + 1];
  const int nibble = s.weights[i / 2] >> 4 * (col % 2) & 15;
  return static_cast<double>(nibble - 8) * static_cast<double>(rung);
}

struct Form {
  bool q4, f16;
  int rows, out_rows, cols, matrices, tile_rows, blocks;
  bool backwards;
  bool sparse; /* one column of x a row */
};

static void launch(const Form &f, const TiledArgs &a) {
  const size_t shared = static_cast<size_t>(tiled_shared_bytes(f.f16 ? 1 : 3, f.q4, f.tile_rows));
  const unsigned blocks = static_cast<unsigned>(a.split.splits * a.split.tiles + a.split.left);
  run(blocks, 1, shared, f.backwards, [&] {
    if (f.f16)
      f.q4 ? dflash_tiled_q4_f16(a) : dflash_tiled_q8_f16(a);
    else
      f.q4 ? dflash_tiled_q4(a) : dflash_tiled_q8(a);
  });
  run(static_cast<unsigned>(a.split.tiles), static_cast<unsigned>(f.tile_rows / TILED_SUM_ROWS), 0, f.backwards,
      [&] { dflash_tiled_sum(a); });
}

static void multiply(const Form &f, std::vector<Stored> &all, const std::vector<float> &x) {
  const int padded = tiled_round_up(f.rows, TILED_PAD), parts = f.f16 ? 1 : 3;
  std::vector<uint8_t> split(static_cast<size_t>(padded) * (f.cols + 32) * 2 * parts, 0xff);
  std::vector<int32_t> exponents(f.rows);
  TiledArgs a = {};
  a.parts = address(split), a.exponents = f.f16 ? address(exponents) : 0;
  a.rows = f.rows, a.tile_rows = f.tile_rows, a.out_rows = f.out_rows, a.groups = f.cols / 32,
  a.storage = all[0].m.storage;
  a.split = tiled_split(f.matrices * tiled_weight_tiles(f.out_rows) * tiled_row_tiles(f.rows, f.tile_rows),
                        tiled_steps(f.cols / 32), f.blocks);
  std::vector<float> sums(static_cast<size_t>(tiled_slots(&a.split)) * f.tile_rows * TILED_WEIGHTS, NAN);
  a.sums = address(sums);
  for (int i = 0; i < f.matrices; i++) {
    all[i].y.assign(static_cast<size_t>(f.rows) * f.out_rows, NAN);
    a.matrices[i] = {all[i].m.weights, f.q4 ? address(all[i].scales) : all[i].m.scales, address(all[i].y)};
  }
  const TiledPartsArgs p = {address(x), f.q4 ? 0 : all[0].m.columns, a.parts, address(exponents), f.rows, f.cols,
                            f.tile_rows};
  run(static_cast<unsigned>(padded), f.f16 ? 1 : 2, 0, f.backwards,
      [&] { f.f16 ? dflash_tiled_halves(p) : dflash_tiled_parts(p); });
  launch(f, a);
}

/* Exact: each activation counts with all its bits, and the f32 sums of a few hundred terms lose little. f16: 11 bits.
 */
static void check(const Form &f, const Stored &s, const std::vector<float> &x, int row, int out) {
  double sum = 0, squares = 0;
  for (int col = 0; col < f.cols; col++) {
    float v = x[static_cast<size_t>(row) * f.cols + col];
    if (!f.q4) v *= decode_f16(s.columns[col]);
    const double w = weight_of(s, out, col);
    sum += w * static_cast<double>(v), squares += w * w * static_cast<double>(v) * static_cast<double>(v);
  }
  const double got = static_cast<double>(s.y[static_cast<size_t>(row) * f.out_rows + out]);
  const double bound = ldexp(sqrt(squares) + fabs(sum), f.f16 ? -10 : f.sparse ? -23 : -22);
  if (!(fabs(got - sum) <= bound))
    fail_msg("rows %d of %d x %d, tile %d, blocks %d: row %d, %d is %.9g, not %.9g", f.rows, f.out_rows, f.cols,
             f.tile_rows, f.blocks, row, out, got, sum);
}

static void try_form(const Form &f) {
  std::vector<Stored> all(static_cast<size_t>(f.matrices));
  std::vector<float> x(static_cast<size_t>(f.rows) * f.cols);
  for (float &v : x) v = drawn_number();
  for (size_t i = 0; f.sparse && i < x.size(); i++)
    if (i % f.cols != i / f.cols % f.cols) x[i] = 0;
  for (Stored &s : all) make(s, f.q4, f.out_rows, f.cols);
  multiply(f, all, x);
  for (const Stored &s : all)
    for (int row = 0; row < f.rows; row++)
      for (int out = row % 5; out < f.out_rows; out += 5) check(f, s, x, row, out);
}

/* One range a tile, ranges and shares, shares alone, more blocks of threads than there are steps. */
static void test_exact(void **state) {
  (void)state;
  try_form({true, false, 33, 130, 160, 2, 256, 7, false, false});
  try_form({false, false, 33, 130, 160, 1, 64, 5, true, false});
  try_form({true, false, 257, 70, 96, 1, 128, 2, true, false});
  try_form({false, false, 257, 70, 96, 1, 256, 50, false, false});
}

static void test_f16(void **state) {
  (void)state;
  try_form({true, true, 33, 130, 160, 2, 64, 5, true, false});
  try_form({false, true, 33, 130, 224, 1, 256, 7, false, false});
  try_form({true, true, 257, 70, 96, 1, 256, 3, false, false});
  try_form({false, true, 257, 70, 96, 1, 128, 50, true, false});
}

/* A single product is right to the last bits: all of a mantissa counts. */
static void test_whole_mantissas(void **state) {
  (void)state;
  try_form({true, false, 160, 40, 160, 1, 256, 3, false, true});
  try_form({false, false, 160, 40, 160, 1, 256, 3, false, true});
}

static void test_full_tile(void **state) {
  (void)state;
  try_form({true, false, 256, 128, 64, 1, 256, 2, false, false});
  try_form({false, true, 256, 128, 64, 1, 256, 1, false, false});
}

/* Every step of every tile is in one range of one block of threads, and their slots are apart. */
static void check_split(int tiles, int steps, int blocks) {
  const TiledSplit s = tiled_split(tiles, steps, blocks);
  std::vector<int> met_of(static_cast<size_t>(tiles) * steps), slots(static_cast<size_t>(tiled_slots(&s)));
  assert_true(s.splits * tiles + s.left <= (blocks > tiles ? blocks : blocks > s.left ? blocks : s.left));
  for (int tile = 0; tile < tiles; tile++)
    for (int split = 0; split < s.splits; split++) {
      assert_true(tiled_range(&s, split) < tiled_range(&s, split + 1));
      slots[static_cast<size_t>(tiled_range_slot(&s, tile, split))]++;
      for (int step = tiled_range(&s, split); step < tiled_range(&s, split + 1); step++)
        met_of[static_cast<size_t>(tile) * steps + step]++;
    }
  const int rest = steps - s.covered;
  for (int block = 0; block < s.left; block++) {
    int64_t one = tiled_share(&s, block);
    assert_true(one < tiled_share(&s, block + 1));
    for (int last = -1; one < tiled_share(&s, block + 1); one++) {
      const int tile = static_cast<int>(one / rest);
      assert_int_equal(tiled_owner(&s, one), block);
      if (tile != last) slots[static_cast<size_t>(tiled_share_slot(&s, tile, block))]++;
      last = tile;
      met_of[static_cast<size_t>(tile) * steps + s.covered + static_cast<size_t>(one % rest)]++;
    }
  }
  for (int met : met_of) assert_int_equal(met, 1);
  for (int met : slots) assert_true(met <= 1);
}

static void test_splits(void **state) {
  (void)state;
  for (int tiles = 1; tiles < 14; tiles++)
    for (int steps = 1; steps < 12; steps++)
      for (int blocks = 1; blocks < 40; blocks++) check_split(tiles, steps, blocks);
  check_split(40, 400, 132);
  check_split(80, 80, 132);
}

int main() {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_splits), cmocka_unit_test(test_exact),
                                     cmocka_unit_test(test_f16), cmocka_unit_test(test_whole_mantissas),
                                     cmocka_unit_test(test_full_tile)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
