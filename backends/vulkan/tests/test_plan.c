#include "fixture.h"

#include <math.h>
#include <string.h>

#include "dflash/stages.h"
#include "plan.h"

enum { WORDS = 4096, BYTES = 4 * WORDS, PIECES = 4 };

static VulkanDevice device;

/* Pieces of BYTES in device memory, and one that the host reads. */
typedef struct Fixture {
  VulkanBuffer memory, host;
  VulkanPipelines pipelines;
  VulkanSteps steps;
  VulkanPlan plan;
} Fixture;

static void open_fixture(Fixture *f) {
  DflashError error = {0};
  *f = (Fixture){0};
  test_ok(vulkan_buffer_open(&device, VULKAN_ON_DEVICE, PIECES * BYTES, "test", &f->memory, &error), &error);
  test_ok(vulkan_buffer_open(&device, VULKAN_READBACK, BYTES, "test", &f->host, &error), &error);
}

static void close_fixture(Fixture *f) {
  vulkan_plan_close(&device, &f->plan);
  vulkan_steps_close(&f->steps);
  vulkan_pipelines_close(&device, &f->pipelines);
  vulkan_buffer_close(&device, &f->host);
  vulkan_buffer_close(&device, &f->memory);
}

static VulkanRange piece(const Fixture *f, uint32_t number) {
  return vulkan_buffer_range(&f->memory, (uint64_t)number * BYTES, BYTES);
}

static VulkanRange host(const Fixture *f) { return vulkan_buffer_range(&f->host, 0, BYTES); }

static void open_plan(Fixture *f, bool stamped) {
  DflashError error = {0};
  test_ok(vulkan_plan_open(&device, &f->steps, stamped, 0, &f->plan, &error), &error);
}

static void run_plan(Fixture *f) {
  DflashError error = {0};
  test_ok(vulkan_plan_run(&device, &f->plan, &error), &error);
  test_ok(vulkan_buffer_invalidate(&device, &f->host, &error), &error);
}

static void host_holds(const Fixture *f, uint32_t word) {
  const uint32_t *words = f->host.mapped;
  for (int i = 0; i < WORDS; i++) assert_int_equal(words[i], word);
}

/* Fills piece 0 and hands it on, piece by piece, to the host. */
static void add_chain(Fixture *f, uint32_t word) {
  vulkan_steps_fill(&f->steps, piece(f, 0), word);
  for (uint32_t i = 0; i + 1 < PIECES; i++) vulkan_steps_copy(&f->steps, piece(f, i), piece(f, i + 1));
  vulkan_steps_copy(&f->steps, piece(f, PIECES - 1), host(f));
}

static void a_chain_arrives_each_time(void **state) {
  (void)state;
  Fixture f;
  open_fixture(&f);
  add_chain(&f, 0x600df00d);
  open_plan(&f, false);
  assert_int_equal(f.plan.barriers, PIECES);
  assert_int_equal(f.plan.dispatches, 0);
  for (int i = 0; i < 3; i++) {
    memset(f.host.mapped, 0, BYTES);
    DflashError error = {0};
    test_ok(vulkan_buffer_flush(&device, &f.host, &error), &error);
    run_plan(&f);
    host_holds(&f, 0x600df00d);
  }
  close_fixture(&f);
}

static void an_empty_plan_runs(void **state) {
  (void)state;
  Fixture f;
  open_fixture(&f);
  open_plan(&f, true);
  run_plan(&f);
  assert_int_equal(f.plan.barriers, 0);
  close_fixture(&f);
}

/* What one plan wrote, the next one reads. */
static void plans_follow_each_other(void **state) {
  (void)state;
  Fixture f;
  DflashError error = {0};
  open_fixture(&f);
  vulkan_steps_copy(&f.steps, piece(&f, 0), host(&f));
  VulkanSteps fill = {0};
  vulkan_steps_fill(&fill, piece(&f, 0), 77);
  VulkanPlan first;
  test_ok(vulkan_plan_open(&device, &fill, false, 0, &first, &error), &error);
  open_plan(&f, false);
  test_ok(vulkan_plan_run(&device, &first, &error), &error);
  run_plan(&f);
  host_holds(&f, 77);
  vulkan_plan_close(&device, &first);
  vulkan_steps_close(&fill);
  close_fixture(&f);
}

