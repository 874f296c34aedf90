/* A device taken to offer less gives what the whole one gives; sequences side by side do not meet. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contexts.h"
#include "draw.h"
#include "measure.h"

enum {
  DRAFTS = 3,
  VOCAB = 61,
  BLOCK = DRAFTS + 1,
  SPLITS = 8,
  BINDING = 4096,
  ROOM = 816 /* 8 x 102 rows of 40 bytes */
};

static DflashModel *whole, *small; /* of the same weights, with SPLITS */

static DflashSequence *open_on(DflashModel *model, uint32_t flags) {
  contexts.model = model;
  return open_sequence(flags);
}

static DflashModel *open_model(int32_t profile, const char *assume) {
  const DflashOption options[] = {{"splits", "8"}, {"assume", assume}};
  return drawn_open(&contexts.drawn, profile, options, assume ? 2 : 1);
}

/* ---- blocks ---- */

typedef struct Answer {
  int32_t chosen[DRAFTS], plain[DRAFTS];
  float logits[DRAFTS * VOCAB];
} Answer;

static Answer run_block(DflashSequence *s, int64_t anchor, int64_t rows) {
  DflashError error = {0};
  Answer answer = {0};
  float h[BLOCK * HIDDEN];
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = answer.chosen, .plain = answer.plain};
  for (int i = 0; i < BLOCK * HIDDEN; i++) h[i] = test_draw((DflashRandom){7, 1}, (uint64_t)i);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = anchor,
                                .anchor_token = 5,
                                .rows = rows,
                                .n_draft = rows - 1,
                                .head_width = VOCAB,
                                .h = h,
                                .tokens = &tokens,
                                .logits = answer.logits};
  test_ok(vulkan_block(s, &call, &error), &error);
  return answer;
}

static void assert_equal(const Answer *a, const Answer *b) { assert_memory_equal(a, b, sizeof *a); }

/* Sums may be taken in another order. */
static void assert_close(const Answer *a, const Answer *b) {
  float largest = 0, off = 0;
  for (int i = 0; i < DRAFTS * VOCAB; i++) {
    largest = fmaxf(largest, fabsf(a->logits[i]));
    off = fmaxf(off, fabsf(a->logits[i] - b->logits[i]));
  }
  if (!(largest > 0 && off <= 4e-6f * largest)) fail_msg("off by %g of %g", (double)off, (double)largest);
}

/* ---- shared memory ---- */

/* The tiles of little shared memory sum in the same order as the large ones. */
static void test_shared(void **state) {
  (void)state;
  static const int32_t profiles[] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_I8};
  for (int i = 0; i < 2; i++) {
    DflashModel *large = open_model(profiles[i], NULL), *little = open_model(profiles[i], "shared:16K");
    DflashSequence *a = open_on(large, 0), *b = open_on(little, 0);
    push_ok(a, 0, 30, 1);
    push_ok(b, 0, 30, 1);
    assert_same(a, b);
    const Answer expected = run_block(a, 30, BLOCK), got = run_block(b, 30, BLOCK);
    assert_equal(&expected, &got);
    vulkan_sequence_close(a);
    vulkan_sequence_close(b);
    vulkan_model_close(large);
    vulkan_model_close(little);
  }
}

/* ---- segments ---- */

typedef struct Pair {
  DflashSequence *whole, *small;
} Pair;

static void check_pair(const Pair *p, int64_t anchor, int64_t rows) {
  const Answer expected = run_block(p->whole, anchor, rows), got = run_block(p->small, anchor, rows);
  assert_close(&expected, &got);
}

static void push_pair(const Pair *p, int64_t pos, int64_t rows, uint64_t seed) {
  push_ok(p->whole, pos, rows, seed);
  push_ok(p->small, pos, rows, seed);
}

/* A context that grows over all of its segments, blocks between, then goes back. Blocks at the context's end and before
 * it; a row of K is no multiple of what offsets are, so segments and pieces begin at odd ones. */
static void test_segments(void **state) {
  (void)state;
  const Pair p = {open_on(whole, 0), open_on(small, 0)};
  static const int64_t ends[] = {1, 60, 103, 204, 205, 511, ROOM};
  int64_t end = 0;
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    push_pair(&p, end, ends[i] - end, 1);
    end = ends[i];
    check_pair(&p, end, BLOCK);
    check_pair(&p, end > 20 ? end - 20 : 0, 2 + (int64_t)i % 3);
  }
  assert_same(p.whole, p.small);
  push_pair(&p, ROOM - 200, 150, 2);
  check_pair(&p, ROOM - 50, BLOCK);
  assert_same(p.whole, p.small);
  test_ok(vulkan_reset(p.whole, NULL), NULL);
  test_ok(vulkan_reset(p.small, NULL), NULL);
  push_pair(&p, 4, 9, 3);
  check_pair(&p, 30, BLOCK);
  vulkan_sequence_close(p.whole);
  vulkan_sequence_close(p.small);
}

