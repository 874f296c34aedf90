/* The reference backend: calls on a sequence that it must refuse without changing anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "refuses.h"
#include "tiny_model.h"

#define BEYOND ((INT64_C(1) << 53) + 1)

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
  DflashSequence *sequence;
  float *taps, *h;
  int32_t chosen[4], plain[4];
  DflashTokens tokens;
} Setup;

/* Holds positions 10 to 14. */
static void setup_open(Setup *s) {
  *s = (Setup){.geometry = tiny_geometry()};
  s->model = tiny_model(backend, s->geometry, NULL);
  s->sequence = tiny_sequence(backend, s->model, DFLASH_SEQUENCE_CAPTURE);
  s->taps = tiny_draw("taps", 5 * dflash_geometry_tap_width(&s->geometry));
  s->h = tiny_draw("h", s->geometry.block * s->geometry.hidden);
  s->tokens = (DflashTokens){sizeof s->tokens, s->chosen, s->plain, NULL, NULL};
  assert_int_equal(backend->push(s->sequence, 10, s->taps, 5, &error), DFLASH_OK);
}

static void setup_close(Setup *s) {
  int64_t first, len, kept;
  assert_int_equal(backend->span(s->sequence, 0, &first, &len, &kept, &error), DFLASH_OK);
  assert_true(first == 10 && len == 5 && kept == 10); /* nothing that was refused changed it */
  free(s->taps);
  free(s->h);
  backend->sequence_close(s->sequence);
  backend->model_close(s->model);
}

static void test_sequence_descriptions_are_checked(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  DflashSequence *other = s.sequence;
  DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = 2};
  REFUSES(backend->sequence_open(s.model, &desc, &other, &error), "flags");
  assert_null(other);
  desc = (DflashSequenceDesc){.struct_size = sizeof desc, .reserve_rows = -1};
  REFUSES(backend->sequence_open(s.model, &desc, &other, &error), "reserve_rows");
  desc = (DflashSequenceDesc){.struct_size = 4};
  REFUSES(backend->sequence_open(s.model, &desc, &other, &error), "struct_size");
  desc = (DflashSequenceDesc){.struct_size = sizeof desc, .reserve_rows = INT64_C(1) << 53};
  REFUSES_AS(DFLASH_OUT_OF_MEMORY, backend->sequence_open(s.model, &desc, &other, &error), "memory");
  REFUSES(backend->sequence_open(NULL, &desc, &other, &error), "model");
  setup_close(&s);
}

static void test_context_calls_are_checked(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  DflashSequence *q = s.sequence;
  float k[5 * 20], v[5 * 20];
  const float *all_k[3] = {k, k, k}, *all_v[3] = {v, NULL, v};
  int64_t n;
  REFUSES(backend->push(q, -1, s.taps, 1, &error), "pos");
  REFUSES(backend->push(q, BEYOND, s.taps, 0, &error), "pos");
  REFUSES(backend->push(q, (INT64_C(1) << 53) - 1, s.taps, 2, &error), "pos");
  REFUSES(backend->push(q, INT64_MAX, s.taps, INT64_MAX, &error), "rows");
  REFUSES(backend->push(q, 12, s.taps, -1, &error), "rows");
  REFUSES(backend->push(q, 12, NULL, 1, &error), "taps");
  REFUSES_AS(DFLASH_OUT_OF_MEMORY, backend->push(q, 12, s.taps, INT64_C(1) << 50, &error), "memory");
  REFUSES(backend->push(NULL, 12, s.taps, 1, &error), "sequence");
  REFUSES(backend->load(q, -1, 1, all_k, all_k, &error), "first");
  REFUSES(backend->load(q, 0, -1, all_k, all_k, &error), "len");
  REFUSES(backend->load(q, INT64_C(1) << 53, 1, all_k, all_k, &error), "first");
  REFUSES(backend->load(q, 0, 5, all_k, all_v, &error), "layer 1");
  REFUSES(backend->load(q, 0, 5, NULL, all_k, &error), "k");
  REFUSES(backend->read_context(q, 3, 10, 1, k, v, &error), "layer");
  REFUSES(backend->read_context(q, -1, 10, 1, k, v, &error), "layer");
  REFUSES(backend->read_context(q, 0, 9, 1, k, v, &error), "pos");
  REFUSES(backend->read_context(q, 0, 14, 2, k, v, &error), "pos");
  REFUSES(backend->read_context(q, 0, 10, 6, k, v, &error), "rows");
  REFUSES(backend->read_context(q, 0, 10, -1, k, v, &error), "rows");
  REFUSES(backend->read_context(q, 0, 10, 1, NULL, v, &error), "k");
  REFUSES(backend->span(q, 3, &n, &n, &n, &error), "layer");
  REFUSES(backend->span(q, 0, &n, NULL, &n, &error), "len");
  setup_close(&s);
}

