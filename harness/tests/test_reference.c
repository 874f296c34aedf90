/* The reference backend: bookkeeping of the context against a plain model of it, and laws that need no golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

/* ---- bookkeeping ---- */

enum { POSITIONS = 12, TAP_ROWS = 4, LAYERS = 2, KV = 2, TAP_WIDTH = 4 };

/* A context that keeps, for each position, which row of taps made it. */
typedef struct Plain {
  int64_t first, len;
  int made_by[64];
} Plain;

typedef struct Bench {
  DflashModel *model;
  DflashSequence *sequence;
  Plain plain;
  float *taps;                                                                  /* [TAP_ROWS, TAP_WIDTH] */
  float k[POSITIONS][TAP_ROWS][LAYERS][KV], v[POSITIONS][TAP_ROWS][LAYERS][KV]; /* of one row pushed alone */
} Bench;

static void bench_open(Bench *bench, uint32_t flags) {
  memset(bench, 0, sizeof *bench);
  bench->model = tiny_model(backend, tiny_geometry_minimal(), NULL);
  bench->sequence = tiny_sequence(backend, bench->model, flags);
  bench->taps = tiny_draw("taps", TAP_ROWS * TAP_WIDTH);
  for (int pos = 0; pos < POSITIONS; pos++)
    for (int row = 0; row < TAP_ROWS; row++) {
      assert_int_equal(backend->reset(bench->sequence, &error), DFLASH_OK);
      assert_int_equal(backend->push(bench->sequence, pos, bench->taps + row * TAP_WIDTH, 1, &error), DFLASH_OK);
      for (int l = 0; l < LAYERS; l++)
        assert_int_equal(
            backend->read_context(bench->sequence, l, pos, 1, bench->k[pos][row][l], bench->v[pos][row][l], &error),
            DFLASH_OK);
    }
  assert_int_equal(backend->reset(bench->sequence, &error), DFLASH_OK);
}

static void bench_close(Bench *bench) {
  free(bench->taps);
  backend->sequence_close(bench->sequence);
  backend->model_close(bench->model);
}

static void check_state(Bench *bench) {
  const Plain *plain = &bench->plain;
  for (int l = 0; l < LAYERS; l++) {
    int64_t first, len, kept;
    assert_int_equal(backend->span(bench->sequence, l, &first, &len, &kept, &error), DFLASH_OK);
    assert_int_equal(first, plain->first);
    assert_int_equal(len, plain->len);
    assert_int_equal(kept, plain->first);
    float k[POSITIONS][KV], v[POSITIONS][KV];
    assert_int_equal(backend->read_context(bench->sequence, l, first, len, k[0], v[0], &error), DFLASH_OK);
    for (int64_t i = 0; i < len; i++) {
      assert_memory_equal(k[i], bench->k[first + i][plain->made_by[i]][l], sizeof k[i]);
      assert_memory_equal(v[i], bench->v[first + i][plain->made_by[i]][l], sizeof v[i]);
    }
  }
}

static void do_push(Bench *bench, int64_t pos, int rows) {
  Plain *plain = &bench->plain;
  if (pos < plain->first || pos > plain->first + plain->len) *plain = (Plain){.first = pos};
  plain->len = pos - plain->first;
  for (int i = 0; i < rows; i++) plain->made_by[plain->len++] = (rows - 1 + i) % TAP_ROWS;
  float given[TAP_ROWS * TAP_WIDTH];
  for (int i = 0; i < rows; i++)
    memcpy(given + i * TAP_WIDTH, bench->taps + (rows - 1 + i) % TAP_ROWS * TAP_WIDTH, TAP_WIDTH * sizeof(float));
  assert_int_equal(backend->push(bench->sequence, pos, rows > 0 ? given : NULL, rows, &error), DFLASH_OK);
}

static void do_truncate(Bench *bench, int64_t pos) {
  Plain *plain = &bench->plain;
  if (pos < plain->first + plain->len) plain->len = pos > plain->first ? pos - plain->first : 0;
  assert_int_equal(backend->truncate(bench->sequence, pos, &error), DFLASH_OK);
}

static void do_reset(Bench *bench) {
  bench->plain = (Plain){0};
  assert_int_equal(backend->reset(bench->sequence, &error), DFLASH_OK);
}

