/* The context of the blas backend against a plain model of it: what is held, what is let go, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "blas_fixture.h"

enum { WINDOW = 9, REWIND = 256, LONGEST = 700, BLOCK = 4 };

/* Layer 0 sees all, layer 1 has a window, layer 2 the same without rotation. */
static const ModelPlan PLAN = {"context", 32, 32, 3, 2, 1, 6, 61, BLOCK, 8, 2, 8, 4, 2, WINDOW, DFLASH_STORAGE_Q4TP};

typedef struct Bench {
  const DflashBackend *blas;
  TestModel test;
  DflashModel *model;
  float *taps, h[BLOCK * 32];
  BlockOutput output;
} Bench;

static void open_bench(Bench *b, const char *const *options) {
  *b = (Bench){.blas = load_blas()};
  draw_model(&b->test, &PLAN, 29);
  b->model = open_model(b->blas, &b->test, options);
  b->taps = dflash_alloc((size_t)(LONGEST * dflash_geometry_tap_width(&b->test.geometry)), sizeof(float));
  assert_non_null(b->taps);
  draw_floats(b->h, BLOCK * 32, 5);
  open_output(&b->output, &b->test.geometry);
}

static void close_bench(Bench *b) {
  b->blas->model_close(b->model);
  free(b->taps);
  close_output(&b->output);
  free_model(&b->test);
}

static DflashStatus push(Bench *b, DflashSequence *s, int64_t position, int64_t rows, uint64_t seed) {
  draw_taps(&b->test, position, rows, seed, b->taps);
  return b->blas->push(s, position, b->taps, rows, NULL);
}

/* ---- the plain model: the seed of the row at every position ---- */

enum { POSITIONS = 6000 };

typedef struct Plain {
  int64_t first, len;
  uint8_t seed[POSITIONS];
} Plain;

static void plain_push(Plain *p, int64_t pos, int64_t rows, uint8_t seed) {
  if (pos < p->first || pos > p->first + p->len) p->first = pos;
  p->len = pos - p->first + rows;
  memset(p->seed + pos, seed, (size_t)rows);
}

static void plain_truncate(Plain *p, int64_t pos) {
  if (pos < p->first + p->len) p->len = pos > p->first ? pos - p->first : 0;
}

/* K and V of one row, from a context that holds nothing else: what must be held, bit for bit. */
static void assert_row(Bench *b, DflashSequence *s, DflashSequence *single, const Plain *p, int64_t position) {
  float got[2][6], expected[2][6];
  int64_t first, len, kept;
  assert_int_equal(b->blas->reset(single, NULL), DFLASH_OK);
  assert_int_equal(push(b, single, position, 1, p->seed[position]), DFLASH_OK);
  for (int64_t layer = 0; layer < 3; layer++) {
    assert_int_equal(b->blas->span(s, layer, &first, &len, &kept, NULL), DFLASH_OK);
    const DflashStatus status = b->blas->read_context(s, layer, position, 1, got[0], got[1], NULL);
    assert_int_equal(b->blas->span(s, layer, &first, &len, &kept, NULL), DFLASH_OK);
    assert_int_equal(status, position < kept ? DFLASH_CONTEXT_LOST : DFLASH_OK);
    if (status) continue;
    assert_int_equal(b->blas->read_context(single, layer, position, 1, expected[0], expected[1], NULL), DFLASH_OK);
    assert_memory_equal(got, expected, sizeof got);
  }
}

static void assert_span(Bench *b, DflashSequence *s, const Plain *p, int keeps_all) {
  for (int64_t layer = 0; layer < 3; layer++) {
    int64_t first, len, kept;
    assert_int_equal(b->blas->span(s, layer, &first, &len, &kept, NULL), DFLASH_OK);
    assert_int_equal(first, p->first);
    assert_int_equal(len, p->len);
    assert_true(kept >= first);
    if (layer == 0 || keeps_all) assert_int_equal(kept, first);
  }
}

/* A rewind is lost exactly when a windowed layer no longer keeps what a block at pos would see. */
static int rewind_is_lost(Bench *b, DflashSequence *s, const Plain *p, int64_t pos) {
  int64_t first, len, kept;
  if (pos <= p->first || pos >= p->first + p->len) return 0;
  for (int64_t layer = 1; layer < 3; layer++) {
    assert_int_equal(b->blas->span(s, layer, &first, &len, &kept, NULL), DFLASH_OK);
    if (kept > first && pos - (WINDOW - 1) < kept) return 1;
  }
  return 0;
}

typedef struct Walk {
  Bench *bench;
  DflashSequence *sequence, *single;
  Plain plain;
  int64_t longest; /* since the context began, for what must still be there */
  int lost;
} Walk;