/* y = silu(gate) * up, pieces of f32. */
static void add_act(Fixture *f, uint32_t gate, uint32_t up, uint32_t y, int32_t stage, int32_t layer) {
  DflashError error = {0};
  const VulkanRange ranges[] = {piece(f, gate), piece(f, up), piece(f, y)};
  const ActPush push = {WORDS};
  VulkanDispatch dispatch = {.ranges = ranges, .push = &push, .groups = {WORDS / 256, 1, 1}};
  dispatch.stage = stage;
  dispatch.layer = layer;
  test_ok(vulkan_pipeline_get(&device, &f->pipelines, VULKAN_KERNEL_ACT, NULL, 0, &dispatch.pipeline, &error), &error);
  vulkan_steps_dispatch(&f->steps, &dispatch);
}

static uint32_t bits(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

/* Three layers of three stages each, fills and captures between them. */
static void add_stages(Fixture *f) {
  vulkan_steps_fill(&f->steps, piece(f, 0), bits(1));
  for (int32_t layer = 0; layer < 3; layer++) {
    add_act(f, 0, 0, 1, DFLASH_STAGE_MLP_GATE, layer);
    add_act(f, 0, 0, 2, DFLASH_STAGE_MLP_UP, layer);
    add_act(f, 1, 2, 3, DFLASH_STAGE_MLP_ACT, layer);
    vulkan_steps_copy(&f->steps, piece(f, 3), host(f));
  }
}

static void host_holds_act(const Fixture *f) {
  const double inner = 1 / (1 + exp(-1)), expected = inner / (1 + exp(-inner)) * inner;
  const float *values = f->host.mapped;
  for (int i = 0; i < WORDS; i++) assert_true(fabs(values[i] - expected) < 1e-6);
}

static void dispatches_wait_for_what_they_read(void **state) {
  (void)state;
  Fixture f;
  open_fixture(&f);
  add_stages(&f);
  open_plan(&f, false);
  assert_int_equal(f.pipelines.count, 1);
  assert_int_equal(f.plan.dispatches, 9);
  /* after the fill, before each ACT, before each copy: GATE and UP of the next layer overwrite what ACT read, and the
   * barrier before the copy parts them already */
  assert_int_equal(f.plan.barriers, 1 + 3 + 3);
  for (int i = 0; i < 2; i++) {
    run_plan(&f);
    host_holds_act(&f);
  }
  close_fixture(&f);
}

static void spans_follow_the_stages(void **state) {
  (void)state;
  Fixture f;
  DflashError error = {0};
  VulkanSpan spans[10];
  uint32_t count = 0;
  uint64_t ns = 0, ticks = 0;
  if (device.traits.timestamp_bits == 0) skip();
  open_fixture(&f);
  add_stages(&f);
  open_plan(&f, true);
  for (int run = 0; run < 2; run++) {
    run_plan(&f);
    test_ok(vulkan_plan_time(&device, &f.plan, &ns, &error), &error);
    test_ok(vulkan_plan_spans(&device, &f.plan, spans, 10, &count, &error), &error);
    assert_int_equal(count, 9);
    for (uint32_t i = 0; i < count; i++) {
      const int32_t stages[] = {DFLASH_STAGE_MLP_GATE, DFLASH_STAGE_MLP_UP, DFLASH_STAGE_MLP_ACT};
      assert_int_equal(spans[i].stage, stages[i % 3]);
      assert_int_equal(spans[i].layer, i / 3);
      assert_int_equal(spans[i].begin_ns, i ? spans[i - 1].end_ns : 0);
      assert_true(spans[i].end_ns >= spans[i].begin_ns);
    }
    assert_int_equal(spans[8].end_ns, ns);
    assert_true(ns > 0);
    test_ok(vulkan_plan_step(&device, &f.plan, &ticks, &error), &error);
    assert_true(ticks > 0 && (double)ticks * device.traits.timestamp_ns <= (double)ns + 1);
  }
  spans[2].layer = -5;
  test_ok(vulkan_plan_spans(&device, &f.plan, spans, 2, &count, &error), &error);
  assert_int_equal(count, 9);
  assert_int_equal(spans[2].layer, -5);
  close_fixture(&f);
}

static void a_plan_without_inner_stamps_has_no_spans(void **state) {
  (void)state;
  Fixture f;
  DflashError error = {0};
  uint32_t count = 1;
  uint64_t ns = 0;
  if (device.traits.timestamp_bits == 0) skip();
  open_fixture(&f);
  add_stages(&f);
  open_plan(&f, false);
  run_plan(&f);
  assert_int_equal(f.plan.stamps, 2);
  test_ok(vulkan_plan_time(&device, &f.plan, &ns, &error), &error);
  assert_true(ns > 0);
  test_ok(vulkan_plan_spans(&device, &f.plan, NULL, 0, &count, &error), &error);
  assert_int_equal(count, 0);
  close_fixture(&f);
}

static void a_queue_without_stamps_says_so(void **state) {
  (void)state;
  Fixture f;
  DflashError error = {0};
  uint32_t count;
  uint64_t ns;
  const uint32_t valid = device.traits.timestamp_bits;
  open_fixture(&f);
  add_chain(&f, 5);
  device.traits.timestamp_bits = 0;
  open_plan(&f, true);
  run_plan(&f);
  host_holds(&f, 5);
  assert_int_equal(f.plan.stamps, 0);
  assert_int_equal(vulkan_plan_time(&device, &f.plan, &ns, &error), DFLASH_UNSUPPORTED);
  assert_int_equal(vulkan_plan_step(&device, &f.plan, &ns, &error), DFLASH_UNSUPPORTED);
  assert_int_equal(vulkan_plan_spans(&device, &f.plan, NULL, 0, &count, &error), DFLASH_UNSUPPORTED);
  device.traits.timestamp_bits = valid;
  close_fixture(&f);
}

static void refused(Fixture *f, DflashStatus status, const char *part) {
  DflashError error = {0};
  assert_int_equal(vulkan_plan_open(&device, &f->steps, false, 0, &f->plan, &error), status);
  assert_int_equal(error.status, status);
  if (!strstr(error.message, part)) fail_msg("'%s' lacks '%s'", error.message, part);
  assert_null(f->plan.commands);
}

static void steps_beyond_limits_are_refused(void **state) {
  (void)state;
  Fixture f;
  open_fixture(&f);
  add_act(&f, 0, 1, 2, DFLASH_STAGE_MLP_ACT, 0);
  VulkanStep *step = f.steps.at;
  const VulkanStep good = *step;
  for (int i = 0; i < 3; i++) {
    step->groups[i] = device.traits.max_groups[i] + 1;
    if (step->groups[i] != 0) refused(&f, DFLASH_UNSUPPORTED, "act");
    step->groups[i] = 0;
    refused(&f, DFLASH_INTERNAL, "act");
    *step = good;
  }
  step->ranges[1].bytes = device.traits.max_binding + 1;
  refused(&f, DFLASH_UNSUPPORTED, "binding 1");
  step->ranges[1].bytes = 0;
  refused(&f, DFLASH_INTERNAL, "binding 1");
  *step = good;
  step->ranges[2].offset += 1;
  refused(&f, DFLASH_INTERNAL, "binding 2");
  *step = good;
  step->ranges[2].buffer = VK_NULL_HANDLE;
  refused(&f, DFLASH_INTERNAL, "nothing");
  *step = good;
  f.steps.failed = true;
  refused(&f, DFLASH_OUT_OF_MEMORY, "steps");
  f.steps.failed = false;
  vulkan_steps_copy(&f.steps, piece(&f, 0), vulkan_buffer_range(&f.memory, 0, BYTES - 4));
  refused(&f, DFLASH_INTERNAL, "copy");
  f.steps.count--;
  vulkan_steps_fill(&f.steps, vulkan_buffer_range(&f.memory, 0, BYTES - 1), 0);
  refused(&f, DFLASH_INTERNAL, "fill");
  close_fixture(&f);
}

static void pipelines_are_made_once(void **state) {
  (void)state;
  VulkanPipelines pipelines = {0};
  const VulkanPipeline *a, *b, *c;
  DflashError error = {0};
  const uint32_t constants[VULKAN_MAX_CONSTANTS + 1] = {1, 2, 3, 4, 5};
  test_ok(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_ACT, NULL, 0, &a, &error), &error);
  test_ok(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_NORM, NULL, 0, &b, &error), &error);
  test_ok(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_ACT, NULL, 0, &c, &error), &error);
  assert_ptr_equal(a, c);
  assert_ptr_not_equal(a, b);
  assert_true(a->layout == b->layout); /* as many bindings */
  for (uint32_t i = 0; i < 40; i++) {
    test_ok(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_ROTATION, &i, 1, &b, &error), &error);
    assert_int_equal(pipelines.count, 3 + i);
    assert_int_equal(b->constants[0], i);
  }
  test_ok(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_ACT, NULL, 0, &c, &error), &error);
  assert_ptr_equal(a, c);
  assert_int_equal(vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_COUNT, NULL, 0, &a, &error), DFLASH_INTERNAL);
  assert_int_equal(
      vulkan_pipeline_get(&device, &pipelines, VULKAN_KERNEL_ACT, constants, VULKAN_MAX_CONSTANTS + 1, &a, &error),
      DFLASH_INTERNAL);
  vulkan_pipelines_close(&device, &pipelines);
  assert_int_equal(pipelines.count, 0);
}

