/* Where the fast kernel's weights lie: every unit at every column is one block's, a shortlist is the start of the head,
 * and what is copied fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../kernels/fast/layout.h"

enum { VOCABULARY = 30001, SLOT = 4 * (FAST_MOST_GROUPS * FAST_GROUP_BYTES + FAST_CODE_BYTES) };

/* Rows, some of them past the last, and columns of a product's matrices. */
static const struct {
  int rows, cols;
} sizes[] = {[FAST_ATTN_KERNEL] = {FAST_KERNEL_ROWS, FAST_HIDDEN},
             [FAST_QKV] = {FAST_QKV_ROWS, FAST_HIDDEN},
             [FAST_O] = {FAST_HIDDEN, FAST_QUERY_ROWS},
             [FAST_MLP_KERNEL] = {FAST_KERNEL_ROWS, FAST_HIDDEN},
             [FAST_GATE_UP] = {2 * FAST_INTERMEDIATE, FAST_HIDDEN},
             [FAST_DOWN] = {FAST_HIDDEN, FAST_INTERMEDIATE},
             [FAST_HEAD] = {VOCABULARY, FAST_HIDDEN},
             [FAST_SELECTOR] = {FAST_RANK, FAST_HIDDEN}};

/* ---- every weight lies in one chunk ---- */

/* Steps of 16 columns that a warpgroup has in its chunks, from its first column on. */
static void count_steps(int product, int first, int *seen) {
  for (int chunk = 0; chunk < fast_chunks(product); chunk++) {
    const int from = fast_is_q8(product) ? chunk * FAST_Q8_STEPS : 2 * fast_groups_before(product, chunk);
    const int steps = fast_is_q8(product) ? (int)FAST_Q8_STEPS : 2 * fast_groups(product, chunk);
    for (int i = 0; i < steps; i++) seen[first / 16 + from + i]++;
  }
}

static void test_cover(void **state) {
  (void)state;
  for (int product = 0; product <= FAST_SELECTOR; product++) {
    const int units = (sizes[product].rows + FAST_UNIT - 1) / FAST_UNIT, steps = sizes[product].cols / 16;
    int *seen = calloc((size_t)units * (size_t)steps, sizeof *seen);
    assert_non_null(seen);
    assert_int_equal(fast_unit_count(product, VOCABULARY), units);
    for (int block = 0; block < FAST_BLOCKS; block++) {
      const FastShare share = fast_share(product, VOCABULARY, block / 2);
      for (int i = 0; i < share.count; i++) {
        const int unit = share.first + i * share.step, first = fast_first_column(product, block);
        assert_in_range(unit, 0, units - 1);
        for (int group = 0; group < FAST_WARPGROUPS; group++)
          count_steps(product, first + group * fast_group_columns(product), seen + unit * steps);
      }
    }
    for (int i = 0; i < units * steps; i++) assert_int_equal(seen[i], 1);
    free(seen);
  }
}

/* Each part of the columns of a kernel projection is 20 clusters', of q, k, v 33, of down 16; the others are whole. */
static void test_parts(void **state) {
  (void)state;
  for (int product = 0; product <= FAST_SELECTOR; product++) {
    const int parts = product == FAST_DOWN ? 4 : fast_is_kernel(product) || product == FAST_QKV ? 2 : 1;
    assert_int_equal(fast_parts(product), parts);
    int clusters[4] = {0};
    for (int cluster = 0; cluster < FAST_CLUSTERS; cluster++) {
      const FastShare share = fast_share(product, VOCABULARY, cluster);
      if (share.count == 0) continue;
      assert_in_range(share.part, 0, parts - 1);
      assert_int_equal(fast_first_column(product, 2 * cluster), share.part * sizes[product].cols / parts);
      clusters[share.part]++;
    }
    const int each = product == FAST_DOWN       ? 16
                     : fast_is_kernel(product)  ? 20
                     : product == FAST_QKV      ? 33
                     : product == FAST_SELECTOR ? 4
                                                : 66;
    for (int part = 0; part < parts; part++) assert_int_equal(clusters[part], each);
  }
}

/* What a block has of a shortlist is what it has first of the whole head. */
static void test_shortlist(void **state) {
  (void)state;
  static const int widths[] = {1, 64, 65, 1000, 64 * 66, 64 * 66 + 1, 29999, VOCABULARY};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    int units = 0;
    for (int cluster = 0; cluster < FAST_CLUSTERS; cluster++) {
      const FastShare all = fast_share(FAST_HEAD, VOCABULARY, cluster), few = fast_share(FAST_HEAD, widths[i], cluster);
      units += few.count;
      assert_in_range(few.count, 0, all.count);
      if (few.count == 0) continue;
      assert_int_equal(few.first, all.first);
      assert_int_equal(few.step, all.step);
      assert_true((few.first + (few.count - 1) * few.step) * FAST_UNIT < widths[i]);
    }
    assert_int_equal(units, (widths[i] + FAST_UNIT - 1) / FAST_UNIT);
  }
}

/* ---- sizes ---- */

/* Copies to shared memory are of multiples of 16 bytes, from such addresses, and fit in a slot. */
static void check_copy(int64_t from, int bytes) {
  assert_int_equal(from % 16, 0);
  assert_int_equal(bytes % 16, 0);
  assert_in_range(bytes, 16, SLOT);
}

static void test_copies(void **state) {
  (void)state;
  for (int product = 0; product <= FAST_SELECTOR; product++) {
    int bytes = fast_ladder_bytes(product);
    check_copy(0, bytes);
    for (int chunk = 0; chunk < fast_chunks(product); chunk++) {
      check_copy(bytes, fast_chunk_bytes(product, chunk));
      bytes += FAST_WARPGROUPS * fast_chunk_bytes(product, chunk);
    }
    assert_int_equal(fast_unit_bytes(product), bytes);
    for (int block = 0; block < FAST_BLOCKS; block++)
      assert_int_equal(fast_block_bytes(product, VOCABULARY, block),
                       fast_share(product, VOCABULARY, block / 2).count * bytes);
  }
}

/* Vectors of a block lie in those of its product, behind those of the columns before. */
static void test_vectors(void **state) {
  (void)state;
  for (int product = 0; product <= FAST_SELECTOR; product++)
    for (int block = 0; block < FAST_BLOCKS; block++) {
      if (fast_share(product, VOCABULARY, block / 2).count == 0) continue;
      int64_t at = fast_vectors_at(3, product, block);
      assert_int_equal(at - 3 * FAST_VECTORS_BYTES, fast_first_column(product, block) * fast_vectors(product) * 4);
      for (int chunk = 0; chunk < fast_vector_chunks(product); chunk++) {
        check_copy(at, fast_vector_bytes(product, chunk));
        at += FAST_WARPGROUPS * fast_vector_bytes(product, chunk);
      }
      const int behind = fast_first_column(product, block) + fast_block_columns(product);
      assert_int_equal(at - 3 * FAST_VECTORS_BYTES, behind * fast_vectors(product) * 4);
      assert_true(at <= 4 * FAST_VECTORS_BYTES);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cover), cmocka_unit_test(test_parts),
                                     cmocka_unit_test(test_shortlist), cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
