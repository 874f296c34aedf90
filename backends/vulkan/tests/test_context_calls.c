/* What a context holds, lets go and refuses, call by call. */
#include <string.h>

#include "base/random.h"
#include "contexts.h"

/* ---- random calls against a plain model: the seed of the row at every position ---- */

enum { POSITIONS = 8000 };

typedef struct Plain {
  int64_t first, len;
  int64_t high; /* the furthest end since the start: rows are let go of by it */
  uint8_t seed[POSITIONS];
} Plain;

static void plain_push(Plain *p, int64_t pos, int64_t rows, uint8_t seed) {
  if (pos <= p->first || pos > p->first + p->len) p->first = p->high = pos;
  p->len = pos - p->first + rows;
  if (p->first + p->len > p->high) p->high = p->first + p->len;
  memset(p->seed + pos, seed, (size_t)rows);
}

static void plain_truncate(Plain *p, int64_t pos) {
  if (pos < p->first + p->len) p->len = pos > p->first ? pos - p->first : 0;
  if (p->len == 0) p->high = p->first;
}

/* A kept row has the bits that it has in a context of its own; one let go of is refused. */
static void assert_row(DflashSequence *s, DflashSequence *single, const Plain *p, int64_t position) {
  float got[2][KV], expected[2][KV];
  push_ok(single, position, 1, p->seed[position]);
  for (int64_t layer = 0; layer < LAYERS; layer++) {
    const DflashStatus status = vulkan_read_context(s, layer, position, 1, got[0], got[1], NULL);
    assert_int_equal(status, position < kept_from(s, layer) ? DFLASH_CONTEXT_LOST : DFLASH_OK);
    if (status) continue;
    assert_int_equal(vulkan_read_context(single, layer, position, 1, expected[0], expected[1], NULL), DFLASH_OK);
    assert_memory_equal(got, expected, sizeof got);
  }
}

static void assert_kept(DflashSequence *s, const Plain *p) {
  assert_span(s, p->first, p->len);
  const int64_t least = p->high - KEEP > p->first ? p->high - KEEP : p->first;
  assert_int_equal(kept_from(s, 0), p->first);
  for (int64_t layer = 1; layer < LAYERS; layer++) assert_true(kept_from(s, layer) <= least);
}

/* Rows that span says are kept can be read, also where settling the waiting ones could let them go. */
static void test_kept_rows_are_read(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  float k[KV], v[KV];
  for (int64_t pos = 0; pos < LONGEST - 13; pos += 13) {
    push_ok(s, pos, 13, 1);
    DflashError error = {0};
    for (int64_t layer = LAYERS - 1; layer >= 0; layer--) /* the first one settles */
      test_ok(vulkan_read_context(s, layer, kept_from(s, layer), 1, k, v, &error), &error);
  }
  assert_true(kept_from(s, 1) > 0);
  vulkan_sequence_close(s);
}

static int64_t draw_position(const Plain *p, uint32_t draw) {
  const int64_t end = p->first + p->len, back = draw >> 8 & 255;
  if (draw % 8 == 0) return draw >> 8 & 4095;                /* anywhere */
  if (draw % 8 == 1) return p->len > 0 ? p->first : end + 1; /* from the start, or after a gap */
  if (draw % 8 < 4) return end - back > p->first ? end - back : p->first;
  return end;
}

static void run_random(uint32_t flags, uint64_t seed, int steps) {
  DflashSequence *s = open_sequence(flags), *single = open_sequence(0);
  const DflashRandom random = dflash_random_stream(seed, "calls");
  static Plain p;
  p = (Plain){0};
  for (int i = 0; i < steps; i++) {
    uint32_t draw[4];
    dflash_random_block(random, (uint64_t)i, draw);
    const int64_t pos = draw_position(&p, draw[0]);
    const int64_t rows = draw[1] % 4 == 0 ? draw[2] % 700 : draw[2] % 40;
    DflashStatus status = draw[1] % 8 == 5         ? vulkan_truncate(s, pos, NULL)
                          : pos + rows > POSITIONS ? vulkan_reset(s, NULL)
                                                   : push(s, pos, rows, 1 + (uint64_t)i % 200, NULL);
    if (status == DFLASH_CONTEXT_LOST) { /* only of a rewind deeper than what must be kept */
      assert_true(pos < p.high - VULKAN_REWIND_ROWS);
      assert_span(s, p.first, p.len);
      continue;
    }
    assert_int_equal(status, DFLASH_OK);
    if (draw[1] % 8 == 5)
      plain_truncate(&p, pos);
    else if (pos + rows > POSITIONS)
      p.first = p.len = p.high = 0;
    else
      plain_push(&p, pos, rows, (uint8_t)(1 + i % 200));
    assert_kept(s, &p);
    for (int j = 0; p.len > 0 && draw[3] % 3 == 0 && j < 3; j++)
      assert_row(s, single, &p, p.first + (int64_t)(draw[3] >> (2 + 8 * j)) % p.len);
  }
  vulkan_sequence_close(s);
  vulkan_sequence_close(single);
}