/* A device of its own: what validation says stays with it. */
static bool noticed(uint32_t skip_barrier, bool dispatches) {
  DflashError error = {0};
  const VulkanDevice shared = device;
  Fixture f;
  test_device_open(&device);
  open_fixture(&f);
  dispatches ? add_stages(&f) : add_chain(&f, 1);
  test_ok(vulkan_plan_open(&device, &f.steps, false, skip_barrier, &f.plan, &error), &error);
  const DflashStatus status = vulkan_plan_run(&device, &f.plan, &error);
  const bool found = status == DFLASH_INTERNAL && strstr(error.message, "SYNC-HAZARD");
  assert_true(found || status == DFLASH_OK);
  close_fixture(&f);
  vulkan_device_close(&device);
  device = shared;
  return found;
}

static void each_barrier_left_out_is_noticed(void **state) {
  (void)state;
  assert_false(noticed(0, false));
  assert_true(noticed(1, false));
  assert_true(noticed(PIECES, false));
  assert_false(noticed(0, true));
  for (uint32_t i = 1; i <= 7; i++) assert_true(noticed(i, true));
}

/* Everything that a plan does, from its pipelines on; the first failure ends it. */
static DflashStatus whole_life(Fixture *f, DflashError *error) {
  const VulkanRange ranges[] = {piece(f, 0), piece(f, 0), piece(f, 1)};
  const ActPush push = {WORDS};
  VulkanDispatch dispatch = {.ranges = ranges, .push = &push, .groups = {WORDS / 256, 1, 1}};
  VulkanSpan spans[4];
  uint32_t count;
  uint64_t ns;
  DflashStatus status =
      vulkan_pipeline_get(&device, &f->pipelines, VULKAN_KERNEL_ACT, NULL, 0, &dispatch.pipeline, error);
  if (status) return status;
  vulkan_steps_fill(&f->steps, piece(f, 0), bits(1));
  vulkan_steps_dispatch(&f->steps, &dispatch);
  vulkan_steps_copy(&f->steps, piece(f, 1), host(f));
  status = vulkan_plan_open(&device, &f->steps, true, 0, &f->plan, error);
  if (!status) status = vulkan_plan_run(&device, &f->plan, error);
  if (!status && f->plan.stamps) status = vulkan_plan_time(&device, &f->plan, &ns, error);
  if (!status && f->plan.stamps) status = vulkan_plan_spans(&device, &f->plan, spans, 4, &count, error);
  return status;
}