static void do_load(Bench *bench, int64_t first, int len) {
  float k[LAYERS][POSITIONS * KV], v[LAYERS][POSITIONS * KV];
  bench->plain = (Plain){.first = first, .len = len};
  for (int i = 0; i < len; i++) {
    bench->plain.made_by[i] = (i + 1) % TAP_ROWS;
    for (int l = 0; l < LAYERS; l++) {
      memcpy(k[l] + i * KV, bench->k[first + i][(i + 1) % TAP_ROWS][l], KV * sizeof(float));
      memcpy(v[l] + i * KV, bench->v[first + i][(i + 1) % TAP_ROWS][l], KV * sizeof(float));
    }
  }
  const float *all_k[LAYERS] = {k[0], k[1]}, *all_v[LAYERS] = {v[0], v[1]};
  assert_int_equal(backend->load(bench->sequence, first, len, all_k, all_v, &error), DFLASH_OK);
}

/* Every operation of a small set, by number: pushes of 0 to 3 rows at 0 to 5, truncations at 0 to 6, reset, loads. */
enum { PUSHES = 24, TRUNCATIONS = 7, RESETS = 1, LOADS = 4, OPERATIONS = PUSHES + TRUNCATIONS + RESETS + LOADS };

static void operate(Bench *bench, int number) {
  if (number < PUSHES)
    do_push(bench, number / 4, number % 4);
  else if ((number -= PUSHES) < TRUNCATIONS)
    do_truncate(bench, number);
  else if ((number -= TRUNCATIONS) < RESETS)
    do_reset(bench);
  else
    do_load(bench, number - 1 > 0 ? number - 1 : 0, number - 1);
}

static void test_every_three_operations_match_a_plain_context(void **state) {
  (void)state;
  Bench bench;
  bench_open(&bench, 0);
  for (int number = 0; number < OPERATIONS * OPERATIONS * OPERATIONS; number++) {
    do_reset(&bench);
    const int start = number / OPERATIONS / OPERATIONS;
    if (start < OPERATIONS - LOADS) operate(&bench, start);
    operate(&bench, number / OPERATIONS % OPERATIONS);
    operate(&bench, number % OPERATIONS);
    check_state(&bench);
  }
  bench_close(&bench);
}

static void test_drawn_operations_match_a_plain_context(void **state) {
  (void)state;
  Bench bench;
  bench_open(&bench, DFLASH_SEQUENCE_CAPTURE);
  const DflashRandom random = dflash_random_stream(1, "operations");
  for (uint64_t i = 0; i < 5000; i++) {
    const int number = (int)dflash_random_below(random, i, OPERATIONS - LOADS);
    operate(&bench, number);
    check_state(&bench);
  }
  bench_close(&bench);
}

static void test_a_rewind_is_never_too_deep(void **state) {
  (void)state;
  enum { ROWS = 700 };
  Bench bench;
  bench_open(&bench, 0);
  float *taps = tiny_draw("many", ROWS * TAP_WIDTH), before[2 * KV], after[2 * KV];
  assert_int_equal(backend->push(bench.sequence, 0, taps, ROWS, &error), DFLASH_OK);
  assert_int_equal(backend->read_context(bench.sequence, 1, 1, 1, before, before + KV, &error), DFLASH_OK);
  assert_int_equal(backend->truncate(bench.sequence, 2, &error), DFLASH_OK);
  assert_int_equal(backend->read_context(bench.sequence, 1, 1, 1, after, after + KV, &error), DFLASH_OK);
  assert_memory_equal(before, after, sizeof before);
  free(taps);
  bench_close(&bench);
}

/* ---- laws ---- */

typedef struct Setup {
  DflashGeometry geometry;
  DflashModel *model;
  int64_t tap_width;
  float *taps; /* [150, tap_width] */
} Setup;

enum { SETUP_ROWS = 150 };

static void setup_open(Setup *setup) {
  setup->geometry = tiny_geometry();
  setup->model = tiny_model(backend, setup->geometry, NULL);
  setup->tap_width = dflash_geometry_tap_width(&setup->geometry);
  setup->taps = tiny_draw("rows", SETUP_ROWS * setup->tap_width);
}

