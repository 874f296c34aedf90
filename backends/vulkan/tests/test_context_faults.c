/* Calls of the API that fail: a context is what it was, whichever it is. */
#include <stdlib.h>

#include "contexts.h"

/* Lets the n-th call from now on fail; 0: none. */
static void plant(uint64_t n, VkResult result) {
  contexts.model->device.api.fault = (VulkanFault){.at = n, .result = result};
}

enum { HELD = 40 };

/* What a sequence of `len` rows keeps of every layer. */
typedef struct Kept {
  int64_t len, from[LAYERS];
  float *rows[LAYERS];
} Kept;

static Kept read_kept(DflashSequence *s) {
  DflashError error = {0};
  Kept kept = {.len = s->len};
  test_ok(vulkan_settle(s, &error), &error);
  for (int layer = 0; layer < LAYERS; layer++) {
    kept.from[layer] = kept_from(s, layer);
    kept.rows[layer] = read_rows(s, layer, kept.from[layer], kept.len - kept.from[layer]);
  }
  return kept;
}

static void close_kept(Kept *kept) {
  for (int layer = 0; layer < LAYERS; layer++) free(kept->rows[layer]);
}

/* One layer after the other, call by call. */
static void assert_kept(DflashSequence *s, const Kept *kept, uint64_t n) {
  const int layer = (int)(n % LAYERS);
  const int64_t from = kept->from[layer], rows = kept->len - from;
  assert_span(s, 0, kept->len);
  assert_int_equal(kept_from(s, layer), from);
  float *got = read_rows(s, layer, from, rows);
  assert_memory_equal(got, kept->rows[layer], (size_t)(2 * rows * KV) * sizeof *got);
  free(got);
}

typedef struct Push {
  uint32_t flags;
  int64_t held, pos, rows;
  uint64_t step; /* every step-th call is made to fail */
} Push;

/* Calls fail in turn; the same push succeeds after that. */
static void fail_push(const Push *p) {
  DflashError error = {0};
  DflashSequence *s = open_sequence(p->flags), *same = open_sequence(p->flags);
  push_ok(same, 0, p->held, 1);
  test_ok(vulkan_settle(same, &error), &error);
  push_ok(same, p->pos, p->rows, 2);
  push_ok(s, 0, p->held, 1);
  Kept kept = read_kept(s);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  uint64_t n = 1 - p->step;
  while (status) {
    plant(n += p->step, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    status = push(s, p->pos, p->rows, 2, &error);
    plant(0, VK_SUCCESS);
    if (status == DFLASH_OK) break;
    assert_int_equal(status, DFLASH_OUT_OF_MEMORY);
    assert_int_equal(error.status, status);
    assert_kept(s, &kept, n);
  }
  assert_true(n > 3);
  assert_same(same, s);
  close_kept(&kept);
  vulkan_sequence_close(s);
  vulkan_sequence_close(same);
}

/* Buffers that grow, rows written over held ones with and without a rest that waits, a start after a gap, windowed
 * layers that are full: of rows that wait, and of rows that are written at once. */
static void test_push(void **state) {
  (void)state;
  static const Push pushes[] = {{0, HELD, HELD, 100, 1},
                                {DFLASH_SEQUENCE_CAPTURE, HELD, HELD, 3, 1},
                                {DFLASH_SEQUENCE_CAPTURE, HELD, 20, 10, 1},
                                {0, HELD, 30, 270, 1},
                                {0, HELD, 1000, 300, 1},
                                {0, 3 * KEEP - 10, 3 * KEEP - 10, 40, 1},
                                {0, 3 * KEEP - 10, 3 * KEEP - 10, 600, 7}};
  for (size_t i = 0; i < sizeof pushes / sizeof pushes[0]; i++) fail_push(&pushes[i]);
}

/* The first push of a sequence, whose buffers are not there yet. */
static void test_first_push(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  for (uint64_t n = 1; status; n++) {
    plant(n, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    status = push(s, 7, 5, 1, NULL);
    plant(0, VK_SUCCESS);
    if (status) assert_span(s, 0, 0);
  }
  assert_span(s, 7, 5);
  vulkan_sequence_close(s);
}

/* A failure leaves the rows waiting. */
static void test_settle(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0), *same = open_sequence(0);
  push_ok(same, 0, HELD, 1);
  push_ok(s, 0, HELD, 1);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  for (uint64_t n = 1; status; n++) {
    plant(n, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    status = vulkan_settle(s, NULL);
    plant(0, VK_SUCCESS);
    assert_int_equal(s->settled, status ? 0 : HELD);
    assert_span(s, 0, HELD);
  }
  assert_true(s->settle_ns > 0);
  assert_same(same, s);
  vulkan_sequence_close(s);
  vulkan_sequence_close(same);
}

static void test_load(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  LoadedRows rows;
  open_rows(&rows, 30, 1);
  push_ok(s, 0, HELD, 1);
  Kept kept = read_kept(s);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  for (uint64_t n = 1; status; n++) {
    plant(n, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    status = vulkan_load(s, 5, 30, rows.k, rows.v, NULL);
    plant(0, VK_SUCCESS);
    if (status) assert_kept(s, &kept, n);
  }
  assert_loaded(s, &rows, 5, 5, 30);
  close_kept(&kept);
  close_rows(&rows);
  vulkan_sequence_close(s);
}

/* The last test of this model: a lost device stays lost, says so, and is closed all the same. */
static void test_lost(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  push_ok(s, 0, HELD, 1);
  plant(3, VK_ERROR_DEVICE_LOST);
  assert_int_equal(vulkan_settle(s, NULL), DFLASH_DEVICE_LOST);
  plant(0, VK_SUCCESS);
  assert_int_equal(vulkan_settle(s, NULL), DFLASH_DEVICE_LOST);
  vulkan_sequence_close(s);
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_push), cmocka_unit_test(test_first_push),
                                     cmocka_unit_test(test_settle), cmocka_unit_test(test_load),
                                     cmocka_unit_test(test_lost)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