/* Fails the n-th call of a plan's life; false when it has no n-th. */
static bool fails_cleanly(uint64_t n, VkResult result, DflashStatus expected) {
  Fixture f;
  DflashError error = {0};
  open_fixture(&f);
  device.api.fault = (VulkanFault){.at = n, .result = result};
  const DflashStatus status = whole_life(&f, &error);
  const bool due = device.api.fault.calls >= n;
  device.api.fault = (VulkanFault){0};
  device.lost = false;
  assert_int_equal(status, due ? expected : DFLASH_OK);
  assert_int_equal(error.status, status);
  assert_true(!due || strstr(error.message, "vulkan: "));
  /* the same plan, when there is one, runs again */
  if (f.plan.commands) run_plan(&f);
  close_fixture(&f);
  return due;
}

static void every_call_can_fail(void **state) {
  (void)state;
  uint64_t n = 1;
  while (fails_cleanly(n, VK_ERROR_OUT_OF_DEVICE_MEMORY, DFLASH_OUT_OF_MEMORY)) n++;
  assert_true(n > 16);
  for (uint64_t i = 1; i < n; i++) {
    assert_true(fails_cleanly(i, VK_ERROR_DEVICE_LOST, DFLASH_DEVICE_LOST));
    assert_true(fails_cleanly(i, VK_TIMEOUT, DFLASH_TIMED_OUT));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_arrives_each_time),
      cmocka_unit_test(an_empty_plan_runs),
      cmocka_unit_test(plans_follow_each_other),
      cmocka_unit_test(dispatches_wait_for_what_they_read),
      cmocka_unit_test(spans_follow_the_stages),
      cmocka_unit_test(a_plan_without_inner_stamps_has_no_spans),
      cmocka_unit_test(a_queue_without_stamps_says_so),
      cmocka_unit_test(steps_beyond_limits_are_refused),
      cmocka_unit_test(pipelines_are_made_once),
      cmocka_unit_test(each_barrier_left_out_is_noticed),
      cmocka_unit_test(every_call_can_fail),
  };
  test_device_open(&device);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_device_close(&device) ? failed : 1;
}
