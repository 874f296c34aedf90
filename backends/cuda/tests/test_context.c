/* Contexts that grow, let rows go, are rewound, stand beside each other, and survive calls that fail. */
#include "scene.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Layer 0 of the golden sees all, layer 1 has a window of 10. */
enum { WINDOW = 10, KEEP = WINDOW - 1 + 256 };

static Scene scene;
static DflashModel *model;

static void push_ok(DflashSequence *s, int64_t position, int64_t rows) {
  DflashError error = {0};
  must(scene_push(&scene, s, position, rows, &error), &error);
}

static int64_t kept_from(DflashSequence *s, int64_t layer) {
  DflashError error = {0};
  int64_t first, len, kept;
  must(cuda_backend.span(s, layer, &first, &len, &kept, &error), &error);
  return kept;
}

static void same_block(DflashSequence *a, DflashSequence *b, int64_t anchor) {
  DflashError error = {0};
  Answer of_a, of_b;
  must(scene_block(&scene, a, anchor, 0, &of_a, &error), &error);
  must(scene_block(&scene, b, anchor, 0, &of_b, &error), &error);
  answers_equal(&scene, &of_a, &of_b);
  free(of_a.logits);
  free(of_b.logits);
}

/* Pieces of any size come to what one push comes to, waiting or not, with memory that grows on the way. */
static void test_growth(void **state) {
  (void)state;
  static const int64_t pieces[] = {1, 7, 300, 1, 56, 255, 1, 100};
  DflashSequence *s = scene_sequence(model, 0, 0), *whole = scene_sequence(model, DFLASH_SEQUENCE_CAPTURE, 2000);
  int64_t end = 0;
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    push_ok(s, end, pieces[i]);
    end += pieces[i];
  }
  push_ok(whole, 0, end);
  same_block(s, whole, end);
  contexts_equal(&scene, s, whole);
  cuda_backend.sequence_close(s);
  cuda_backend.sequence_close(whole);
}

static DflashSequence *pushed(uint32_t flags, int64_t rows, int64_t step) {
  DflashSequence *s = scene_sequence(model, flags, 0);
  for (int64_t done = 0; done < rows; done += step) push_ok(s, done, step);
  return s;
}

/* The windowed layer lets go, and no more than it may; what it keeps is right, and so is a block after a rewind. */
static void test_windows(void **state) {
  (void)state;
  DflashError error = {0};
  enum { ROWS = 1500, STEP = 100 };
  DflashSequence *s = pushed(0, ROWS, STEP), *all = pushed(DFLASH_SEQUENCE_CAPTURE, ROWS, STEP);
  same_block(s, all, ROWS);
  assert_int_equal(kept_from(s, 0), 0);
  assert_int_equal(kept_from(all, 1), 0);
  assert_in_range(kept_from(s, 1), 1, ROWS - KEEP);
  contexts_equal(&scene, s, all);
  must(cuda_backend.truncate(s, ROWS - 256, &error), &error);
  must(cuda_backend.truncate(all, ROWS - 256, &error), &error);
  same_block(s, all, ROWS - 256);
  contexts_equal(&scene, s, all);
  cuda_backend.sequence_close(s);
  cuda_backend.sequence_close(all);
}

/* A rewind that needs rows which are gone is refused and changes nothing; so is reading them. */
static void test_deep_rewind(void **state) {
  (void)state;
  DflashError error = {0};
  enum { ROWS = 1500 };
  DflashSequence *s = pushed(0, ROWS, 300);
  float *rows = calloc(2 * 64, sizeof *rows);
  const int64_t kept = kept_from(s, 1), needed = kept + WINDOW - 1;
  assert_true(kept > 0 && rows);
  assert_int_equal(cuda_backend.truncate(s, needed - 1, &error), DFLASH_CONTEXT_LOST);
  assert_int_equal(scene_push(&scene, s, needed - 1, 3, &error), DFLASH_CONTEXT_LOST);
  assert_int_equal(cuda_backend.read_context(s, 1, kept - 1, 1, rows, rows + 64, &error), DFLASH_CONTEXT_LOST);
  assert_non_null(strstr(error.message, "layer 1 keeps positions from"));
  assert_int_equal(kept_from(s, 1), kept);
  must(cuda_backend.truncate(s, needed, &error), &error);
  must(cuda_backend.truncate(s, 0, &error), &error);
  free(rows);
  cuda_backend.sequence_close(s);
}

