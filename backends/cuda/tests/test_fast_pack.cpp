/* Weights as the fast kernel's stream has them: each unit is unpacked as the kernel reads it, and gives the matrix's
 * values back, each once. The stored matrices are drawn, of the published sizes. */
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
#include "fast_unit.h"

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

/* ---- against what is stored ---- */

/* int8 plus 128; rows past the last are zero. */
static void check_row_q8(const FastPackArgs &a, const FastUnit &u, int row, int r, int first,
                         const unsigned char *scales) {
  const CudaMatrix &m = a.matrices[0];
  const float scale = row < m.rows ? decode_f16(at<uint16_t>(m.scales)[row]) : 0.0f;
  assert_memory_equal(scales + 4 * r, &scale, 4);
  for (int col = 0; col < u.cols; col++) {
    const int expected = row < m.rows ? stored_int8(m, row, first + col) + 128 : 128;
    if (u.weights[(size_t)r * u.cols + col] != expected) fail_msg("row %d, column %d", row, first + col);
  }
}
static void check_row_q4(const FastPackArgs &a, const FastUnit &u, int row, int r, int first,
                         const unsigned char *ladders) {
  int from;
  const CudaMatrix &m = stored_row(a, row, from);
  assert_memory_equal(ladders + 8 * r, at<float>(m.scales) + 2 * from, 8);
  for (int col = 0; col < u.cols; col++)
    if (u.weights[(size_t)r * u.cols + col] != stored_nibble(m, from, first + col))
      fail_msg("row %d, column %d", row, first + col);
  for (int group = 0; group < u.cols / 32; group++)
    assert_int_equal(u.codes[(size_t)r * u.cols / 32 + group], stored_code(m, from, first / 32 + group));
}
static const unsigned char *check_unit(const FastPackArgs &a, int block, int unit, const unsigned char *p) {
  const int first = fast_first_column(a.product, block);
  FastUnit u(fast_block_columns(a.product));
  const unsigned char *end = u.unpack(a.product, p);
  for (int r = 0; r < 64; r++) (fast_is_q8(a.product) ? check_row_q8 : check_row_q4)(a, u, unit * 64 + r, r, first, p);
  return end;
}

/* ---- a product ---- */

enum { GUARD = 16, BLANK = 0x5a };

static void check_guard(const unsigned char *p) {
  for (int i = 0; i < GUARD; i++) assert_int_equal(p[i], BLANK);
}
/* A block's part of a product, a guard before and behind. */
static Bytes pack_block(FastPackArgs a, int block) {
  const std::vector<uint64_t> first(FAST_BLOCKS, GUARD);
  Bytes stream(fast_block_bytes(a.product, a.head_rows, block) + 2 * GUARD, BLANK);
  a.stream = address(stream), a.first = reinterpret_cast<CudaAddress>(first.data());
  for (int share = 0; share < FAST_PACK_SHARES; share++)
    for (int thread = 0; thread < CUDA_THREADS; thread++) fast_pack::pack(a, block, share, thread);
  return stream;
}
static void check_block(const FastPackArgs &a, int block) {
  const FastShare share = fast_share(a.product, a.head_rows, block / 2);
  const Bytes stream = pack_block(a, block);
  const unsigned char *p = &stream[GUARD];
  check_guard(&stream[0]);
  for (int i = 0; i < share.count; i++) p = check_unit(a, block, share.first + i * share.step, p);
  assert_ptr_equal(p, &stream[stream.size() - GUARD]);
  check_guard(p);
}

/* Those of a block and warpgroup: the first two, and behind those of all warpgroups the third. */
static void check_vectors(const FastPackArgs &a, int block, const unsigned char *from) {
  const int cols = fast_block_columns(a.product), width = cols / 4, first = fast_first_column(a.product, block);
  for (int v = 0; v < fast_vectors(a.product); v++)
    for (int col = 0; col < cols; col++) {
      const bool field = v == 1 && fast_is_q8(a.product);
      const float x =
          field ? decode_f16(at<uint16_t>(a.vectors[v])[first + col]) : at<float>(a.vectors[v])[first + col];
      const int i = v < 2 ? (col / width * 2 + v) * width + col % width : 2 * cols + col;
      assert_memory_equal(from + 4 * i, &x, 4);
    }
}

/* All blocks of threads. The vectors are there once for all clusters that have the same columns. */
static void check_product(FastPackArgs a) {
  const int bytes = fast_vectors(a.product) * FAST_HIDDEN * 4;
  Bytes vectors(GUARD + FAST_VECTORS_BYTES + GUARD, BLANK);
  a.vectors_to = address(vectors) + GUARD;
  for (int block = 0; block < FAST_BLOCKS; block++) check_block(a, block);
  for (int block = 0; block < FAST_BLOCKS; block++)
    if (fast_share(a.product, a.head_rows, block / 2).count > 0)
      check_vectors(a, block, &vectors[GUARD] + fast_vectors_at(0, a.product, block));
  check_guard(&vectors[0]);
  for (size_t i = (size_t)(GUARD + bytes); i < vectors.size(); i++) assert_int_equal(vectors[i], BLANK);
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

/* A head whose rows are no whole units, of which some clusters have two; and the selector, which has fewer units than
 * there are clusters. */
static void test_last(void **state) {
  (void)state;
  const int rows = 4300;
  const Matrix head = q8(rows, FAST_HIDDEN), selector = q8(FAST_RANK, FAST_HIDDEN);
  const Bytes norm = drawn(4 * FAST_HIDDEN);
  FastPackArgs a = {{head.m}, {address(norm), head.m.columns}, 0, 0, 0, FAST_HEAD, rows};
  check_product(a);
  a = {{selector.m}, {address(norm), selector.m.columns}, 0, 0, 0, FAST_SELECTOR, rows};
  check_product(a);
}

/* A shortlist is the head's first rows: its units are the first of each block's part of the whole head. */
static void test_shortlist(void **state) {
  (void)state;
  const int rows = 4300, shortlist = 1000;
  const Matrix head = q8(rows, FAST_HIDDEN);
  const Bytes norm = drawn(4 * FAST_HIDDEN), vectors(FAST_VECTORS_BYTES);
  FastPackArgs a = {{head.m}, {address(norm), head.m.columns}, 0, address(vectors), 0, FAST_HEAD, rows};
  for (int block = 0; block < FAST_BLOCKS; block++) {
    const FastShare share = fast_share(FAST_HEAD, shortlist, block / 2);
    const Bytes stream = pack_block(a, block);
    const unsigned char *p = &stream[GUARD];
    assert_int_equal(share.count, block / 2 < (shortlist + 63) / 64);
    for (int i = 0; i < share.count; i++) p = check_unit(a, block, share.first + i * share.step, p);
    assert_int_equal(p - &stream[GUARD], fast_block_bytes(FAST_HEAD, shortlist, block));
  }
}

int main() {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention), cmocka_unit_test(test_mlp),
                                     cmocka_unit_test(test_last), cmocka_unit_test(test_shortlist)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
