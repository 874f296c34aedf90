/* Every call of the API fails in turn over the life of a block: one clear error, a context that is what it was, nothing
 * for the validation layers to say, and the same call done again does what it should. */
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "drawn_model.h"
#include "fixture.h"

enum { HIDDEN = 16, ROWS = 3, DRAFTS = ROWS - 1, TOP = 3, BEFORE = 5, LATER = 70, END = BEFORE + LATER, TAPS = HIDDEN };

static const DrawnPlan PLAN = {.hidden = HIDDEN,
                               .intermediate = 32,
                               .layers = 1,
                               .heads = 2,
                               .kv_heads = 1,
                               .head_dim = 8,
                               .vocab = 61,
                               .block = ROWS,
                               .conv_group = 8,
                               .conv_kernel = 2,
                               .rank = 4,
                               .top = TOP,
                               .taps = TAPS / HIDDEN,
                               .window = 0,
                               .storage = DFLASH_STORAGE_F32};

const DflashBackend *dflash_backend(void);
void __real_vulkan_device_close(VulkanDevice *device);
void __wrap_vulkan_device_close(VulkanDevice *device);

static DrawnModel drawn;
static VulkanMessages spoken; /* by the device that was closed last */
static uint64_t calls;        /* that it saw */

/* What is said of objects that are still there comes when the device is closed. */
void __wrap_vulkan_device_close(VulkanDevice *device) {
  __real_vulkan_device_close(device);
  spoken = device->messages;
  calls = device->api.fault.calls;
}

/* ---- a life, step by step ---- */

typedef struct Life {
  uint32_t flags; /* of the sequence */
  char fail[48];
  DflashModel *model;
  DflashSequence *s;
  int32_t chosen[2][DRAFTS], candidates[2][DRAFTS * TOP];
  float out[ROWS * HIDDEN];
} Life;

static DflashStatus open_model(Life *life, DflashError *error) {
  const DflashOption options[] = {{"validation", "on"}, {"fail", life->fail}};
  const DflashModelDesc desc = drawn_desc(&drawn, DFLASH_PROFILE_EXACT, options, 2);
  return dflash_backend()->model_open(&desc, &life->model, error);
}

static DflashStatus open_sequence(Life *life, DflashError *error) {
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = life->flags};
  return dflash_backend()->sequence_open(life->model, &desc, &life->s, error);
}

static DflashStatus push(Life *life, int64_t pos, int64_t rows, DflashError *error) {
  float taps[LATER * TAPS];
  drawn_taps(&drawn, pos, rows, 1, taps);
  return dflash_backend()->push(life->s, pos, taps, rows, error);
}

static DflashStatus push_first(Life *life, DflashError *error) { return push(life, 0, BEFORE, error); }
static DflashStatus push_later(Life *life, DflashError *error) { return push(life, BEFORE, LATER, error); }

static DflashStatus block(Life *life, int index, int64_t anchor, DflashError *error) {
  float h[ROWS * HIDDEN];
  int32_t plain[DRAFTS];
  DflashTokens tokens = {.struct_size = sizeof tokens,
                         .chosen = life->chosen[index],
                         .plain = plain,
                         .candidates = life->candidates[index]};
  for (int i = 0; i < ROWS * HIDDEN; i++) h[i] = test_draw((DflashRandom){2, (uint64_t)index}, (uint64_t)i);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = anchor,
                                .anchor_token = 1,
                                .rows = ROWS,
                                .n_draft = DRAFTS,
                                .head_width = PLAN.vocab,
                                .h = h,
                                .tokens = &tokens};
  return dflash_backend()->block(life->s, &call, error);
}

static DflashStatus block_first(Life *life, DflashError *error) { return block(life, 0, BEFORE, error); }
static DflashStatus block_later(Life *life, DflashError *error) { return block(life, 1, END, error); }

static DflashStatus read_stage(Life *life, DflashError *error) {
  if (!(life->flags & DFLASH_SEQUENCE_CAPTURE)) return DFLASH_OK;
  return dflash_backend()->read_stage(life->s, DFLASH_STAGE_MLP_OUT, 0, life->out, ROWS * HIDDEN, error);
}

static void close_life(Life *life) {
  dflash_backend()->sequence_close(life->s);
  dflash_backend()->model_close(life->model);
  life->s = NULL;
  life->model = NULL;
}

static const struct {
  DflashStatus (*take)(Life *life, DflashError *error);
  int64_t len; /* held before it; -1: no sequence yet */
} steps[] = {{open_model, -1},     {open_sequence, -1},  {push_first, 0},    {block_first, BEFORE},
             {read_stage, BEFORE}, {push_later, BEFORE}, {block_later, END}, {read_stage, END}};

enum { STEPS = sizeof steps / sizeof steps[0] };

/* ---- what must hold ---- */