/* Calls of one sequence leave the other one alone. */
static void test_apart(void **state) {
  (void)state;
  DflashSequence *a = scene_sequence(model, 0, 0), *b = scene_sequence(model, 0, 0), *alone;
  push_ok(a, 0, 20);
  push_ok(b, 1000, 30);
  same_block(a, a, 20);
  push_ok(a, 20, 10);
  push_ok(b, 1030, 5);
  same_block(b, b, 1035);
  alone = scene_sequence(model, 0, 0);
  push_ok(alone, 0, 30);
  same_block(a, alone, 30);
  contexts_equal(&scene, a, alone);
  cuda_backend.sequence_close(alone);
  alone = scene_sequence(model, 0, 0);
  push_ok(alone, 1000, 35);
  same_block(b, alone, 1035);
  contexts_equal(&scene, b, alone);
  cuda_backend.sequence_close(alone);
  cuda_backend.sequence_close(a);
  cuda_backend.sequence_close(b);
}

/* Once a block of these sizes has run, the next one allocates nothing, whatever waits. */
static void test_no_allocation(void **state) {
  (void)state;
  DflashError error = {0};
  Answer answer;
  DflashSequence *s = pushed(0, 300, 60);
  for (int round = 0; round < 3; round++) {
    push_ok(s, 300 + 5 * round, 5);
    const uint64_t before = driver->allocations_made;
    must(scene_block(&scene, s, 305 + 5 * round, 0, &answer, &error), &error);
    assert_int_equal(driver->allocations_made, before);
    free(answer.logits);
  }
  cuda_backend.sequence_close(s);
}

typedef struct Push {
  uint32_t flags;
  int64_t held, pos, rows;
  uint64_t step; /* every step-th call is made to fail */
} Push;

/* Calls fail in turn, and the context is what it was; then the same push succeeds. */
static void fail_push(const Push *p) {
  DflashError error = {0};
  DflashSequence *s = pushed(p->flags, p->held, 20), *before = pushed(p->flags, p->held, 20);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  uint64_t n = 1, failures = 0;
  contexts_equal(&scene, s, before);
  for (; status; n += p->step) {
    driver->calls = 0;
    driver->fail_at = n;
    driver->fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    status = scene_push(&scene, s, p->pos, p->rows, &error);
    driver->fail_at = 0;
    if (status == DFLASH_OK) break;
    failures++;
    assert_int_equal(status, DFLASH_OUT_OF_MEMORY);
    contexts_equal(&scene, s, before);
  }
  assert_true(failures > 2);
  push_ok(before, p->pos, p->rows);
  contexts_equal(&scene, s, before);
  cuda_backend.sequence_close(s);
  cuda_backend.sequence_close(before);
}

/* Rows that follow, rows over held ones with and without a rest that waits, a start after a gap, a layer that lets go.
 */
static void test_failing_push(void **state) {
  (void)state;
  static const Push pushes[] = {{0, 40, 40, 100, 1},
                                {DFLASH_SEQUENCE_CAPTURE, 40, 40, 3, 2},
                                {DFLASH_SEQUENCE_CAPTURE, 40, 20, 10, 3},
                                {0, 40, 30, 270, 5},
                                {0, 40, 1000, 300, 5},
                                {0, 800, 800, 300, 9}};
  for (size_t i = 0; i < sizeof pushes / sizeof *pushes; i++) fail_push(&pushes[i]);
}

/* A block whose settling fails leaves the rows waiting. */
static void test_failing_settle(void **state) {
  (void)state;
  DflashError error = {0};
  Answer answer;
  DflashSequence *s = pushed(0, 40, 20), *same = pushed(0, 40, 20);
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  for (uint64_t n = 1; status; n += 3) {
    driver->calls = 0;
    driver->fail_at = n;
    status = scene_block(&scene, s, 40, 0, &answer, &error);
    driver->fail_at = 0;
    free(answer.logits);
  }
  same_block(s, same, 40);
  contexts_equal(&scene, s, same);
  cuda_backend.sequence_close(s);
  cuda_backend.sequence_close(same);
}

/* Models on two devices of one process, used in turn. */
static void test_devices(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModelDesc desc = scene_desc(&scene);
  DflashModel *none;
  driver->devices = 2;
  desc.device = "2";
  assert_int_equal(cuda_backend.model_open(&desc, &none, &error), DFLASH_UNAVAILABLE);
  assert_null(none);
  DflashModel *second = scene_model(&scene, "1");
  assert_int_equal(driver->contexts, 2);
  DflashSequence *a = scene_sequence(model, 0, 0), *b = scene_sequence(second, 0, 0);
  push_ok(a, 0, 20);
  push_ok(b, 0, 20);
  same_block(a, b, 20);
  cuda_backend.sequence_close(a);
  cuda_backend.sequence_close(b);
  cuda_backend.model_close(second);
  driver->devices = 1;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_growth),         cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_deep_rewind),    cmocka_unit_test(test_apart),
                                     cmocka_unit_test(test_no_allocation),  cmocka_unit_test(test_failing_push),
                                     cmocka_unit_test(test_failing_settle), cmocka_unit_test(test_devices)};
  scene_open(&scene, "operations.h5");
  model = scene_model(&scene, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cuda_backend.model_close(model);
  if (failed == 0) nothing_open();
  scene_close(&scene);
  return failed;
}