static void test_the_furthest_positions_are_taken(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  DflashSequence *other = tiny_sequence(backend, s.model, 0);
  const int64_t far = (INT64_C(1) << 53) - 5 - s.geometry.block;
  assert_int_equal(backend->push(other, far, s.taps, 5, &error), DFLASH_OK);
  TinyAnswer answer = tiny_block(backend, &s.geometry, other, far + 5, "h", 0);
  tiny_answer_close(&answer);
  assert_int_equal(backend->truncate(other, INT64_MAX, &error), DFLASH_OK);
  assert_int_equal(backend->truncate(other, INT64_MIN, &error), DFLASH_OK);
  backend->sequence_close(other);
  setup_close(&s);
}

static DflashBlockCall good_block(Setup *s) {
  return (DflashBlockCall){.struct_size = sizeof(DflashBlockCall),
                           .anchor_pos = 15,
                           .anchor_token = 96,
                           .rows = 5,
                           .n_draft = 4,
                           .head_width = 5,
                           .h = s->h,
                           .tokens = &s->tokens};
}

#define BLOCK_REFUSES(member, value, part)                    \
  do {                                                        \
    DflashBlockCall call = good_block(&s);                    \
    call.member = value;                                      \
    REFUSES(backend->block(s.sequence, &call, &error), part); \
  } while (0)

static void test_block_calls_are_checked(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  DflashBlockTime time = {.struct_size = sizeof time};
  REFUSES(backend->block_time(s.sequence, &time, &error), "block");
  BLOCK_REFUSES(rows, 1, "rows");
  BLOCK_REFUSES(rows, 6, "rows");
  BLOCK_REFUSES(n_draft, 0, "n_draft");
  BLOCK_REFUSES(n_draft, 5, "n_draft");
  BLOCK_REFUSES(head_width, 4, "head_width");
  BLOCK_REFUSES(head_width, 98, "head_width");
  BLOCK_REFUSES(anchor_token, -1, "anchor_token");
  BLOCK_REFUSES(anchor_token, 97, "anchor_token");
  BLOCK_REFUSES(anchor_pos, -1, "anchor_pos");
  BLOCK_REFUSES(anchor_pos, (INT64_C(1) << 53) - 4, "anchor_pos");
  BLOCK_REFUSES(anchor_pos, INT64_MAX, "anchor_pos");
  BLOCK_REFUSES(flags, 2, "flags");
  BLOCK_REFUSES(h, NULL, "h");
  BLOCK_REFUSES(tokens, NULL, "tokens");
  BLOCK_REFUSES(struct_size, 8, "struct_size");
  DflashTokens tokens = {sizeof tokens, NULL, s.plain, NULL, NULL};
  BLOCK_REFUSES(tokens, &tokens, "chosen");
  tokens = (DflashTokens){sizeof tokens, s.chosen, NULL, NULL, NULL};
  BLOCK_REFUSES(tokens, &tokens, "plain");
  const DflashBlockCall call = good_block(&s);
  assert_int_equal(backend->block(s.sequence, &call, &error), DFLASH_OK);
  REFUSES(backend->block(NULL, &call, &error), "sequence");
  REFUSES(backend->block(s.sequence, NULL, &error), "call");
  setup_close(&s);
}

#define STAGE_REFUSES(good, member, value, part)              \
  do {                                                        \
    DflashStageCall call = good;                              \
    call.member = value;                                      \
    REFUSES(backend->stage(s.sequence, &call, &error), part); \
  } while (0)