typedef struct Kind {
  const char *name;
  DflashStatus status;
} Kind;

static const Kind MEMORY = {"memory", DFLASH_OUT_OF_MEMORY}, LOST = {"lost", DFLASH_DEVICE_LOST},
                  TIMEOUT = {"timeout", DFLASH_TIMED_OUT};

static void assert_one_line(const Life *life, const DflashError *error) {
  if (strncmp(error->message, "vulkan: ", 8) != 0 || strchr(error->message, '\n'))
    fail_msg("fail=%s: not one clear line: %s", life->fail, error->message);
}

static void assert_len(const Life *life, int64_t expected) {
  int64_t first, len, kept;
  if (expected < 0) return;
  assert_int_equal(dflash_backend()->span(life->s, 0, &first, &len, &kept, NULL), DFLASH_OK);
  if (len != expected) fail_msg("fail=%s: %d rows are held, not %d", life->fail, (int)len, (int)expected);
}

static void assert_silent(const Life *life) {
  if (spoken.count > 0) fail_msg("fail=%s: %s", life->fail, spoken.first);
}

/* A step that failed: its error, the context, and what comes of trying again. */
static DflashStatus assert_failure(Life *life, int step, const Kind *kind, DflashStatus status,
                                   const DflashError *error) {
  DflashError again = {0};
  if (status != kind->status || error->status != status)
    fail_msg("fail=%s: step %d: status %d, %s", life->fail, step, (int)status, error->message);
  assert_one_line(life, error);
  if (status != DFLASH_DEVICE_LOST) assert_len(life, steps[step].len);
  if (step == 0) return status; /* the fault is one of every model that is opened with it */
  const DflashStatus second = steps[step].take(life, &again);
  if (second != DFLASH_OK && (kind == &MEMORY || second != DFLASH_DEVICE_LOST))
    fail_msg("fail=%s: step %d again: status %d, %s", life->fail, step, (int)second, again.message);
  if (second != DFLASH_OK) assert_one_line(life, &again);
  return second;
}

/* The n-th call fails, 0: none; true when the whole life was lived. */
static bool live(Life *life, uint64_t n, const Kind *kind) {
  DflashStatus status = DFLASH_OK;
  bool failed = false;
  snprintf(life->fail, sizeof life->fail, "%llu:%s", (unsigned long long)n, kind->name);
  for (int step = 0; step < STEPS && status == DFLASH_OK; step++) {
    DflashError error = {0};
    status = steps[step].take(life, &error);
    if (status == DFLASH_OK) continue;
    if (failed && kind != &MEMORY) break; /* a device that is lost stays so */
    if (failed) fail_msg("fail=%s: step %d fails too: %s", life->fail, step, error.message);
    failed = true;
    status = assert_failure(life, step, kind, status, &error);
  }
  close_life(life);
  assert_silent(life);
  if (failed != (n > 0)) fail_msg("fail=%s: %s", life->fail, failed ? "something else failed" : "nobody noticed");
  return status == DFLASH_OK;
}

/* Every `stride`-th call of a life; the lives that go on end as the one without a fault. */
static void fail_calls(uint32_t flags, const Kind *kind, uint64_t stride) {
  Life clean = {.flags = flags};
  assert_true(live(&clean, 0, kind));
  const uint64_t all = calls;
  assert_true(all > 100);
  for (uint64_t n = 1; n <= all; n += stride) {
    Life life = {.flags = flags};
    if (!live(&life, n, kind)) continue;
    assert_memory_equal(life.chosen, clean.chosen, sizeof clean.chosen);
    assert_memory_equal(life.candidates, clean.candidates, sizeof clean.candidates);
    assert_memory_equal(life.out, clean.out, sizeof clean.out);
  }
  Life after = {.flags = flags};
  assert_true(live(&after, 0, kind));
  assert_memory_equal(after.chosen, clean.chosen, sizeof clean.chosen);
}

static void test_memory_calls(void **state) {
  (void)state;
  fail_calls(DFLASH_SEQUENCE_CAPTURE, &MEMORY, 1);
}

/* Rows wait, and are projected by the block. */
static void test_memory_waiting(void **state) {
  (void)state;
  fail_calls(0, &MEMORY, 3);
}

static void test_lost(void **state) {
  (void)state;
  fail_calls(DFLASH_SEQUENCE_CAPTURE, &LOST, 3);
}

static void test_timeout(void **state) {
  (void)state;
  fail_calls(0, &TIMEOUT, 3);
}

int main(void) {
  VulkanDevice device;
  test_device_open(&device);
  if (!test_device_close(&device)) return 1;
  drawn_model_open(&drawn, &PLAN, 31);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_calls), cmocka_unit_test(test_memory_waiting),
                                     cmocka_unit_test(test_lost), cmocka_unit_test(test_timeout)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  drawn_model_close(&drawn);
  return failed;
}