static void step_push(Walk *w, int64_t pos, int64_t rows, uint8_t seed) {
  const int lost = rewind_is_lost(w->bench, w->sequence, &w->plain, pos);
  const DflashStatus status = push(w->bench, w->sequence, pos, rows, seed);
  assert_int_equal(status, lost ? DFLASH_CONTEXT_LOST : DFLASH_OK);
  w->lost += lost;
  if (!lost) plain_push(&w->plain, pos, rows, seed);
}

static void step_truncate(Walk *w, int64_t pos) {
  const int lost = rewind_is_lost(w->bench, w->sequence, &w->plain, pos);
  assert_int_equal(w->bench->blas->truncate(w->sequence, pos, NULL), lost ? DFLASH_CONTEXT_LOST : DFLASH_OK);
  w->lost += lost;
  if (!lost) plain_truncate(&w->plain, pos);
}

static int64_t draw(DflashRandom random, uint64_t step, uint64_t which, int64_t bound) {
  return dflash_random_below(random, step * 8 + which, (uint32_t)bound);
}

static void random_step(Walk *w, DflashRandom random, uint64_t step) {
  Plain *p = &w->plain;
  const int64_t end = p->first + p->len, rows = draw(random, step, 0, draw(random, step, 1, 8) ? 40 : LONGEST + 1);
  int64_t pos = end;
  if (end + LONGEST > POSITIONS) pos = draw(random, step, 2, 50);
  switch (draw(random, step, 3, 12)) {
  case 0:
    pos = end - draw(random, step, 4, 300);
    break; /* a rewind */
  case 1:
    pos = p->first + draw(random, step, 4, p->len + 1);
    break;
  case 2:
    pos = pos + draw(random, step, 4, 3);
    break; /* perhaps a hole: it starts over */
  case 3:
    step_truncate(w, end - draw(random, step, 4, 300));
    return;
  case 4:
    step_truncate(w, end + draw(random, step, 4, 3));
    return;
  case 5:
    if (draw(random, step, 4, 10) == 0) {
      assert_int_equal(w->bench->blas->reset(w->sequence, NULL), DFLASH_OK);
      *p = (Plain){0};
      return;
    }
    break;
  default:
    break;
  }
  if (pos < 0 || pos + rows > POSITIONS) return;
  step_push(w, pos, rows, (uint8_t)(step % 251));
}

static void check_walk(const char *const *options, uint32_t flags, int keeps_all) {
  Bench b;
  open_bench(&b, options);
  Walk *w = dflash_alloc(1, sizeof *w);
  assert_non_null(w);
  w->bench = &b;
  w->sequence = open_sequence(b.blas, b.model, flags);
  w->single = open_sequence(b.blas, b.model, 0);
  const DflashRandom random = dflash_random_stream(77, "walk");
  for (uint64_t step = 0; step < 600; step++) {
    random_step(w, random, step);
    assert_span(&b, w->sequence, &w->plain, keeps_all);
    if (step % 7 == 0) assert_int_equal(b.blas->poison(w->sequence, DFLASH_POISON_BITS, NULL), DFLASH_OK);
    for (uint64_t i = 0; i < 2 && w->plain.len > 0; i++) {
      const int64_t back = i ? 1 + draw(random, step, 5, w->plain.len < 30 ? w->plain.len : 30)
                             : w->plain.len - draw(random, step, 6, w->plain.len);
      if (step % 5 == 0) assert_row(&b, w->sequence, w->single, &w->plain, w->plain.first + w->plain.len - back);
    }
  }
  assert_true(keeps_all ? w->lost == 0 : w->lost > 0);
  b.blas->sequence_close(w->sequence);
  b.blas->sequence_close(w->single);
  free(w);
  close_bench(&b);
}

static void random_operations(void **state) { (void)state, check_walk(NULL, 0, 0); }
static void random_operations_keep_all(void **state) {
  (void)state;
  check_walk((const char *const[]){"keep", "all", NULL}, 0, 1);
}
static void random_operations_capturing(void **state) { (void)state, check_walk(NULL, DFLASH_SEQUENCE_CAPTURE, 1); }

/* ---- blocks ---- */

static DflashStatus block(Bench *b, DflashSequence *s, int64_t anchor, float *logits) {
  DflashBlockCall call = block_call(&b->test.geometry, anchor, BLOCK, b->h, &b->output);
  call.logits = logits;
  return b->blas->block(s, &call, NULL);
}

enum { LOGITS = (BLOCK - 1) * 61 };

static void push_in_steps(Bench *b, DflashSequence *s, int64_t end, int64_t step) {
  for (int64_t p = 0; p < end; p += step)
    assert_int_equal(push(b, s, p, end - p < step ? end - p : step, 1), DFLASH_OK);
}