static void setup_close(Setup *setup) {
  free(setup->taps);
  backend->model_close(setup->model);
}

static void push_rows(const Setup *setup, DflashSequence *sequence, int64_t pos, int64_t rows) {
  assert_int_equal(backend->push(sequence, pos, setup->taps + pos * setup->tap_width, rows, &error), DFLASH_OK);
}

/* Pushes 0 .. rows in pieces; the block that follows. */
static TinyAnswer answer_in_pieces(const Setup *setup, uint32_t flags, int64_t rows, int64_t piece) {
  DflashSequence *sequence = tiny_sequence(backend, setup->model, flags);
  for (int64_t pos = 0; pos < rows; pos += piece)
    push_rows(setup, sequence, pos, rows - pos < piece ? rows - pos : piece);
  TinyAnswer answer = tiny_block(backend, &setup->geometry, sequence, rows, "h", 0);
  backend->sequence_close(sequence);
  return answer;
}

static void test_one_push_is_many_pushes(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  TinyAnswer whole = answer_in_pieces(&setup, 0, SETUP_ROWS, SETUP_ROWS);
  const int64_t pieces[] = {1, 2, 31, 32, 33, 64, 65, 149};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
    for (uint32_t flags = 0; flags <= DFLASH_SEQUENCE_CAPTURE; flags++) {
      TinyAnswer other = answer_in_pieces(&setup, flags, SETUP_ROWS, pieces[i]);
      tiny_answer_equal(&whole, &other);
      tiny_answer_close(&other);
    }
  tiny_answer_close(&whole);
  setup_close(&setup);
}

static void test_a_loaded_context_is_a_pushed_one(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  enum { LEN = 40, FIRST = 5 };
  const DflashGeometry *g = &setup.geometry;
  const int64_t kv = g->kv_heads * g->head_dim;
  DflashSequence *pushed = tiny_sequence(backend, setup.model, 0), *loaded = tiny_sequence(backend, setup.model, 0);
  push_rows(&setup, pushed, FIRST, LEN);
  float *k = tiny_draw("k", g->layers * LEN * kv), *v = tiny_draw("v", g->layers * LEN * kv);
  const float *all_k[3], *all_v[3];
  for (int64_t l = 0; l < g->layers; l++) {
    all_k[l] = k + l * LEN * kv;
    all_v[l] = v + l * LEN * kv;
    assert_int_equal(backend->read_context(pushed, l, FIRST, LEN, (float *)all_k[l], (float *)all_v[l], &error),
                     DFLASH_OK);
  }
  assert_int_equal(backend->load(loaded, FIRST, LEN, all_k, all_v, &error), DFLASH_OK);
  TinyAnswer a = tiny_block(backend, g, pushed, FIRST + LEN + 2, "h", 0);
  TinyAnswer b = tiny_block(backend, g, loaded, FIRST + LEN + 2, "h", 0);
  tiny_answer_equal(&a, &b);
  tiny_answer_close(&a);
  tiny_answer_close(&b);
  free(k);
  free(v);
  backend->sequence_close(pushed);
  backend->sequence_close(loaded);
  setup_close(&setup);
}

static void test_two_sequences_in_turn_are_each_alone(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  TinyAnswer alone[2] = {answer_in_pieces(&setup, 0, 40, 40), answer_in_pieces(&setup, 0, 90, 90)};
  DflashSequence *turn[2];
  for (int i = 0; i < 2; i++) turn[i] = tiny_sequence(backend, setup.model, DFLASH_SEQUENCE_CAPTURE);
  push_rows(&setup, turn[0], 0, 20);
  push_rows(&setup, turn[1], 0, 90);
  push_rows(&setup, turn[0], 20, 20);
  for (int round = 0; round < 4; round++) {
    TinyAnswer answer = tiny_block(backend, &setup.geometry, turn[round % 2], round % 2 ? 90 : 40, "h", 0);
    tiny_answer_equal(&alone[round % 2], &answer);
    tiny_answer_close(&answer);
  }
  for (int i = 0; i < 2; i++) {
    backend->sequence_close(turn[i]);
    tiny_answer_close(&alone[i]);
  }
  setup_close(&setup);
}