/* Every row counts: one that is changed shows, in whatever segment it is, and so does one that is not seen. */
static void test_every_segment(void **state) {
  (void)state;
  DflashSequence *s = open_on(small, DFLASH_SEQUENCE_CAPTURE);
  LoadedRows rows;
  DflashError error = {0};
  open_rows(&rows, ROOM, 4);
  test_ok(vulkan_load(s, 0, ROOM, rows.k, rows.v, &error), &error);
  const Answer before = run_block(s, ROOM, BLOCK);
  for (int64_t row = 50; row < ROOM; row += ROOM / SPLITS) {
    for (int layer = 0; layer < LAYERS; layer++) rows.owned[LAYERS + layer][row * KV] += 100;
    test_ok(vulkan_load(s, 0, ROOM, rows.k, rows.v, &error), &error);
    const Answer after = run_block(s, ROOM, BLOCK);
    assert_memory_not_equal(after.logits, before.logits, sizeof before.logits);
    const Answer short_of_it = run_block(s, row, BLOCK);
    for (int layer = 0; layer < LAYERS; layer++) rows.owned[LAYERS + layer][row * KV] -= 100;
    test_ok(vulkan_load(s, 0, ROOM, rows.k, rows.v, &error), &error);
    const Answer without = run_block(s, row, BLOCK);
    assert_equal(&short_of_it, &without);
  }
  close_rows(&rows);
  vulkan_sequence_close(s);
}

/* One row more than there are segments for. */
static void test_room(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *s = open_on(small, 0);
  push_ok(s, 0, ROOM, 1);
  const Answer before = run_block(s, ROOM, BLOCK);
  assert_int_equal(push(s, ROOM, 1, 1, &error), DFLASH_UNSUPPORTED);
  static const char *const words[] = {"817", "816", "4096", "8 splits"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) assert_non_null(strstr(error.message, words[i]));
  assert_span(s, 0, ROOM);
  const Answer after = run_block(s, ROOM, BLOCK);
  assert_equal(&before, &after);
  vulkan_sequence_close(s);
}

/* ---- several sequences ---- */

/* Rows of their own, blocks in turn, growth between blocks, closing in another order than opening: each answers as it
 * does alone. Blocks of several sizes stay recorded while the buffers under them are replaced. */
static void test_sequences(void **state) {
  (void)state;
  enum { SEQUENCES = 3, ROUNDS = 4, STEP = 47 };
  Answer alone[SEQUENCES][ROUNDS];
  DflashSequence *s[SEQUENCES];
  for (int i = 0; i < SEQUENCES; i++) {
    s[0] = open_on(small, 0);
    for (int round = 0; round < ROUNDS; round++) {
      push_ok(s[0], round * STEP, STEP, (uint64_t)i + 1);
      alone[i][round] = run_block(s[0], (round + 1) * STEP, 2 + (i + round) % 3);
    }
    vulkan_sequence_close(s[0]);
  }
  for (int i = 0; i < SEQUENCES; i++) s[i] = open_on(small, 0);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < SEQUENCES; i++)
      if (round < ROUNDS - i) push_ok(s[i], round * STEP, STEP, (uint64_t)i + 1);
    for (int i = SEQUENCES - 1; i >= 0; i--) {
      if (round >= ROUNDS - i) continue;
      const Answer got = run_block(s[i], (round + 1) * STEP, 2 + (i + round) % 3);
      assert_equal(&alone[i][round], &got);
    }
    const int closed = ROUNDS - 1 - round; /* the last of them after its last block */
    if (closed > 0 && closed < SEQUENCES) {
      vulkan_sequence_close(s[closed]);
      s[closed] = NULL;
    }
  }
  vulkan_sequence_close(s[0]);
}

/* ---- what the device can do ---- */

static void measure(void) {
  DflashError error = {0};
  double bytes = 0, operations = 0;
  test_ok(vulkan_measure_read(small, &bytes, &error), &error);
  test_ok(vulkan_measure_matrix(small, &operations, &error), &error);
  test_ok(vulkan_evict_caches(small, &error), &error);
  assert_true(bytes > 0 && operations > 0);
}

/* A stream of one binding, and of many. */
static void test_measure(void **state) {
  (void)state;
  VulkanTraits *traits = &small->device.traits;
  const VulkanTraits kept = *traits;
  traits->max_groups[0] = 7;
  measure();
  assert_true(small->stream.bytes <= BINDING);
  vulkan_buffer_close(&small->device, &small->stream);
  traits->is_cpu = false;
  measure();
  assert_true(small->stream.bytes > 8 * BINDING);
  *traits = kept;
}

int main(void) {
  contexts_open();
  DflashModel *first = contexts.model;
  whole = open_model(DFLASH_PROFILE_EXACT, NULL);
  small = open_model(DFLASH_PROFILE_EXACT, "binding:4K,groups:16,dot:0,stamps:0");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared),        cmocka_unit_test(test_segments),
                                     cmocka_unit_test(test_every_segment), cmocka_unit_test(test_room),
                                     cmocka_unit_test(test_sequences),     cmocka_unit_test(test_measure)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  vulkan_model_close(whole);
  vulkan_model_close(small);
  contexts.model = first;
  contexts_close();
  return failed;
}