/* A rewind of 256 positions changes nothing, however long the context was and however it was pushed. */
static void rewind_of_256_changes_nothing(void **state) {
  (void)state;
  Bench b;
  open_bench(&b, NULL);
  for (int64_t end = 700; end < 2400; end += 43) {
    float after[LOGITS], fresh[LOGITS];
    DflashSequence *s = open_sequence(b.blas, b.model, 0), *t = open_sequence(b.blas, b.model, 0);
    push_in_steps(&b, s, end, 1 + end % 601);
    assert_int_equal(block(&b, s, end, after), DFLASH_OK);
    assert_int_equal(b.blas->truncate(s, end - REWIND, NULL), DFLASH_OK);
    assert_int_equal(block(&b, s, end - REWIND, after), DFLASH_OK);
    push_in_steps(&b, t, end - REWIND, 300);
    assert_int_equal(block(&b, t, end - REWIND, fresh), DFLASH_OK);
    assert_memory_equal(after, fresh, sizeof after);
    b.blas->sequence_close(s);
    b.blas->sequence_close(t);
  }
  close_bench(&b);
}

/* Far back, a windowed layer has let rows go: truncate, push, a block there and reading say so and change nothing. */
static void deep_rewind_is_refused(void **state) {
  (void)state;
  Bench b;
  DflashError error;
  float before[LOGITS], after[LOGITS], row[6];
  int64_t first, len, kept;
  open_bench(&b, NULL);
  DflashSequence *s = open_sequence(b.blas, b.model, 0);
  for (int64_t p = 0; p < 3000; p += 500) assert_int_equal(push(&b, s, p, 500, 1), DFLASH_OK);
  assert_int_equal(block(&b, s, 3000, before), DFLASH_OK);
  assert_int_equal(b.blas->span(s, 1, &first, &len, &kept, NULL), DFLASH_OK);
  assert_true(kept > 1000 && kept <= 3000 - (WINDOW - 1) - REWIND);
  assert_int_equal(b.blas->truncate(s, 900, &error), DFLASH_CONTEXT_LOST);
  assert_non_null(strstr(error.message, "layer 1"));
  assert_int_equal(b.blas->truncate(s, kept + WINDOW - 2, NULL), DFLASH_CONTEXT_LOST);
  assert_int_equal(push(&b, s, 900, 3, 2), DFLASH_CONTEXT_LOST);
  assert_int_equal(block(&b, s, 900, after), DFLASH_CONTEXT_LOST);
  assert_int_equal(block(&b, s, kept + WINDOW - 2, after), DFLASH_CONTEXT_LOST);
  assert_int_equal(b.blas->read_context(s, 1, kept - 1, 1, row, row, NULL), DFLASH_CONTEXT_LOST);
  assert_int_equal(b.blas->read_context(s, 0, 0, 1, row, row, NULL), DFLASH_OK);
  assert_int_equal(b.blas->span(s, 1, &first, &len, &kept, NULL), DFLASH_OK);
  assert_int_equal(first, 0);
  assert_int_equal(len, 3000);
  assert_int_equal(block(&b, s, 3000, after), DFLASH_OK);
  assert_memory_equal(before, after, sizeof before);
  assert_int_equal(b.blas->truncate(s, kept + WINDOW - 1, NULL), DFLASH_OK);
  assert_int_equal(b.blas->truncate(s, 0, NULL), DFLASH_OK); /* to nothing: no row is needed */
  b.blas->sequence_close(s);
  close_bench(&b);
}