static void test_random(void **state) {
  (void)state;
  run_random(0, 1, 20);
  run_random(DFLASH_SEQUENCE_CAPTURE, 3, 10);
}

/* ---- growth and windows ---- */

/* Pushes that move a windowed layer's rows to the front of its buffer again and again: what must be kept is, all of it
 * with the bits of a context that lets nothing go. Settling makes no buffers. */
static int check_long(DflashSequence *all, int64_t rows) {
  DflashError error = {0};
  DflashSequence *s = open_sequence(0);
  int moves = 0;
  for (int64_t end = 0; end + rows <= LONGEST; end += rows) {
    const int64_t base = s->held[1].base;
    VkBuffer buffer = s->held[1].k.buffer;
    push_ok(s, end, rows, 1);
    const uint64_t generation = s->generation;
    test_ok(vulkan_settle(s, &error), &error);
    assert_true(s->generation == generation);
    assert_true(kept_from(s, 1) == 0 || kept_from(s, 1) <= end + rows - KEEP);
    if (s->held[1].base == base) continue;
    moves += s->held[1].k.buffer == buffer;
    assert_same(s, all);
  }
  assert_true(s->held[1].base > 0 && s->held[1].capacity <= 2 * KEEP + VULKAN_SETTLE_ROWS);
  assert_true(s->held[0].base == 0 && s->held[0].capacity >= s->len);
  assert_same(s, all);
  vulkan_sequence_close(s);
  return moves;
}

static void test_long(void **state) {
  (void)state;
  DflashSequence *all = open_sequence(DFLASH_SEQUENCE_CAPTURE);
  push_ok(all, 0, LONGEST, 1);
  assert_true(check_long(all, 50) > 0);
  (void)check_long(all, 700);
  vulkan_sequence_close(all);
}

/* Recorded blocks know the buffers by their generation. */
static void test_generation(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  push_ok(s, 0, 60, 1);
  const uint64_t first = s->generation;
  const int64_t capacity = s->held[0].capacity;
  push_ok(s, 60, capacity - 60, 1);
  assert_true(s->generation == first);
  push_ok(s, capacity, 1, 1);
  assert_true(s->generation > first);
  vulkan_sequence_close(s);
}

/* A windowed layer keeps to the row: the window before the position that is 256 back. */
static void test_kept(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *s = open_sequence(0);
  push_ok(s, 0, 2 * KEEP, 1);
  test_ok(vulkan_settle(s, &error), &error);
  assert_int_equal(kept_from(s, 0), 0);
  assert_int_equal(kept_from(s, 1), KEEP);
  assert_int_equal(vulkan_truncate(s, 2 * KEEP - VULKAN_REWIND_ROWS - 1, &error), DFLASH_CONTEXT_LOST);
  test_ok(vulkan_truncate(s, 2 * KEEP - VULKAN_REWIND_ROWS, &error), &error);
  vulkan_sequence_close(s);
}

static void test_rewind(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *s = open_sequence(0);
  push_ok(s, 0, 1400, 1);
  test_ok(vulkan_settle(s, &error), &error);
  const int64_t kept = kept_from(s, 1);
  assert_true(kept > 0 && kept <= 1400 - KEEP);
  assert_int_equal(vulkan_truncate(s, kept + WINDOW - 2, &error), DFLASH_CONTEXT_LOST);
  assert_int_equal(push(s, kept + WINDOW - 2, 1, 1, &error), DFLASH_CONTEXT_LOST);
  assert_int_equal(push(s, 1, 0, 1, &error), DFLASH_CONTEXT_LOST);
  assert_non_null(strstr(error.message, "layer 1"));
  assert_span(s, 0, 1400);
  test_ok(vulkan_truncate(s, kept + WINDOW - 1, &error), &error);
  assert_span(s, 0, kept + WINDOW - 1);
  test_ok(vulkan_truncate(s, 0, &error), &error); /* all is forgotten: nothing is needed */
  assert_span(s, 0, 0);
  assert_int_equal(kept_from(s, 1), 0);
  vulkan_sequence_close(s);
}

