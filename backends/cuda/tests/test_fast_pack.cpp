/* Weights as the fast kernel's stream has them: each item is read as the kernel reads it, and gives the matrix's values
 * back. The stored matrices are drawn, of the published sizes. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "../kernels/fast/pack.cuh"

typedef std::vector<unsigned char> Bytes;

static uint64_t state_of_draw = 88172645463325252ull;
static uint64_t draw() {
  state_of_draw ^= state_of_draw << 13;
  state_of_draw ^= state_of_draw >> 7;
  return state_of_draw ^= state_of_draw << 17;
}
static Bytes drawn(size_t bytes) {
  Bytes b((bytes + 7) / 8 * 8);
  for (size_t i = 0; i < b.size(); i += 8) {
    const uint64_t word = draw();
    memcpy(&b[i], &word, 8);
  }
  return b;
}
static CudaAddress address(const Bytes &b) { return reinterpret_cast<CudaAddress>(b.data()); }

struct Matrix {
  Bytes weights, scales, columns, codes;
  CudaMatrix m = {};
};
static Matrix q8(int rows, int cols) {
  Matrix x;
  x.weights = drawn((size_t)rows * cols), x.scales = drawn(2 * (size_t)rows), x.columns = drawn(2 * (size_t)cols);
  x.m = {address(x.weights), address(x.scales), address(x.columns), 0, rows, cols, STORED_Q8_2F, 1};
  return x;
}
static Matrix q4(int rows, int cols) {
  Matrix x;
  x.weights = drawn((size_t)rows * cols / 2), x.scales = drawn(8 * (size_t)rows);
  x.codes = drawn((size_t)rows * ((cols / 32 * 5 + 7) / 8));
  x.m = {address(x.weights), address(x.scales), 0, address(x.codes), rows, cols, STORED_Q4TP, 1};
  return x;
}

/* ---- a stored matrix, an element at a time ---- */

static int stored_int8(const CudaMatrix &m, int row, int col) {
  return at<int8_t>(m.weights)[(size_t)row * m.cols + col];
}
static int stored_nibble(const CudaMatrix &m, int row, int col) {
  const int byte = at<uint8_t>(m.weights)[((size_t)row * m.cols + col) / 2];
  return col % 2 ? byte >> 4 : byte & 15;
}
static int stored_code(const CudaMatrix &m, int row, int group) {
  int code = 0;
  for (int i = 0; i < 5; i++) {
    const int bit = group * 5 + i;
    code |= (at<uint8_t>(m.codes)[(size_t)row * ((m.cols / 32 * 5 + 7) / 8) + bit / 8] >> bit % 8 & 1) << i;
  }
  return code;
}
/* The matrix of a product's row, and its row there. */
static const CudaMatrix &stored_row(const FastPackArgs &a, int row, int &from) {
  int i = 0;
  from = row;
  if (a.product == FAST_QKV)
    while (from >= a.matrices[i].rows) from -= (int)a.matrices[i++].rows;
  if (a.product == FAST_GATE_UP) i = row / 16 % 2, from = row / 32 * 16 + row % 16;
  return a.matrices[i];
}

/* ---- an item, as the kernel's fragments take it ---- */