/* One push, many, single rows, load of what was read: equal bits. Captured and not. */
static void ways_to_fill_a_context(void **state) {
  (void)state;
  enum { LEN = 611 };
  Bench b;
  float whole[LOGITS], other[LOGITS], *held[2][3];
  open_bench(&b, NULL);
  DflashSequence *s = open_sequence(b.blas, b.model, 0);
  DflashSequence *captured = open_sequence(b.blas, b.model, DFLASH_SEQUENCE_CAPTURE);
  assert_int_equal(push(&b, captured, 40, LEN, 1), DFLASH_OK);
  assert_int_equal(block(&b, captured, 40 + LEN, whole), DFLASH_OK);
  assert_int_equal(push(&b, s, 40, LEN, 1), DFLASH_OK);
  assert_int_equal(block(&b, s, 40 + LEN, other), DFLASH_OK);
  assert_memory_equal(whole, other, sizeof whole);
  for (int64_t step = 1; step < 300; step = step * 3 + 1) {
    for (int64_t p = 0; p < LEN; p += step)
      assert_int_equal(push(&b, s, 40 + p, LEN - p < step ? LEN - p : step, 1), DFLASH_OK);
    assert_int_equal(block(&b, s, 40 + LEN, other), DFLASH_OK);
    assert_memory_equal(whole, other, sizeof whole);
  }
  for (int64_t layer = 0; layer < 3; layer++) {
    for (int i = 0; i < 2; i++) assert_non_null(held[i][layer] = dflash_alloc(LEN * 6, sizeof(float)));
    assert_int_equal(b.blas->read_context(captured, layer, 40, LEN, held[0][layer], held[1][layer], NULL), DFLASH_OK);
  }
  assert_int_equal(b.blas->load(s, 40, LEN, (const float *const *)held[0], (const float *const *)held[1], NULL),
                   DFLASH_OK);
  assert_int_equal(block(&b, s, 40 + LEN, other), DFLASH_OK);
  assert_memory_equal(whole, other, sizeof whole);
  for (int i = 0; i < 6; i++) free(held[i / 3][i % 3]);
  b.blas->sequence_close(s);
  b.blas->sequence_close(captured);
  close_bench(&b);
}

/* What a captured push left is a result: poisoned scratch does not touch it, nor does a push of no rows. */
static void captured_push_outlives_poison(void **state) {
  (void)state;
  Bench b;
  float before[3][70 * 6], after[70 * 6];
  open_bench(&b, NULL);
  DflashSequence *s = open_sequence(b.blas, b.model, DFLASH_SEQUENCE_CAPTURE);
  assert_int_equal(push(&b, s, 0, 200, 1), DFLASH_OK);
  assert_int_equal(push(&b, s, 200, 70, 1), DFLASH_OK);
  for (int64_t layer = 0; layer < 3; layer++)
    assert_int_equal(b.blas->read_stage(s, DFLASH_STAGE_CONTEXT_K, layer, before[layer], 70 * 6, NULL), DFLASH_OK);
  assert_int_equal(b.blas->poison(s, DFLASH_POISON_BITS, NULL), DFLASH_OK);
  assert_int_equal(push(&b, s, 260, 0, 1), DFLASH_OK);
  for (int64_t layer = 0; layer < 3; layer++) {
    assert_int_equal(b.blas->read_stage(s, DFLASH_STAGE_CONTEXT_K, layer, after, 70 * 6, NULL), DFLASH_OK);
    assert_memory_equal(before[layer], after, sizeof after);
  }
  assert_int_equal(b.blas->read_stage(s, DFLASH_STAGE_CONTEXT_K, 0, after, 69 * 6, NULL), DFLASH_INVALID_ARGUMENT);
  b.blas->sequence_close(s);
  close_bench(&b);
}

/* Two sequences in turn, of different lengths; a hole before the anchor; an anchor inside; nothing held. */
static void sequences_in_turn(void **state) {
  (void)state;
  Bench b;
  float alone[2][4][LOGITS], turn[LOGITS];
  open_bench(&b, NULL);
  static const int64_t LENGTHS[4] = {0, 1, 33, 90};
  for (int which = 0; which < 2; which++) {
    DflashSequence *s = open_sequence(b.blas, b.model, 0);
    for (int i = 0; i < 4; i++) {
      assert_int_equal(push(&b, s, 5, LENGTHS[i], 1 + (uint64_t)which), DFLASH_OK);
      assert_int_equal(block(&b, s, which ? 200 : 30, alone[which][i]), DFLASH_OK);
    }
    b.blas->sequence_close(s);
  }
  DflashSequence *pair[2] = {open_sequence(b.blas, b.model, 0), open_sequence(b.blas, b.model, 0)};
  for (int i = 0; i < 4; i++)
    for (int which = 0; which < 2; which++) {
      assert_int_equal(push(&b, pair[which], 5, LENGTHS[i], 1 + (uint64_t)which), DFLASH_OK);
      assert_int_equal(block(&b, pair[which], which ? 200 : 30, turn), DFLASH_OK);
      assert_memory_equal(turn, alone[which][i], sizeof turn);
    }
  assert_memory_not_equal(alone[0][0], alone[0][2], sizeof turn);
  for (int which = 0; which < 2; which++) b.blas->sequence_close(pair[which]);
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_operations),
      cmocka_unit_test(random_operations_keep_all),
      cmocka_unit_test(random_operations_capturing),
      cmocka_unit_test(rewind_of_256_changes_nothing),
      cmocka_unit_test(deep_rewind_is_refused),
      cmocka_unit_test(ways_to_fill_a_context),
      cmocka_unit_test(captured_push_outlives_poison),
      cmocka_unit_test(sequences_in_turn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