static void test_allocation_limit(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *s = open_sequence(0), *same = open_sequence(0);
  VulkanTraits *traits = &contexts.model->device.traits;
  const VulkanTraits kept = *traits;
  push_ok(s, 0, 1, 1); /* the buffers of a piece are as large as ever */
  push_ok(same, 0, 1, 1);
  traits->max_allocation = 500 * KV * 4;
  push_ok(s, 0, 480, 1);
  push_ok(same, 0, 480, 1);
  assert_int_equal(push(s, 480, 40, 1, &error), DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "520"));
  assert_non_null(strstr(error.message, "20000"));
  assert_span(s, 0, 480);
  push_ok(s, 480, 20, 1);
  push_ok(same, 480, 20, 1);
  assert_int_equal(push(s, 500, 700, 1, &error), DFLASH_UNSUPPORTED);
  assert_span(s, 0, 500);
  *traits = kept;
  assert_same(s, same);
  vulkan_sequence_close(s);
  vulkan_sequence_close(same);
}

/* ---- load ---- */

static void test_load(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *s = open_sequence(0);
  LoadedRows rows, other;
  open_rows(&rows, 900, 1);
  open_rows(&other, 5, 2);
  push_ok(s, 0, 300, 1);
  test_ok(vulkan_load(s, 50, 900, rows.k, rows.v, &error), &error);
  assert_span(s, 50, 900);
  assert_loaded(s, &rows, 50, 50, 900);
  push_ok(s, 900, 200, 1); /* 50 rows are replaced */
  assert_span(s, 50, 1050);
  test_ok(vulkan_settle(s, &error), &error);
  assert_loaded(s, &rows, 50, kept_from(s, 1), 900 - kept_from(s, 1));
  test_ok(vulkan_load(s, 7, 5, other.k, other.v, &error), &error);
  assert_loaded(s, &other, 7, 7, 5);
  test_ok(vulkan_load(s, 9, 0, NULL, NULL, &error), &error);
  assert_span(s, 9, 0);
  close_rows(&rows);
  close_rows(&other);
  vulkan_sequence_close(s);
}

static void test_arguments(void **state) {
  (void)state;
  DflashSequence *s = open_sequence(0);
  float k[KV], v[KV];
  int64_t at[3];
  push_ok(s, 5, 4, 1);
  assert_int_equal(vulkan_push(s, -1, contexts.taps, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_push(s, 5, contexts.taps, -1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_push(s, 5, NULL, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_push(s, INT64_MAX, contexts.taps, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_load(s, 0, 1, NULL, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_load(s, -3, 0, NULL, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_span(s, LAYERS, at, at + 1, at + 2, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_read_context(s, -1, 5, 1, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_read_context(s, 0, 4, 1, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_read_context(s, 0, 9, 1, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_read_context(s, 0, 8, 1, k, v, NULL), DFLASH_OK);
  assert_span(s, 5, 4);
  vulkan_sequence_close(s);
}

/* Nothing is read of a struct that ends too early. */
static void test_short_structs(void **state) {
  (void)state;
  const DflashSequenceDesc desc = {.struct_size = offsetof(DflashSequenceDesc, reserve_rows)};
  const float h[2 * HIDDEN] = {0};
  int32_t chosen[1], plain[1];
  DflashBlockTime time = {.struct_size = sizeof time};
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = chosen, .plain = plain};
  DflashBlockCall call = {.struct_size = sizeof call,
                          .rows = 2,
                          .n_draft = 1,
                          .head_width = contexts.drawn.geometry.vocab,
                          .h = h,
                          .tokens = &tokens};
  DflashSequence *none, *s = open_sequence(0);
  assert_int_equal(vulkan_sequence_open(contexts.model, &desc, &none, NULL), DFLASH_INVALID_ARGUMENT);
  assert_null(none);
  assert_int_equal(vulkan_block(s, &call, NULL), DFLASH_OK);
  assert_int_equal(vulkan_block(s, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  call.struct_size = offsetof(DflashBlockCall, logits);
  assert_int_equal(vulkan_block(s, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call.struct_size = sizeof call;
  tokens.struct_size = offsetof(DflashTokens, candidates);
  assert_int_equal(vulkan_block(s, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call.tokens = NULL;
  assert_int_equal(vulkan_block(s, &call, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_block_time(s, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(vulkan_block_time(s, &time, NULL), DFLASH_OK);
  assert_true(time.resolution_ns > 0 && time.resolution_ns < 100000);
  if (time.clock == DFLASH_CLOCK_DEVICE) assert_int_equal(time.resolution_ns, contexts.model->stamp_step_ns);
  vulkan_sequence_close(s);
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kept_rows_are_read), cmocka_unit_test(test_random), cmocka_unit_test(test_long),
      cmocka_unit_test(test_generation),         cmocka_unit_test(test_kept),   cmocka_unit_test(test_rewind),
      cmocka_unit_test(test_allocation_limit),   cmocka_unit_test(test_load),   cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_short_structs)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
