#include "contexts.h"

#include <stdlib.h>

#include "draw.h"

static const DrawnPlan PLAN = {.hidden = HIDDEN,
                               .intermediate = 32,
                               .layers = LAYERS,
                               .heads = 2,
                               .kv_heads = 1,
                               .head_dim = KV,
                               .vocab = 61,
                               .block = 4,
                               .conv_group = 8,
                               .conv_kernel = 2,
                               .rank = 8,
                               .top = 4,
                               .taps = TAPS / HIDDEN,
                               .window = WINDOW,
                               .storage = DRAWN_IN_TURN};

Contexts contexts;

void contexts_open(void) {
  drawn_model_open(&contexts.drawn, &PLAN, 29);
  contexts.model = drawn_open(&contexts.drawn, DFLASH_PROFILE_EXACT, NULL, 0);
}

void contexts_close(void) {
  vulkan_model_close(contexts.model);
  drawn_model_close(&contexts.drawn);
}

DflashSequence *open_sequence(uint32_t flags) {
  DflashError error = {0};
  DflashSequence *s;
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags};
  test_ok(vulkan_sequence_open(contexts.model, &desc, &s, &error), &error);
  return s;
}

DflashStatus push(DflashSequence *s, int64_t pos, int64_t rows, uint64_t seed, DflashError *error) {
  assert_true(rows <= LONGEST);
  drawn_taps(&contexts.drawn, pos, rows, seed, contexts.taps);
  return vulkan_push(s, pos, contexts.taps, rows, error);
}

void push_ok(DflashSequence *s, int64_t pos, int64_t rows, uint64_t seed) {
  DflashError error = {0};
  test_ok(push(s, pos, rows, seed, &error), &error);
}

int64_t kept_from(DflashSequence *s, int64_t layer) {
  int64_t first, len, kept;
  assert_int_equal(vulkan_span(s, layer, &first, &len, &kept, NULL), DFLASH_OK);
  return kept;
}

void assert_span(DflashSequence *s, int64_t first, int64_t len) {
  for (int64_t layer = 0; layer < LAYERS; layer++) {
    int64_t got_first, got_len, kept;
    assert_int_equal(vulkan_span(s, layer, &got_first, &got_len, &kept, NULL), DFLASH_OK);
    assert_int_equal(got_first, first);
    assert_int_equal(got_len, len);
    assert_true(kept >= first);
  }
}

float *read_rows(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows) {
  DflashError error = {0};
  float *values = test_memory((size_t)(2 * rows * KV), sizeof *values);
  test_ok(vulkan_read_context(s, layer, pos, rows, values, values + rows * KV, &error), &error);
  return values;
}

void assert_same(DflashSequence *a, DflashSequence *b) {
  DflashError error = {0};
  test_ok(vulkan_settle(a, &error), &error);
  for (int64_t layer = 0; layer < LAYERS; layer++) {
    const int64_t pos = kept_from(a, layer), rows = a->first + a->len - pos;
    float *expected = read_rows(a, layer, pos, rows), *got = read_rows(b, layer, pos, rows);
    assert_memory_equal(got, expected, (size_t)(2 * rows * KV) * sizeof *got);
    free(got);
    free(expected);
  }
}

void open_rows(LoadedRows *rows, int64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < 2 * LAYERS; i++) {
    rows->owned[i] = test_memory((size_t)(count * KV), sizeof(float));
    for (int64_t j = 0; j < count * KV; j++) rows->owned[i][j] = test_draw((DflashRandom){seed, i}, (uint64_t)j);
  }
  for (int layer = 0; layer < LAYERS; layer++) {
    rows->k[layer] = rows->owned[layer];
    rows->v[layer] = rows->owned[LAYERS + layer];
  }
}

void close_rows(LoadedRows *rows) {
  for (int i = 0; i < 2 * LAYERS; i++) free(rows->owned[i]);
}

void assert_loaded(DflashSequence *s, const LoadedRows *rows, int64_t first, int64_t pos, int64_t count) {
  for (int layer = 0; layer < LAYERS; layer++) {
    float *got = read_rows(s, layer, pos, count);
    assert_memory_equal(got, rows->k[layer] + (pos - first) * KV, (size_t)(count * KV) * sizeof *got);
    assert_memory_equal(got + count * KV, rows->v[layer] + (pos - first) * KV, (size_t)(count * KV) * sizeof *got);
    free(got);
  }
}
