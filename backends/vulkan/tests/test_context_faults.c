/* Calls of the API that fail: a context is what it was, whichever it is. */
#include <stdlib.h>

#include "contexts.h"

/* Lets the n-th call from now on fail; 0: none. */
static void plant(uint64_t n, VkResult result) {
  contexts.model->device.api.fault = (VulkanFault){.at = n, .result = result};
}

enum { HELD = 40 };

/* The rows of positions 0 .. HELD, in every layer. */
typedef struct Kept {
  float *rows[LAYERS];
} Kept;

static Kept read_kept(DflashSequence *s) {
  Kept kept;
  for (int layer = 0; layer < LAYERS; layer++) kept.rows[layer] = read_rows(s, layer, 0, HELD);
  return kept;
}

static void close_kept(Kept *kept) {
  for (int layer = 0; layer < LAYERS; layer++) free(kept->rows[layer]);
}

/* One layer after the other, call by call. */
static void assert_kept(DflashSequence *s, const Kept *kept, uint64_t n) {
  const int layer = (int)(n % LAYERS);
  assert_span(s, 0, HELD);
  float *got = read_rows(s, layer, 0, HELD);
  assert_memory_equal(got, kept->rows[layer], (size_t)(2 * HELD * KV) * sizeof *got);
  free(got);
}

typedef struct Push {
  uint32_t flags;
  int64_t pos, rows;
} Push;

/* Every call fails in turn; the same push succeeds after that. */
static void fail_push(const Push *p) {
  DflashSequence *s = open_sequence(p->flags), *same = open_sequence(p->flags);
  push_ok(same, 0, HELD, 1);
  push_ok(same, p->pos, p->rows, 2);
  push_ok(s, 0, HELD, 1);
  Kept kept = read_kept(s);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  uint64_t n = 0;
  while (status) {
    DflashError error = {0};
    plant(++n, VK_ERROR_OUT_OF_DEVICE_MEMORY);
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

/* Buffers that grow, rows written over held ones with and without a rest that waits, a start after a gap. */
static void test_push(void **state) {
  (void)state;
  static const Push pushes[] = {{0, HELD, 100},
                                {DFLASH_SEQUENCE_CAPTURE, HELD, 3},
                                {DFLASH_SEQUENCE_CAPTURE, 20, 10},
                                {0, 30, 270},
                                {0, 1000, 300}};
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
