/* Activations that are prepared by the kernels that make them, with emulated matrix units: every stage has the bits
 * that it has where kernels of their own prepare them, and what does not fit is still prepared by those. */
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "drawn_model.h"
#include "emulated.h"
#include "emulated_device.h"
#include "fixture.h"
#include "fragments.h"

enum { ROWS = 11, VOCAB = 61, CONTEXT = 5, LAYERS = 2, RANK = 8 };

/* Rows that end within a group of columns, and within what a whole row of workgroups takes. */
static const DrawnPlan PLAN = {.hidden = 352,
                               .intermediate = 288,
                               .layers = LAYERS,
                               .heads = 3,
                               .kv_heads = 1,
                               .head_dim = 32,
                               .vocab = VOCAB,
                               .block = ROWS,
                               .conv_group = 8,
                               .conv_kernel = 2,
                               .rank = RANK,
                               .top = 4,
                               .taps = 1,
                               .window = 64};

/* By --wrap: the kernels are these. */
extern const VulkanModule __real_vulkan_modules[VULKAN_KERNEL_COUNT];
extern VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];
VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];

/* All stages of a block, one after the other. */
typedef struct Answer {
  float *values;
  size_t count, capacity;
  uint32_t dispatches;
} Answer;

static void read_stages(DflashSequence *s, int64_t rows, Answer *a) {
  DflashError error = {0};
  const DflashGeometry *g = &s->model->geometry;
  for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_SELECTOR_HIDDEN; stage++)
    for (int64_t layer = 0; layer < vulkan_stage_layers(g, stage); layer++) {
      const bool drafts = vulkan_stage_rows(stage) == DFLASH_ROWS_DRAFT;
      const size_t count = (size_t)((drafts ? rows - 1 : rows) * vulkan_stage_width(g, stage));
      assert_true(a->count + count <= a->capacity);
      test_ok(vulkan_read_stage(s, stage, layer, a->values + a->count, count, &error), &error);
      a->count += count;
    }
}

static DflashSequence *open_sequence(const DrawnModel *drawn, DflashModel *model) {
  DflashError error = {0};
  DflashSequence *s;
  static float taps[CONTEXT * 1088];
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = DFLASH_SEQUENCE_CAPTURE};
  test_ok(vulkan_sequence_open(model, &desc, &s, &error), &error);
  drawn_taps(drawn, 0, CONTEXT, 3, taps);
  test_ok(vulkan_push(s, 0, taps, CONTEXT, &error), &error);
  return s;
}

static Answer run_block(DflashSequence *s, int64_t rows) {
  DflashError error = {0};
  const int64_t hidden = s->model->geometry.hidden;
  int32_t chosen[ROWS], plain[ROWS];
  Answer a = {.capacity = 1 << 19};
  a.values = test_memory(a.capacity, sizeof *a.values);
  float *h = test_memory((size_t)(rows * hidden), sizeof *h);
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = chosen, .plain = plain};
  for (int64_t i = 0; i < rows * hidden; i++) h[i] = test_draw((DflashRandom){5, 0}, (uint64_t)i);
  test_ok(vulkan_poison(s, UINT32_MAX, &error), &error);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = CONTEXT,
                                .rows = rows,
                                .n_draft = rows - 1,
                                .head_width = VOCAB,
                                .h = h,
                                .tokens = &tokens};
  test_ok(vulkan_block(s, &call, &error), &error);
  a.dispatches = s->last->plan.dispatches;
  read_stages(s, rows, &a);
  free(h);
  return a;
}

/* Dispatches fewer. */
static uint32_t compare(const DrawnModel *drawn, int32_t profile, int64_t rows) {
  DflashModel *models[2];
  Answer answers[2];
  for (int apart = 0; apart < 2; apart++) {
    models[apart] = drawn_open(drawn, profile, &(DflashOption){"join", apart ? "off" : "auto"}, 1);
    assert_true(models[apart]->units_fit);
    DflashSequence *s = open_sequence(drawn, models[apart]);
    answers[apart] = run_block(s, rows);
    vulkan_sequence_close(s);
    vulkan_model_close(models[apart]);
  }
  assert_true(answers[0].count == answers[1].count && answers[0].count > 10000);
  assert_memory_equal(answers[0].values, answers[1].values, answers[0].count * sizeof(float));
  free(answers[0].values);
  free(answers[1].values);
  return answers[1].dispatches - answers[0].dispatches;
}

static void compare_plan(DrawnPlan plan, int32_t storage, int32_t profile, int64_t rows, uint32_t fewer) {
  DrawnModel drawn;
  plan.storage = storage;
  drawn_model_open(&drawn, &plan, 31);
  assert_int_equal(compare(&drawn, profile, rows), fewer);
  drawn_model_close(&drawn);
}

/* Six a layer; what one makes for the head serves the selector, too. */
static void test_one_form(void **state) {
  (void)state;
  compare_plan(PLAN, DFLASH_STORAGE_Q4TP, DFLASH_PROFILE_EXACT, ROWS, 6 * LAYERS + 1);
  compare_plan(PLAN, DFLASH_STORAGE_F16, DFLASH_PROFILE_F16, 8, 6 * LAYERS + 1);
}