static uint32_t word_at(const unsigned char *p) {
  uint32_t word;
  memcpy(&word, p, 4);
  return word;
}
/* Register r of a fragment holds row g + 8 (r & 1) and two of a lane's four columns, those from 2 (r >> 1) on. */
static void check_q4(const FastPackArgs &a, const unsigned char *item, int tile, int first, int groups) {
  for (int lane = 0; lane < 32; lane++)
    for (int k = 0; k < 2 * groups; k++) {
      const bool single = groups % 2 && k >= 2 * groups - 2;
      const unsigned char *p =
          single ? item + groups / 2 * 512 + lane * 8 + k % 2 * 4 : item + k / 4 * 512 + lane * 16 + k % 4 * 4;
      for (int r = 0; r < 4; r++)
        for (int half = 0; half < 2; half++) {
          int row;
          const CudaMatrix &m = stored_row(a, tile * 16 + lane / 4 + 8 * (r & 1), row);
          const int col = first + k * 16 + lane % 4 * 4 + 2 * (r >> 1) + half;
          assert_int_equal(word_at(p) >> (4 * r + 16 * half) & 15, stored_nibble(m, row, col));
        }
    }
  for (int r = 0; r < 16; r++)
    for (int group = 0; group < groups; group++) {
      int row;
      const CudaMatrix &m = stored_row(a, tile * 16 + r, row);
      const uint32_t word = word_at(item + groups * 256 + r % 8 * 16 + group / 5 * 8 + r / 8 * 4);
      const uint32_t offset = (group % 5 == 4 ? word << 5 : word >> 5 * (group % 5)) & 0x7c0;
      assert_int_equal(offset / 64, stored_code(m, row, first / 32 + group));
    }
}
static void check_q8(const FastPackArgs &a, const unsigned char *item, int tile, int first) {
  for (int lane = 0; lane < 32; lane++)
    for (int k = 0; k < 10; k++)
      for (int byte = 0; byte < 8; byte++) { /* of two words: bytes 0 and 2 are row g, 1 and 3 row g + 8 */
        const int row = tile * 16 + lane / 4 + 8 * (byte & 1), col = first + k * 16 + lane % 4 * 4 + byte / 2;
        const int got = item[k / 2 * 512 + lane * 16 + k % 2 * 8 + byte] - 128;
        assert_int_equal(got, row < a.matrices[0].rows ? stored_int8(a.matrices[0], row, col) : 0);
      }
  for (int r = 0; r < 16; r++) {
    const int row = tile * 16 + r;
    const float scale = row < a.matrices[0].rows ? decode_f16(at<uint16_t>(a.matrices[0].scales)[row]) : 0.0f;
    assert_memory_equal(item + FAST_Q8_BYTES + 4 * r, &scale, 4);
  }
}

static void check_tile(const FastPackArgs &a, int block, int warp, int tile, const unsigned char *items) {
  const int base = fast_first_column(a.product, block);
  if (!fast_is_q8(a.product)) {
    check_q4(a, items, tile, base + fast_first_group(a.product, warp) * 32, fast_groups(a.product, warp));
    return;
  }
  check_q8(a, items, tile, base + warp * FAST_SLICE);
  check_q8(a, items + fast_item_bytes(a.product, warp), tile, base + warp * FAST_SLICE + 160);
}

/* A warp's whole part of a product, which is written exactly. */
static void check_warp(FastPackArgs a, int block, int warp) {
  const FastRange tiles = fast_tiles(a.product, a.head_rows, block / 2);
  const size_t bytes = fast_warp_bytes(a.product, a.head_rows, block, warp);
  std::vector<uint64_t> first(FAST_BLOCKS * FAST_WARPS, 1u << 30);
  std::vector<float> ladders(2 * (size_t)FAST_LAYER_LADDERS, -1.0f);
  Bytes stream(bytes + 32, 0x5a);
  first[(size_t)(block * FAST_WARPS + warp)] = 16;
  a.stream = address(stream), a.first = reinterpret_cast<CudaAddress>(first.data());
  a.ladders = reinterpret_cast<CudaAddress>(ladders.data());
  for (int thread = 0; thread < CUDA_THREADS; thread++) fast_pack::pack(a, block, warp, thread);
  for (size_t i = 0; i < 16; i++) assert_int_equal(stream[i] + stream[16 + bytes + i], 2 * 0x5a);
  const unsigned char *p = &stream[16];
  for (int v = 0; v < fast_vectors(a.product); v++)
    for (int i = 0; i < FAST_SLICE; i++, p += 4) {
      const int col = fast_first_column(a.product, block) + warp * FAST_SLICE + i;
      const bool field = v == 1 && fast_is_q8(a.product);
      const float x = field ? decode_f16(at<uint16_t>(a.vectors[v])[col]) : at<float>(a.vectors[v])[col];
      assert_memory_equal(p, &x, 4);
    }
  const int step = fast_item_bytes(a.product, warp) * fast_items_a_tile(a.product);
  for (int tile = tiles.from; tile < tiles.to; tile++, p += step) {
    check_tile(a, block, warp, tile, p);
    for (int r = 0; r < 16 && !fast_is_q8(a.product) && warp == 0 && block % 2 == 0; r++) {
      int row;
      const CudaMatrix &m = stored_row(a, tile * 16 + r, row);
      assert_memory_equal(&ladders[2 * (size_t)(fast_first_ladder(a.product) + tile * 16 + r)],
                          at<float>(m.scales) + 2 * row, 8);
    }
  }
  assert_ptr_equal(p, &stream[16] + bytes);
}

/* The first, the last and some other warps. */
static void check_product(const FastPackArgs &a) {
  static const int blocks[] = {0, 1, 31, 66, 127, 128, 131};
  for (int block : blocks)
    for (int warp = 0; warp < FAST_WARPS; warp += block == 66 ? 1 : 7) check_warp(a, block, warp);
}

