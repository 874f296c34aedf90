#include "fixture.h"

#include "base/random.h"
#include "dflash/stages.h"
#include "schedule.h"

enum { STEPS = 64, BUFFERS = 3 };

static const VulkanPipeline act = {.kernel = VULKAN_KERNEL_ACT}; /* reads 0 and 1, writes 2 */
static const VulkanPipeline out = {.kernel = VULKAN_KERNEL_OUT}; /* reads 1 to 4, writes 0 and 5 */

static VkBuffer buffer(uintptr_t number) { return (VkBuffer)number; }

static VulkanRange range(uintptr_t number, uint64_t offset, uint64_t bytes) {
  return (VulkanRange){buffer(number), offset, bytes};
}

static void add_act(VulkanSteps *steps, VulkanRange a, VulkanRange b, VulkanRange y, int32_t stage, int32_t layer) {
  const VulkanRange ranges[] = {a, b, y};
  const ActPush push = {1};
  vulkan_steps_dispatch(steps, &(VulkanDispatch){&act, ranges, &push, {1, 1, 1}, stage, layer});
}

static void a_list_keeps_what_was_added(void **state) {
  (void)state;
  VulkanSteps steps = {0};
  for (uint32_t i = 0; i < 3 * STEPS; i++) vulkan_steps_fill(&steps, range(1, 16 * i, 16), i);
  add_act(&steps, range(1, 0, 16), range(1, 16, 16), range(2, 0, 16), DFLASH_STAGE_MLP_ACT, 4);
  assert_false(steps.failed);
  assert_int_equal(steps.count, 3 * STEPS + 1);
  for (uint32_t i = 0; i < 3 * STEPS; i++) {
    assert_int_equal(steps.at[i].kind, VULKAN_FILL);
    assert_int_equal(steps.at[i].ranges[0].offset, 16 * i);
    assert_int_equal(steps.at[i].push[0], i);
    assert_int_equal(steps.at[i].stage, DFLASH_STAGE_NONE);
  }
  const VulkanStep *last = &steps.at[3 * STEPS];
  assert_int_equal(last->stage, DFLASH_STAGE_MLP_ACT);
  assert_int_equal(last->layer, 4);
  assert_int_equal(last->push[0], 1);
  assert_true(last->ranges[2].buffer == buffer(2));
  vulkan_steps_close(&steps);
  assert_null(steps.at);
}

static void independent_steps_need_none(void **state) {
  (void)state;
  VulkanSteps steps = {0};
  VulkanBarrier before[4];
  const VulkanRange x = range(1, 0, 64);
  add_act(&steps, x, x, range(2, 0, 64), 0, 0);
  add_act(&steps, x, x, range(2, 64, 64), 0, 0); /* touches the one before without overlap */
  add_act(&steps, x, x, range(3, 0, 64), 0, 0);
  vulkan_steps_copy(&steps, x, range(2, 128, 64));
  assert_int_equal(vulkan_barriers_plan(&steps, before), 0);
  for (int i = 0; i < 4; i++) assert_int_equal(before[i].from_stages, 0);
  vulkan_steps_close(&steps);
}

/* Each kind of hazard, by one byte of overlap. */
static void hazards_need_one(void **state) {
  (void)state;
  const VulkanRange read = range(1, 0, 65), write = range(2, 0, 65), other = range(3, 0, 64);
  const VulkanRange cases[][2] = {{range(2, 64, 64), other},             /* read after write */
                                  {other, range(1, 64, 64)},             /* write after read */
                                  {other, range(2, 64, 64)},             /* write after write */
                                  {range(2, 65, 64), range(1, 65, 64)}}; /* none */
  for (int i = 0; i < 4; i++) {
    VulkanSteps steps = {0};
    VulkanBarrier before[2];
    add_act(&steps, read, read, write, 0, 0);
    vulkan_steps_copy(&steps, cases[i][0], cases[i][1]);
    assert_int_equal(vulkan_barriers_plan(&steps, before), i < 3);
    assert_int_equal(before[0].from_stages, 0);
    assert_int_equal(before[1].from_stages, i < 3 ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0);
    assert_int_equal(before[1].to_stages, i < 3 ? VK_PIPELINE_STAGE_TRANSFER_BIT : 0);
    assert_int_equal(before[1].from_access, i < 3 ? VK_ACCESS_SHADER_WRITE_BIT : 0);
    assert_int_equal(before[1].to_access, i < 3 ? VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT : 0);
    vulkan_steps_close(&steps);
  }
}

/* A barrier covers all that waits before it and all that follows up to the next. */
static void barriers_take_whole_segments(void **state) {
  (void)state;
  VulkanSteps steps = {0};
  VulkanBarrier before[5];
  const VulkanRange a = range(1, 0, 64), b = range(1, 64, 64), c = range(1, 128, 64);
  vulkan_steps_fill(&steps, a, 0);
  add_act(&steps, b, b, c, 0, 0);
  vulkan_steps_copy(&steps, a, range(2, 0, 64));
  add_act(&steps, c, c, range(2, 64, 64), 0, 0);
  vulkan_steps_copy(&steps, range(2, 64, 64), b);
  assert_int_equal(vulkan_barriers_plan(&steps, before), 2);
  assert_int_equal(before[2].from_stages, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT);
  assert_int_equal(before[2].to_stages, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT);
  assert_int_equal(before[4].to_stages, VK_PIPELINE_STAGE_TRANSFER_BIT);
  vulkan_steps_close(&steps);
}