static void test_stage_calls_are_checked(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  float *x = tiny_draw("x", 5 * 97), out[5 * 97];
  const DflashStageCall mix = {.struct_size = sizeof mix,
                               .stage = DFLASH_STAGE_ATTN_MIX,
                               .layer = 2,
                               .rows = 5,
                               .position = 4,
                               .context_len = 1,
                               .inputs = {x, x, x, x, x},
                               .output = out};
  assert_int_equal(backend->stage(s.sequence, &mix, &error), DFLASH_OK);
  STAGE_REFUSES(mix, stage, -1, "stage");
  STAGE_REFUSES(mix, stage, DFLASH_STAGE_COUNT, "stage");
  STAGE_REFUSES(mix, layer, 3, "layer");
  STAGE_REFUSES(mix, layer, -1, "layer");
  STAGE_REFUSES(mix, rows, 6, "rows");
  STAGE_REFUSES(mix, rows, 0, "rows");
  STAGE_REFUSES(mix, position, -1, "position");
  STAGE_REFUSES(mix, position, INT64_C(1) << 53, "position");
  STAGE_REFUSES(mix, context_len, -1, "context_len");
  STAGE_REFUSES(mix, context_first, INT64_C(1) << 53, "context_first");
  STAGE_REFUSES(mix, output, NULL, "output");
  STAGE_REFUSES(mix, struct_size, 16, "struct_size");
  for (int i = 0; i < 5; i++) STAGE_REFUSES(mix, inputs[i], NULL, "input");
  DflashStageCall empty = mix;
  empty.context_len = 0;
  empty.inputs[3] = empty.inputs[4] = NULL;
  assert_int_equal(backend->stage(s.sequence, &empty, &error), DFLASH_OK);
  const DflashStageCall select = {.struct_size = sizeof select,
                                  .stage = DFLASH_STAGE_SELECT,
                                  .n_draft = 4,
                                  .head_width = 97,
                                  .inputs = {x, x},
                                  .tokens = &s.tokens};
  assert_int_equal(backend->stage(s.sequence, &select, &error), DFLASH_OK);
  STAGE_REFUSES(select, tokens, NULL, "tokens");
  STAGE_REFUSES(select, n_draft, 5, "n_draft");
  STAGE_REFUSES(select, n_draft, 0, "n_draft");
  STAGE_REFUSES(select, head_width, 4, "head_width");
  STAGE_REFUSES(select, head_width, 98, "head_width");
  STAGE_REFUSES(select, anchor_token, 97, "anchor_token");
  STAGE_REFUSES(select, layer, 1, "layer");
  free(x);
  setup_close(&s);
}

static void test_reads_are_checked(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  float values[5 * 64];
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_ATTN_NORM, 0, values, 5 * 64, &error), "captured");
  assert_int_equal(backend->read_stage(s.sequence, DFLASH_STAGE_CONTEXT_NORM, 0, values, 5 * 64, &error), DFLASH_OK);
  assert_int_equal(backend->push(s.sequence, 15, NULL, 0, &error), DFLASH_OK); /* the last push has no rows now */
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_CONTEXT_NORM, 0, values, 5 * 64, &error), "captured");
  assert_int_equal(backend->read_stage(s.sequence, DFLASH_STAGE_CONTEXT_NORM, 0, NULL, 0, &error), DFLASH_OK);
  const DflashBlockCall call = good_block(&s);
  assert_int_equal(backend->block(s.sequence, &call, &error), DFLASH_OK);
  assert_int_equal(backend->read_stage(s.sequence, DFLASH_STAGE_ATTN_NORM, 2, values, 5 * 64, &error), DFLASH_OK);
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_ATTN_NORM, 2, values, 5 * 64 - 1, &error), "count");
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_ATTN_NORM, 2, NULL, 5 * 64, &error), "values");
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_ATTN_NORM, 3, values, 5 * 64, &error), "layer");
  REFUSES(backend->read_stage(s.sequence, DFLASH_STAGE_LAST, 0, values, 5 * 64, &error), "stage");
  DflashSequence *plain = tiny_sequence(backend, s.model, 0);
  assert_int_equal(backend->block(plain, &call, &error), DFLASH_OK);
  REFUSES(backend->read_stage(plain, DFLASH_STAGE_ATTN_NORM, 0, values, 5 * 64, &error), "capture");
  backend->sequence_close(plain);
  setup_close(&s);
}

/* NaN in the embeddings reaches the logits: an error, after which the stages can be read. */
static void test_nonfinite_blocks_leave_their_values(void **state) {
  (void)state;
  Setup s;
  setup_open(&s);
  const uint32_t bits = 0x7fc00000;
  memcpy(s.h, &bits, sizeof bits);
  const DflashBlockCall call = good_block(&s);
  REFUSES_AS(DFLASH_NONFINITE, backend->block(s.sequence, &call, &error), "NaN");
  float values[5 * 64];
  assert_int_equal(backend->read_stage(s.sequence, DFLASH_STAGE_FINAL_NORM, 0, values, 5 * 64, &error), DFLASH_OK);
  assert_true(values[0] != values[0]);
  setup_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequence_descriptions_are_checked),
      cmocka_unit_test(test_context_calls_are_checked),
      cmocka_unit_test(test_the_furthest_positions_are_taken),
      cmocka_unit_test(test_block_calls_are_checked),
      cmocka_unit_test(test_stage_calls_are_checked),
      cmocka_unit_test(test_reads_are_checked),
      cmocka_unit_test(test_nonfinite_blocks_leave_their_values),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
