/* The reference backend: bookkeeping of the context, against a plain model of it. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_three_operations_match_a_plain_context),
      cmocka_unit_test(test_drawn_operations_match_a_plain_context),
      cmocka_unit_test(test_a_rewind_is_never_too_deep),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