/* What a step touches, said anew: the test shares no code with the planning. */
typedef struct Access {
  VulkanRange range;
  bool writes;
} Access;

static int accesses(const VulkanStep *step, Access *at) {
  if (step->kind == VULKAN_FILL) {
    at[0] = (Access){step->ranges[0], true};
    return 1;
  }
  if (step->kind == VULKAN_COPY) {
    at[0] = (Access){step->ranges[0], false};
    at[1] = (Access){step->ranges[1], true};
    return 2;
  }
  const bool in_place = step->pipeline == &out;
  const int count = in_place ? 6 : 3;
  for (int i = 0; i < count; i++) at[i] = (Access){step->ranges[i], in_place ? i == 0 || i == 5 : i == 2};
  return count;
}

static bool same_bytes(const VulkanRange *a, const VulkanRange *b) {
  for (uint64_t i = a->offset; i < a->offset + a->bytes; i++)
    if (a->buffer == b->buffer && i >= b->offset && i < b->offset + b->bytes) return true;
  return false;
}

static bool must_wait(const VulkanStep *earlier, const VulkanStep *later) {
  Access a[6], b[6];
  const int a_count = accesses(earlier, a), b_count = accesses(later, b);
  for (int i = 0; i < a_count; i++)
    for (int j = 0; j < b_count; j++)
      if ((a[i].writes || b[j].writes) && same_bytes(&a[i].range, &b[j].range)) return true;
  return false;
}

static bool on_shader(const VulkanStep *step) { return step->kind == VULKAN_DISPATCH; }

/* Follows the chain of barriers from an earlier step to a later one, one of them left out. */
static bool waits(const VulkanSteps *steps, const VulkanBarrier *before, uint32_t from, uint32_t to, uint32_t without) {
  const VkAccessFlags written = on_shader(&steps->at[from]) ? VK_ACCESS_SHADER_WRITE_BIT : VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags reached =
      on_shader(&steps->at[from]) ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkAccessFlags visible = 0;
  VkPipelineStageFlags ordered = 0;
  bool available = false;
  for (uint32_t i = from + 1; i <= to; i++) {
    if (i == without || !(before[i].from_stages & reached)) continue;
    available = available || before[i].from_access & written;
    reached |= before[i].to_stages;
    ordered |= before[i].to_stages;
    if (available) visible |= before[i].to_access;
  }
  const bool shader = on_shader(&steps->at[to]);
  const VkAccessFlags write = shader ? VK_ACCESS_SHADER_WRITE_BIT : VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkAccessFlags read = shader ? VK_ACCESS_SHADER_READ_BIT : VK_ACCESS_TRANSFER_READ_BIT;
  const VkAccessFlags needed = steps->at[to].kind == VULKAN_FILL ? write : write | read;
  return ordered & (shader ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT) &&
         (visible & needed) == needed;
}

static bool all_wait(const VulkanSteps *steps, const VulkanBarrier *before, uint32_t without) {
  for (uint32_t j = 0; j < steps->count; j++)
    for (uint32_t i = 0; i < j; i++)
      if (must_wait(&steps->at[i], &steps->at[j]) && !waits(steps, before, i, j, without)) return false;
  return true;
}

typedef struct Draw {
  DflashRandom random;
  uint64_t at;
} Draw;

static uint32_t draw(Draw *d, uint32_t bound) { return dflash_random_below(d->random, d->at++, bound); }

static VulkanRange draw_range(Draw *d) {
  const uint32_t number = 1 + draw(d, BUFFERS), offset = draw(d, 60);
  return range(number, offset, 1 + draw(d, 8));
}

static void draw_steps(Draw *d, VulkanSteps *steps) {
  const OutPush push = {0};
  const uint32_t count = 1 + draw(d, STEPS / 2);
  for (uint32_t i = 0; i < count; i++) {
    VulkanRange ranges[6];
    for (int j = 0; j < 6; j++) ranges[j] = draw_range(d);
    const uint32_t kind = draw(d, 4);
    if (kind == 0) vulkan_steps_fill(steps, ranges[0], 0);
    if (kind == 1) vulkan_steps_copy(steps, ranges[0], ranges[1]);
    if (kind == 2) add_act(steps, ranges[0], ranges[1], ranges[2], 0, 0);
    if (kind == 3) vulkan_steps_dispatch(steps, &(VulkanDispatch){&out, ranges, &push, {1, 1, 1}, 0, 0});
  }
}