/* A column field for each matrix: k, v and up have theirs prepared apart; head and selector have not. */
static void test_fields(void **state) {
  (void)state;
  compare_plan(PLAN, DFLASH_STORAGE_Q8_2F, DFLASH_PROFILE_EXACT, ROWS, 6 * LAYERS + 2);
}

static void test_storages_in_turn(void **state) {
  (void)state;
  static const int32_t PROFILES[] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_I8};
  for (int i = 0; i < 2; i++) {
    DrawnModel drawn;
    DrawnPlan plan = PLAN;
    plan.storage = DRAWN_IN_TURN;
    drawn_model_open(&drawn, &plan, 37);
    assert_in_range(compare(&drawn, PROFILES[i], 9), 3, 6 * LAYERS + 2);
    drawn_model_close(&drawn);
  }
}

/* Heads that are no whole groups of columns; odd rows. */
static void test_what_does_not_fit_is_prepared_apart(void **state) {
  (void)state;
  DrawnPlan heads = PLAN, odd = PLAN;
  heads.head_dim = 16;
  compare_plan(heads, DFLASH_STORAGE_F16, DFLASH_PROFILE_EXACT, 5, 5 * LAYERS + 1);
  odd.hidden = 351;
  odd.conv_group = 27;
  odd.intermediate = 287;
  compare_plan(odd, DFLASH_STORAGE_F16, DFLASH_PROFILE_EXACT, 5, LAYERS);
}

/* Columns that are split: the kernel projection's, q's, k's and v's, gate's and up's, o's and down's sums are added by
 * the kernels that read them; or by as many workgroups as there are, where the kernel would add too many. */
static void test_splits(void **state) {
  (void)state;
  DrawnPlan plan = PLAN;
  plan.layers = 1;
  plan.hidden = plan.intermediate = 1088;
  plan.heads = 34;
  plan.kv_heads = 2;
  plan.storage = DFLASH_STORAGE_F16;
  DrawnModel drawn;
  drawn_model_open(&drawn, &plan, 41);
  DflashModel *model = drawn_open(&drawn, DFLASH_PROFILE_F16, NULL, 0);
  static const int32_t STAGES[] = {DFLASH_STAGE_ATTN_KERNEL, DFLASH_STAGE_ATTN_Q_PROJ, DFLASH_STAGE_ATTN_K_PROJ,
                                   DFLASH_STAGE_ATTN_V_PROJ, DFLASH_STAGE_ATTN_O_PROJ, DFLASH_STAGE_MLP_KERNEL,
                                   DFLASH_STAGE_MLP_GATE,    DFLASH_STAGE_MLP_UP,      DFLASH_STAGE_MLP_DOWN};
  for (size_t i = 0; i < sizeof STAGES / sizeof *STAGES; i++)
    assert_int_equal(vulkan_splits_apart(model, STAGES[i], 0), 2);
  assert_int_equal(vulkan_splits_apart(model, DFLASH_STAGE_HEAD_LOGITS, 0), 1);
  vulkan_model_close(model);
  assert_int_equal(compare(&drawn, DFLASH_PROFILE_F16, 3), 6 + 1);
  drawn_model_close(&drawn);
}

/* By sizes alone. */
static void test_choice(void **state) {
  (void)state;
  VulkanLayer layer = {.attn_kernel = {.storage = DFLASH_STORAGE_F16, .pieces = 4}};
  DflashModel model = {.options = {.join = true}, .layers = &layer, .geometry = {.hidden = 5120}};
  model.device.traits = (VulkanTraits){.max_threads = 1024, .shared_bytes = 16384, .max_storage_buffers = 16};
  assert_true(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_NORM, 0));
  assert_false(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_OUT, 0));
  assert_false(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_CONV_IN, 0)); /* q is on tiles */
  model.device.traits.max_storage_buffers = 7;
  assert_false(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_NORM, 0));
  model.device.traits.max_storage_buffers = 16;
  model.geometry.hidden = 6 * 1024 + 2; /* one turn more than shared memory has room for */
  assert_int_equal(vulkan_maker(&model, DFLASH_STAGE_ATTN_NORM, 0).kernel, VULKAN_KERNEL_ENTER);
  model.device.traits.shared_bytes = 32768;
  assert_int_equal(vulkan_maker(&model, DFLASH_STAGE_ATTN_NORM, 0).kernel, VULKAN_KERNEL_ENTER_FRAGMENTS);
  model.geometry.hidden = 7 * 1024 + 2;
  assert_false(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_NORM, 0));
  model.geometry.hidden = 5120;
  model.options.join = false;
  assert_false(vulkan_stage_is_prepared(&model, DFLASH_STAGE_ATTN_NORM, 0));
}

int main(void) {
  memcpy(__wrap_vulkan_modules, __real_vulkan_modules, sizeof __wrap_vulkan_modules);
  vulkan_units_emulate("emulated", __wrap_vulkan_modules);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_form),         cmocka_unit_test(test_fields),
      cmocka_unit_test(test_storages_in_turn), cmocka_unit_test(test_what_does_not_fit_is_prepared_apart),
      cmocka_unit_test(test_splits),           cmocka_unit_test(test_choice)};
  return cmocka_run_group_tests_name("joined", tests, NULL, NULL);
}
