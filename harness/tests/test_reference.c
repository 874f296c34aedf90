/* The reference backend: laws that need no golden. Equal work gives equal bits, however it is cut or disturbed, in
 * every profile: a test's state is its profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

typedef struct Setup {
  DflashGeometry geometry;
  DflashModel *model;
  int64_t tap_width;
  float *taps; /* [150, tap_width] */
} Setup;

enum { SETUP_ROWS = 150 };

static void setup_open(Setup *setup, void **state) {
  setup->geometry = tiny_geometry();
  setup->model = tiny_model_as(backend, setup->geometry, *(const int32_t *)*state, NULL, NULL);
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
  Setup setup;
  setup_open(&setup, state);
  TinyAnswer whole = answer_in_pieces(&setup, 0, SETUP_ROWS, SETUP_ROWS);
  const int64_t pieces[] = {1, 33, 2, 31, 32, 64, 65, 149};
  const size_t count = *(const int32_t *)*state == DFLASH_PROFILE_EXACT ? sizeof pieces / sizeof *pieces : 2;
  for (size_t i = 0; i < count; i++)
    for (uint32_t flags = 0; flags <= DFLASH_SEQUENCE_CAPTURE; flags++) {
      TinyAnswer other = answer_in_pieces(&setup, flags, SETUP_ROWS, pieces[i]);
      tiny_answer_equal(&whole, &other);
      tiny_answer_close(&other);
    }
  tiny_answer_close(&whole);
  setup_close(&setup);
}

static void test_a_loaded_context_is_a_pushed_one(void **state) {
  Setup setup;
  setup_open(&setup, state);
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
  Setup setup;
  setup_open(&setup, state);
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
  Setup setup;
  setup_open(&setup, state);
  TinyAnswer one = answer_in_pieces(&setup, 0, 60, 60);
  backend->model_close(setup.model);
  setup.model = tiny_model_as(backend, setup.geometry, *(const int32_t *)*state, "threads", "3");
  TinyAnswer three = answer_in_pieces(&setup, 0, 60, 60);
  tiny_answer_equal(&one, &three);
  tiny_answer_close(&one);
  tiny_answer_close(&three);
  setup_close(&setup);
}

static void test_poison_changes_no_bit(void **state) {
  Setup setup;
  setup_open(&setup, state);
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
  Setup setup;
  setup_open(&setup, state);
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

static void test_a_shortlist_is_the_start_of_the_vocabulary(void **state) {
  Setup setup;
  setup_open(&setup, state);
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

#define IN_EVERY_PROFILE(test)                                                                  \
  cmocka_unit_test_prestate(test, &profiles[0]), cmocka_unit_test_prestate(test, &profiles[1]), \
      cmocka_unit_test_prestate(test, &profiles[2]), cmocka_unit_test_prestate(test, &profiles[3])

int main(void) {
  static int32_t profiles[] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_I8, DFLASH_PROFILE_F16, DFLASH_PROFILE_BF16};
  const struct CMUnitTest tests[] = {
      IN_EVERY_PROFILE(test_one_push_is_many_pushes),
      IN_EVERY_PROFILE(test_a_loaded_context_is_a_pushed_one),
      IN_EVERY_PROFILE(test_two_sequences_in_turn_are_each_alone),
      IN_EVERY_PROFILE(test_threads_change_no_bit),
      IN_EVERY_PROFILE(test_poison_changes_no_bit),
      IN_EVERY_PROFILE(test_rows_from_the_anchor_on_are_not_read),
      IN_EVERY_PROFILE(test_a_shortlist_is_the_start_of_the_vocabulary),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
