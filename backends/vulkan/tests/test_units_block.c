/* Steps of blocks and of settled pieces with their products on matrix units, which are emulated: what waits for what,
 * and which bits do not depend on how a call is cut. */
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "drawn_model.h"
#include "emulated.h"
#include "emulated_device.h"
#include "fixture.h"
#include "units.h"

enum { HIDDEN = 1664, LAYERS = 2, ROWS = 8, DRAFTS = ROWS - 1, VOCAB = 61, RANK = 8, CONTEXT = 11 };

/* Wide enough for columns to be split; one storage, so that what is made of x serves all of its products. */
static const DrawnPlan PLAN = {.hidden = HIDDEN,
                               .intermediate = HIDDEN,
                               .layers = LAYERS,
                               .heads = 2,
                               .kv_heads = 1,
                               .head_dim = 32,
                               .vocab = VOCAB,
                               .block = ROWS,
                               .conv_group = 8,
                               .conv_kernel = 2,
                               .rank = RANK,
                               .top = 4,
                               .taps = 1,
                               .window = 64,
                               .storage = DFLASH_STORAGE_F16};

/* By --wrap: the kernels are these. */
extern const VulkanModule __real_vulkan_modules[VULKAN_KERNEL_COUNT];
extern VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];
VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];

static DrawnModel drawn;

/* What a block of a sequence of its own gives. */
typedef struct Answer {
  float logits[DRAFTS * VOCAB], hidden[DRAFTS * RANK];
  uint32_t barriers, dispatches;
} Answer;

static DflashSequence *open_sequence(DflashModel *model) {
  DflashError error = {0};
  DflashSequence *s;
  const DflashSequenceDesc desc = {.struct_size = sizeof desc};
  test_ok(vulkan_sequence_open(model, &desc, &s, &error), &error);
  return s;
}

/* The context in calls of `each` rows, each projected by itself. */
static void fill_context(DflashSequence *s, int64_t each) {
  DflashError error = {0};
  static float taps[CONTEXT * HIDDEN];
  drawn_taps(&drawn, 0, CONTEXT, 3, taps);
  for (int64_t at = 0, rows; at < CONTEXT; at += rows) {
    rows = CONTEXT - at < each ? CONTEXT - at : each;
    test_ok(vulkan_push(s, at, taps + at * HIDDEN, rows, &error), &error);
    test_ok(vulkan_settle(s, &error), &error);
  }
}

static void run_block(DflashSequence *s, int64_t rows, Answer *answer) {
  DflashError error = {0};
  int32_t chosen[DRAFTS], plain[DRAFTS];
  static float h[ROWS * HIDDEN];
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = chosen, .plain = plain};
  for (int i = 0; i < ROWS * HIDDEN; i++) h[i] = test_draw((DflashRandom){5, 0}, (uint64_t)i);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = CONTEXT,
                                .rows = rows,
                                .n_draft = rows - 1,
                                .head_width = VOCAB,
                                .h = h,
                                .tokens = &tokens,
                                .logits = answer->logits,
                                .selector_hidden = answer->hidden};
  test_ok(vulkan_block(s, &call, &error), &error);
  answer->barriers = s->last->plan.barriers;
  answer->dispatches = s->last->plan.dispatches;
}

static Answer answer_of(DflashModel *model, int64_t each) {
  Answer answer;
  DflashSequence *s = open_sequence(model);
  fill_context(s, each);
  run_block(s, ROWS, &answer);
  vulkan_sequence_close(s);
  return answer;
}

/* Kernels that make activations prepare them, and products of one do not wait for each other: no dispatch and no
 * barrier more than on tiles. */
static void test_products_of_one_x_run_at_once(void **state) {
  DflashModel *model = *state;
  assert_true(vulkan_units_splits(model, &model->layers[0].q, ROWS) > 1);
  const Answer on_units = answer_of(model, CONTEXT);
  vulkan_units_leave();
  DflashModel *tiles = drawn_open(&drawn, DFLASH_PROFILE_EXACT, &(DflashOption){"matrix", "tile"}, 1);
  const Answer on_tiles = answer_of(tiles, CONTEXT);
  vulkan_model_close(tiles);
  assert_int_equal(on_units.dispatches, on_tiles.dispatches);
  assert_int_equal(on_units.barriers, on_tiles.barriers);
  for (int i = 0; i < DRAFTS * VOCAB; i++) assert_float_equal(on_units.logits[i], on_tiles.logits[i], 1e-4);
}

/* Whatever lies in scratch, and whatever ran before; counters of splits are no scratch. */
static void test_blocks_give_equal_bits(void **state) {
  DflashError error = {0};
  DflashSequence *s = open_sequence(*state);
  Answer first, again, cut;
  fill_context(s, CONTEXT);
  run_block(s, ROWS, &first);
  test_ok(vulkan_poison(s, UINT32_MAX, &error), &error);
  run_block(s, ROWS, &again);
  assert_memory_equal(again.logits, first.logits, sizeof first.logits);
  assert_memory_equal(again.hidden, first.hidden, sizeof first.hidden);
  run_block(s, 3, &cut);
  run_block(s, ROWS, &again);
  assert_memory_equal(again.logits, first.logits, sizeof first.logits);
  vulkan_sequence_close(s);
}

/* Rows of a context in pieces of any size. */
static void test_pieces_give_equal_bits(void **state) {
  const Answer whole = answer_of(*state, CONTEXT), single = answer_of(*state, 1), some = answer_of(*state, 9);
  assert_memory_equal(single.logits, whole.logits, sizeof whole.logits);
  assert_memory_equal(some.logits, whole.logits, sizeof whole.logits);
}

int main(void) {
  memcpy(__wrap_vulkan_modules, __real_vulkan_modules, sizeof __wrap_vulkan_modules);
  vulkan_units_emulate("emulated", __wrap_vulkan_modules);
  drawn_model_open(&drawn, &PLAN, 29);
  DflashModel *model = drawn_open(&drawn, DFLASH_PROFILE_EXACT, NULL, 0);
  assert_true(model->units_fit);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_products_of_one_x_run_at_once, model),
                                     cmocka_unit_test_prestate(test_blocks_give_equal_bits, model),
                                     cmocka_unit_test_prestate(test_pieces_give_equal_bits, model)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  vulkan_model_close(model);
  drawn_model_close(&drawn);
  return failed;
}
