/* Each barrier of a block left out is missed: synchronisation validation names a hazard, so it would name one that the
 * plan forgets. */
#include <string.h>

#include "contexts.h"
#include "draw.h"

enum { ROWS = 4, DRAFTS = ROWS - 1, ANCHOR = 20 };

/* A block on a sequence of its own; *barriers: of its plan. */
static DflashStatus run_block(uint32_t flags, uint32_t skip, uint32_t *barriers, DflashError *error) {
  int32_t chosen[DRAFTS], plain[DRAFTS];
  float h[ROWS * HIDDEN], hidden[DRAFTS * 8];
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = chosen, .plain = plain};
  DflashSequence *s = open_sequence(flags);
  for (int i = 0; i < ROWS * HIDDEN; i++) h[i] = test_draw((DflashRandom){3, 0}, (uint64_t)i);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = ANCHOR,
                                .rows = ROWS,
                                .n_draft = DRAFTS,
                                .head_width = contexts.drawn.geometry.vocab,
                                .h = h,
                                .tokens = &tokens,
                                .selector_hidden = hidden};
  push_ok(s, 0, ANCHOR, 1);
  contexts.model->options.skip_barrier = skip;
  const DflashStatus status = vulkan_block(s, &call, error);
  if (barriers && s->last) *barriers = s->last->plan.barriers;
  contexts.model->options.skip_barrier = 0;
  contexts.model->device.messages = (VulkanMessages){0};
  vulkan_sequence_close(s);
  return status;
}

static void skip_each(uint32_t flags) {
  DflashError error = {0};
  uint32_t barriers = 0;
  test_ok(run_block(flags, 0, &barriers, &error), &error);
  assert_true(barriers > 30);
  for (uint32_t skip = 1; skip <= barriers; skip++) {
    error = (DflashError){0};
    if (run_block(flags, skip, NULL, &error) != DFLASH_INTERNAL || !strstr(error.message, "SYNC-HAZARD"))
      fail_msg("without barrier %u of %u: '%s'", skip, barriers, error.message);
  }
  test_ok(run_block(flags, barriers + 1, NULL, &error), &error);
}

static void test_block(void **state) {
  (void)state;
  skip_each(0);
}

static void test_captured_block(void **state) {
  (void)state;
  skip_each(DFLASH_SEQUENCE_CAPTURE);
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_block), cmocka_unit_test(test_captured_block)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