static void test_attention(void **state) {
  (void)state;
  const Matrix q = q4(FAST_QUERY_ROWS, FAST_HIDDEN), k = q4(FAST_KV_ROWS, FAST_HIDDEN),
               v = q4(FAST_KV_ROWS, FAST_HIDDEN);
  const Matrix o = q4(FAST_HIDDEN, FAST_QUERY_ROWS), kernel = q8(FAST_KERNEL_ROWS, FAST_HIDDEN);
  const Bytes norm = drawn(4 * FAST_HIDDEN), base = drawn(8 * FAST_HIDDEN);
  FastPackArgs a = {
      {q.m, k.m, v.m}, {address(norm), address(base), address(base) + 4 * FAST_HIDDEN}, 0, 0, 0, FAST_QKV, 0};
  check_product(a);
  a = {{o.m}, {}, 0, 0, 0, FAST_O, 0};
  check_product(a);
  a = {{kernel.m}, {address(norm), kernel.m.columns}, 0, 0, 0, FAST_ATTN_KERNEL, 0};
  check_product(a);
}

static void test_mlp(void **state) {
  (void)state;
  const Matrix gate = q4(FAST_INTERMEDIATE, FAST_HIDDEN), up = q4(FAST_INTERMEDIATE, FAST_HIDDEN);
  const Matrix down = q4(FAST_HIDDEN, FAST_INTERMEDIATE);
  const Bytes norm = drawn(4 * FAST_HIDDEN), base = drawn(8 * FAST_HIDDEN);
  FastPackArgs a = {
      {gate.m, up.m}, {address(norm), address(base), address(base) + 4 * FAST_HIDDEN}, 0, 0, 0, FAST_GATE_UP, 0};
  check_product(a);
  a = {{down.m}, {}, 0, 0, 0, FAST_DOWN, 0};
  check_product(a);
}

/* A head whose rows are no whole tiles, and the selector, which has fewer tiles than there are clusters. */
static void test_last(void **state) {
  (void)state;
  const int rows = 3001;
  const Matrix head = q8(rows, FAST_HIDDEN), selector = q8(FAST_RANK, FAST_HIDDEN);
  const Bytes norm = drawn(4 * FAST_HIDDEN);
  FastPackArgs a = {{head.m}, {address(norm), head.m.columns}, 0, 0, 0, FAST_HEAD, rows};
  check_product(a);
  a = {{selector.m}, {address(norm), selector.m.columns}, 0, 0, 0, FAST_SELECTOR, rows};
  check_product(a);
}

/* ---- the layout: every weight lies in one item ---- */

static void test_cover(void **state) {
  (void)state;
  static const int cols[] = {FAST_HIDDEN, FAST_HIDDEN,       FAST_QUERY_ROWS, FAST_HIDDEN,
                             FAST_HIDDEN, FAST_INTERMEDIATE, FAST_HIDDEN,     FAST_HIDDEN};
  for (int product = 0; product <= FAST_SELECTOR; product++) {
    const int count = fast_tile_count(product, 3001), groups = cols[product] / 32;
    std::vector<int> seen((size_t)count * groups);
    for (int block = 0; block < FAST_BLOCKS; block++)
      for (int warp = 0; warp < FAST_WARPS; warp++) {
        const FastRange tiles = fast_tiles(product, 3001, block / 2);
        const int first = fast_first_column(product, block) / 32 + fast_first_group(product, warp);
        for (int tile = tiles.from; tile < tiles.to; tile++)
          for (int g = 0; g < fast_groups(product, warp); g++) seen[(size_t)tile * groups + first + g]++;
      }
    for (int n : seen) assert_int_equal(n, 1);
  }
}

/* Copies to shared memory are of multiples of 16 bytes, from such addresses, and fit in a slot. */
static void test_alignment(void **state) {
  (void)state;
  for (int product = 0; product <= FAST_SELECTOR; product++)
    for (int warp = 0; warp < FAST_WARPS; warp++) {
      assert_int_equal(fast_item_bytes(product, warp) % 16, 0);
      assert_in_range(fast_item_bytes(product, warp), 16, 2688);
    }
  assert_int_equal(FAST_VECTOR_BYTES % 16, 0);
  assert_in_range(2 * FAST_VECTOR_BYTES, 16, 2688);
}

int main() {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention), cmocka_unit_test(test_mlp),
                                     cmocka_unit_test(test_last), cmocka_unit_test(test_cover),
                                     cmocka_unit_test(test_alignment)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