static void test_threads_change_no_bit(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  TinyAnswer one = answer_in_pieces(&setup, 0, 60, 60);
  backend->model_close(setup.model);
  setup.model = tiny_model(backend, setup.geometry, "3");
  TinyAnswer three = answer_in_pieces(&setup, 0, 60, 60);
  tiny_answer_equal(&one, &three);
  tiny_answer_close(&one);
  tiny_answer_close(&three);
  setup_close(&setup);
}

static void test_poison_changes_no_bit(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  TinyAnswer clean = answer_in_pieces(&setup, 0, 30, 30);
  for (uint32_t flags = 0; flags <= DFLASH_SEQUENCE_CAPTURE; flags++) {
    DflashSequence *sequence = tiny_sequence(backend, setup.model, flags);
    for (int64_t pos = 0; pos < 30; pos += 10) {
      assert_int_equal(backend->poison(sequence, 0x7fc00000u + (uint32_t)pos, &error), DFLASH_OK);
      push_rows(&setup, sequence, pos, 10);
    }
    for (uint32_t pattern = 0x7fa00001u; pattern < 0x7fa00003u; pattern++) {
      assert_int_equal(backend->poison(sequence, pattern, &error), DFLASH_OK);
      TinyAnswer answer = tiny_block(backend, &setup.geometry, sequence, 30, "h", 0);
      tiny_answer_equal(&clean, &answer);
      tiny_answer_close(&answer);
    }
    backend->sequence_close(sequence);
  }
  tiny_answer_close(&clean);
  setup_close(&setup);
}

static void test_rows_from_the_anchor_on_are_not_read(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  TinyAnswer expected = answer_in_pieces(&setup, 0, 25, 25);
  DflashSequence *sequence = tiny_sequence(backend, setup.model, 0);
  push_rows(&setup, sequence, 0, 60);
  TinyAnswer answer = tiny_block(backend, &setup.geometry, sequence, 25, "h", 0);
  tiny_answer_equal(&expected, &answer);
  TinyAnswer later = tiny_block(backend, &setup.geometry, sequence, 26, "h", 0);
  assert_false(tiny_answer_same_logits(&expected, &later));
  tiny_answer_close(&later);
  tiny_answer_close(&answer);
  tiny_answer_close(&expected);
  backend->sequence_close(sequence);
  setup_close(&setup);
}

/* Full rows and a cut block agree on the rows that the cut one has only where nothing flows backwards: nowhere. What
 * must agree is a shortlist with the whole vocabulary. */
static void test_a_shortlist_is_the_start_of_the_vocabulary(void **state) {
  (void)state;
  Setup setup;
  setup_open(&setup);
  const DflashGeometry *g = &setup.geometry;
  DflashSequence *sequence = tiny_sequence(backend, setup.model, 0);
  TinyAnswer whole = tiny_block(backend, g, sequence, 0, "h", 0);
  float *h = tiny_draw("h", g->block * g->hidden), logits[4 * 11];
  int32_t chosen[4], plain[4];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, NULL};
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_token = 2,
                                .rows = g->block,
                                .n_draft = 3,
                                .head_width = 11,
                                .h = h,
                                .tokens = &tokens,
                                .logits = logits};
  assert_int_equal(backend->block(sequence, &call, &error), DFLASH_OK);
  for (int64_t row = 0; row < 3; row++) {
    assert_memory_equal(logits + row * 11, whole.logits + row * g->vocab, 11 * sizeof(float));
    assert_in_range(chosen[row], 0, 10);
  }
  free(h);
  tiny_answer_close(&whole);
  backend->sequence_close(sequence);
  setup_close(&setup);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_three_operations_match_a_plain_context),
      cmocka_unit_test(test_drawn_operations_match_a_plain_context),
      cmocka_unit_test(test_a_rewind_is_never_too_deep),
      cmocka_unit_test(test_one_push_is_many_pushes),
      cmocka_unit_test(test_a_loaded_context_is_a_pushed_one),
      cmocka_unit_test(test_two_sequences_in_turn_are_each_alone),
      cmocka_unit_test(test_threads_change_no_bit),
      cmocka_unit_test(test_poison_changes_no_bit),
      cmocka_unit_test(test_rows_from_the_anchor_on_are_not_read),
      cmocka_unit_test(test_a_shortlist_is_the_start_of_the_vocabulary),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