static void drawn_lists_wait_and_for_nothing_more(void **state) {
  (void)state;
  Draw d = {.random = dflash_random_stream(1, "barriers")};
  uint32_t all = 0;
  for (int round = 0; round < 200; round++) {
    VulkanSteps steps = {0};
    VulkanBarrier before[STEPS];
    uint32_t found = 0;
    draw_steps(&d, &steps);
    const uint32_t count = vulkan_barriers_plan(&steps, before);
    assert_true(all_wait(&steps, before, UINT32_MAX));
    for (uint32_t i = 0; i < steps.count; i++) {
      if (!before[i].from_stages) continue;
      found++;
      assert_false(all_wait(&steps, before, i));
    }
    assert_int_equal(found, count);
    all += count;
    vulkan_steps_close(&steps);
  }
  assert_true(all > 500);
}

static void check_spans(const VulkanSteps *steps, const char *after, const int32_t (*marks)[2], uint32_t spans) {
  bool stamp_after[STEPS];
  int32_t found[STEPS + 1][2];
  assert_int_equal(vulkan_stamps_plan(steps, stamp_after, found), spans);
  for (uint32_t i = 0; i < steps->count; i++) assert_int_equal(stamp_after[i], after[i] == '|');
  for (uint32_t i = 0; i < spans; i++) assert_memory_equal(found[i], marks[i], sizeof found[i]);
}

static void stamps_part_stages_and_layers(void **state) {
  (void)state;
  enum { NONE = DFLASH_STAGE_NONE, NORM = DFLASH_STAGE_ATTN_NORM, MIX = DFLASH_STAGE_ATTN_MIX };
  const VulkanRange x = range(1, 0, 4);
  VulkanSteps steps = {0};
  check_spans(&steps, "", (const int32_t[][2]){{NONE, 0}}, 1);
  vulkan_steps_copy(&steps, x, x);
  add_act(&steps, x, x, x, NONE, 0);
  check_spans(&steps, "..", (const int32_t[][2]){{NONE, 0}}, 1);
  add_act(&steps, x, x, x, NORM, 0);
  add_act(&steps, x, x, x, NONE, 0); /* between two of a kind: inside */
  add_act(&steps, x, x, x, NORM, 0);
  vulkan_steps_copy(&steps, x, x);   /* after the span's last dispatch: not in it */
  add_act(&steps, x, x, x, NONE, 9); /* of the stage that follows, whatever its layer */
  add_act(&steps, x, x, x, MIX, 0);
  add_act(&steps, x, x, x, MIX, 1); /* another layer */
  add_act(&steps, x, x, x, NORM, 1);
  add_act(&steps, x, x, x, NONE, 0);
  vulkan_steps_copy(&steps, x, x);
  check_spans(&steps, "....|..||...", (const int32_t[][2]){{NORM, 0}, {MIX, 0}, {MIX, 1}, {NORM, 1}}, 4);
  vulkan_steps_close(&steps);
}

static void ticks_wrap_at_the_valid_bits(void **state) {
  (void)state;
  VulkanTraits traits = {.timestamp_bits = 64, .timestamp_ns = 1};
  assert_int_equal(vulkan_ticks_ns(&traits, 5, 12), 7);
  assert_int_equal(vulkan_ticks_ns(&traits, UINT64_MAX - 1, 3), 5);
  traits = (VulkanTraits){.timestamp_bits = 36, .timestamp_ns = 2.5};
  assert_int_equal(vulkan_ticks_ns(&traits, (UINT64_C(1) << 36) - 4, 6), 25);
  /* bits above the valid ones say nothing */
  assert_int_equal(vulkan_ticks_ns(&traits, UINT64_C(7) << 36 | 1, UINT64_C(3) << 36 | 2), 3);
  traits = (VulkanTraits){.timestamp_bits = 32, .timestamp_ns = 1e3 / 19.2};
  assert_int_equal(vulkan_ticks_ns(&traits, 0, 192000), 10000000);
}

/* Stamps that are 32 ticks apart, or a multiple of that. */
static void a_step_divides_all_times(void **state) {
  (void)state;
  const VulkanTraits traits = {.timestamp_bits = 36, .timestamp_ns = 1};
  const uint64_t first = (UINT64_C(1) << 36) - 64;
  assert_int_equal(vulkan_ticks_step(&traits, 0, first, first), 0);
  assert_int_equal(vulkan_ticks_step(&traits, 0, first, 32), 96);
  assert_int_equal(vulkan_ticks_step(&traits, 96, first, 96), 32);
  assert_int_equal(vulkan_ticks_step(&traits, 32, first, first), 32);
  assert_int_equal(vulkan_ticks_step(&traits, 32, first, 97), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_list_keeps_what_was_added),
      cmocka_unit_test(independent_steps_need_none),
      cmocka_unit_test(hazards_need_one),
      cmocka_unit_test(barriers_take_whole_segments),
      cmocka_unit_test(drawn_lists_wait_and_for_nothing_more),
      cmocka_unit_test(stamps_part_stages_and_layers),
      cmocka_unit_test(ticks_wrap_at_the_valid_bits),
      cmocka_unit_test(a_step_divides_all_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
