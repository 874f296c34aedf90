/* Calls of the blas backend: what it says of itself, what it refuses, clocks and measurements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "blas_fixture.h"
#include "blas_naive.h"

static const ModelPlan PLAN = {"calls", 64, 96, 2, 2, 1, 16, 101, 6, 8, 2, 8, 4, 2, 9, DFLASH_STORAGE_Q4TP};

typedef struct Bench {
  const DflashBackend *blas;
  TestModel test;
  DflashModel *model;
  DflashSequence *sequence;
  float h[6 * 64], taps[128];
  BlockOutput output;
} Bench;

static void open_bench(Bench *b, const char *const *options, uint32_t flags) {
  *b = (Bench){.blas = load_blas()};
  draw_model(&b->test, &PLAN, 2);
  b->model = open_model(b->blas, &b->test, options);
  b->sequence = open_sequence(b->blas, b->model, flags);
  draw_floats(b->h, 6 * 64, 3);
  draw_floats(b->taps, 128, 4);
  open_output(&b->output, &b->test.geometry);
}

static void close_bench(Bench *b) {
  b->blas->sequence_close(b->sequence);
  b->blas->model_close(b->model);
  close_output(&b->output);
  free_model(&b->test);
}

static DflashBlockCall good_call(Bench *b) { return block_call(&b->test.geometry, 7, 6, b->h, &b->output); }

static void entry_is_whole(void **state) {
  (void)state;
  const DflashBackend *blas = load_blas();
  DflashDevice device = {.struct_size = sizeof device};
  uint32_t count = 0;
  assert_int_equal(blas->struct_size, sizeof *blas);
  assert_int_equal(blas->abi, DFLASH_BACKEND_ABI);
  assert_string_equal(blas->name, "blas");
  assert_int_equal(blas->devices(&device, 1, &count, NULL), DFLASH_OK);
  assert_int_equal(count, 1);
  assert_int_equal(device.struct_size, sizeof device);
  assert_int_equal(device.is_cpu, 1);
  assert_string_equal(device.id, "cpu");
  assert_non_null(strstr(device.driver, "OpenBLAS"));
  assert_int_equal(blas->devices(NULL, 0, &count, NULL), DFLASH_OK);
  blas->model_close(NULL);
  blas->sequence_close(NULL);
}

/* A struct of an older header is shorter: nothing is written past it. */
static void shorter_structs(void **state) {
  (void)state;
  Bench b;
  open_bench(&b, NULL, 0);
  struct {
    DflashModelInfo info;
  } given;
  memset(&given, 0x5a, sizeof given);
  given.info.struct_size = offsetof(DflashModelInfo, resident_bytes);
  assert_int_equal(b.blas->model_info(b.model, &given.info, NULL), DFLASH_OK);
  assert_int_equal(given.info.repeatable, 1);
  assert_int_equal(given.info.resident_bytes, 0x5a5a5a5a5a5a5a5a);
  close_bench(&b);
}

static DflashStatus support(const TestModel *test, const char *key, const char *value, DflashError *error) {
  const DflashOption option = {key, value};
  const DflashModelDesc desc = {
      .struct_size = sizeof desc, .geometry = &test->geometry, .options = &option, .option_count = key ? 1 : 0};
  return load_blas()->supports(&desc, error);
}

static void options_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *key, *value;
    DflashStatus status;
  } CASES[] = {
      {NULL, NULL, DFLASH_OK},
      {"threads", "1", DFLASH_OK},
      {"threads", "0", DFLASH_INVALID_ARGUMENT},
      {"threads", "-2", DFLASH_INVALID_ARGUMENT},
      {"threads", "2x", DFLASH_INVALID_ARGUMENT},
      {"threads", "99999999999", DFLASH_INVALID_ARGUMENT},
      {"form", "f32", DFLASH_OK},
      {"form", "stored", DFLASH_OK},
      {"form", "auto", DFLASH_OK},
      {"form", "f16", DFLASH_INVALID_ARGUMENT},
      {"form", "", DFLASH_INVALID_ARGUMENT},
      {"memory", "50%", DFLASH_OK},
      {"memory", "0.5", DFLASH_OK},
      {"memory", "1000000000", DFLASH_OK},
      {"memory", "1000", DFLASH_OUT_OF_MEMORY},
      {"memory", "-1", DFLASH_INVALID_ARGUMENT},
      {"memory", "lots", DFLASH_INVALID_ARGUMENT},
      {"keep", "all", DFLASH_OK},
      {"keep", "window", DFLASH_OK},
      {"keep", "none", DFLASH_INVALID_ARGUMENT},
      {"kernel", "plain", DFLASH_OK},
      {"kernel", "sse9", DFLASH_INVALID_ARGUMENT},
      {"colour", "blue", DFLASH_INVALID_ARGUMENT},
  };
  TestModel test;
  draw_model(&test, &PLAN, 2);
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    DflashError error = {0};
    const DflashStatus status = support(&test, CASES[i].key, CASES[i].value, &error);
    if (status != CASES[i].status)
      fail_msg("%s=%s gives %d: %s", CASES[i].key, CASES[i].value, (int)status, error.message);
    if (status == DFLASH_INVALID_ARGUMENT && CASES[i].key) assert_non_null(strstr(error.message, CASES[i].key));
  }
  DflashError error;
  support(&test, "colour", "blue", &error);
  assert_non_null(strstr(error.message, "threads"));
  free_model(&test);
}

static void models_are_refused(void **state) {
  (void)state;
  const DflashBackend *blas = load_blas();
  DflashModel *model = (DflashModel *)1;
  DflashError error;
  TestModel test;
  draw_model(&test, &PLAN, 2);
  DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = &test.geometry, .weights = &test.weights};
  desc.profile = DFLASH_PROFILE_I8;
  assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_UNSUPPORTED);
  assert_null(model);
  desc.profile = DFLASH_PROFILE_EXACT;
  desc.device = "gpu0";
  assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_UNAVAILABLE);
  desc.device = "cpu";
  desc.weights = NULL;
  assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
  desc.weights = &test.weights;
  DflashTensor *const broken[] = {&test.layers[1].up_proj, &test.weights.predecessor, &test.layers[0].q_norm};
  for (int i = 0; i < 3; i++) {
    const DflashTensor kept = *broken[i];
    broken[i]->shape[0]++;
    assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
    *broken[i] = kept;
    broken[i]->bytes--;
    assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
    *broken[i] = kept;
    broken[i]->storage = 7;
    assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
    *broken[i] = kept;
    broken[i]->data = NULL;
    assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
    *broken[i] = kept;
    assert_null(model);
  }
  test.weights.predecessor.storage = DFLASH_STORAGE_Q8_2F; /* long enough as such, yet no codebook */
  assert_int_equal(blas->model_open(&desc, &model, &error), DFLASH_INVALID_ARGUMENT);
  free_model(&test);
}

/* Without a head a model opens and its stages run; a block and the logits are refused. */
static void model_without_a_head(void **state) {
  (void)state;
  const DflashBackend *blas = load_blas();
  TestModel test;
  float h[6 * 64], out[6 * 64];
  BlockOutput output;
  draw_model(&test, &PLAN, 2);
  test.weights.head.data = NULL;
  DflashModel *model = open_model(blas, &test, NULL);
  DflashSequence *s = open_sequence(blas, model, 0);
  open_output(&output, &test.geometry);
  draw_floats(h, 6 * 64, 1);
  const DflashBlockCall call = block_call(&test.geometry, 3, 6, h, &output);
  assert_int_equal(blas->block(s, &call, NULL), DFLASH_INVALID_ARGUMENT);
  DflashStageCall stage = {.struct_size = sizeof stage,
                           .stage = DFLASH_STAGE_HEAD_LOGITS,
                           .rows = 6,
                           .n_draft = 5,
                           .head_width = 101,
                           .inputs = {h},
                           .output = output.logits};
  assert_int_equal(blas->stage(s, &stage, NULL), DFLASH_INVALID_ARGUMENT);
  stage.stage = DFLASH_STAGE_ATTN_NORM;
  stage.output = out;
  assert_int_equal(blas->stage(s, &stage, NULL), DFLASH_OK);
  close_output(&output);
  blas->sequence_close(s);
  blas->model_close(model);
  free_model(&test);
}

static void blocks_are_checked(void **state) {
  (void)state;
  Bench b;
  open_bench(&b, NULL, DFLASH_SEQUENCE_CAPTURE);
  float value[6 * 64];
  DflashBlockTime time = {.struct_size = sizeof time};
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_ATTN_NORM, 0, value, 6 * 64, NULL),
                   DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->block_time(b.sequence, &time, NULL), DFLASH_INVALID_ARGUMENT);
  static const struct {
    size_t member;
    int64_t bad[2];
  } FIELDS[] = {
      {offsetof(DflashBlockCall, rows), {1, 7}},
      {offsetof(DflashBlockCall, n_draft), {0, 6}},
      {offsetof(DflashBlockCall, head_width), {3, 102}},
      {offsetof(DflashBlockCall, anchor_pos), {-1, INT64_MAX}},
      {offsetof(DflashBlockCall, anchor_token), {-1, 101}},
  };
  for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
    for (int k = 0; k < 2; k++) {
      DflashBlockCall call = good_call(&b);
      memcpy((char *)&call + FIELDS[i].member, &FIELDS[i].bad[k], sizeof(int64_t));
      assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
    }
  DflashBlockCall call = good_call(&b);
  call.h = NULL;
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good_call(&b);
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_OK);
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_ATTN_NORM, 0, value, 6 * 64, NULL), DFLASH_OK);
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_ATTN_NORM, 0, value, 6 * 64 - 1, NULL),
                   DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_ATTN_NORM, 2, value, 6 * 64, NULL),
                   DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_COUNT, 0, value, 6 * 64, NULL), DFLASH_INVALID_ARGUMENT);
  close_bench(&b);
}

static void context_calls_are_checked(void **state) {
  (void)state;
  Bench b;
  float k[16], v[16];
  int64_t first, len, kept;
  open_bench(&b, NULL, 0);
  assert_int_equal(b.blas->push(b.sequence, -1, b.taps, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->push(b.sequence, 0, b.taps, -1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->push(b.sequence, 0, NULL, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->push(b.sequence, INT64_MAX, b.taps, 1, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->push(b.sequence, 3, b.taps, 1, NULL), DFLASH_OK);
  assert_int_equal(b.blas->push(b.sequence, 4, NULL, 0, NULL), DFLASH_OK);
  assert_int_equal(b.blas->span(b.sequence, 2, &first, &len, &kept, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->span(b.sequence, 1, &first, &len, &kept, NULL), DFLASH_OK);
  assert_int_equal(first, 3);
  assert_int_equal(len, 1);
  assert_int_equal(b.blas->read_context(b.sequence, 0, 2, 1, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->read_context(b.sequence, 0, 3, 2, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->read_context(b.sequence, 0, INT64_MAX, 1, k, v, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->load(b.sequence, 0, 1, NULL, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->load(b.sequence, -1, 0, NULL, NULL, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(b.blas->span(b.sequence, 1, &first, &len, &kept, NULL), DFLASH_OK);
  assert_int_equal(first + len, 4);
  assert_int_equal(b.blas->load(b.sequence, 0, 0, NULL, NULL, NULL), DFLASH_OK);
  close_bench(&b);
}

/* A row that does not fit in memory is refused, and the context stays. */
static void memory_that_is_not_there(void **state) {
  (void)state;
  Bench b;
  int64_t first, len, kept;
  open_bench(&b, NULL, 0);
  assert_int_equal(b.blas->push(b.sequence, 3, b.taps, 1, NULL), DFLASH_OK);
  assert_int_equal(b.blas->push(b.sequence, 4, b.taps, INT64_MAX / 64, NULL), DFLASH_OUT_OF_MEMORY);
  assert_int_equal(b.blas->span(b.sequence, 1, &first, &len, &kept, NULL), DFLASH_OK);
  assert_int_equal(first, 3);
  assert_int_equal(len, 1);
  DflashBlockCall call = good_call(&b);
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_OK);
  close_bench(&b);
}

static void stages_are_checked(void **state) {
  (void)state;
  Bench b;
  open_bench(&b, NULL, 0);
  float out[6 * 64];
  const DflashStageCall good = {
      .struct_size = sizeof good, .stage = DFLASH_STAGE_ATTN_NORM, .rows = 6, .inputs = {b.h}, .output = out};
  DflashStageCall call = good;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_OK);
  call.rows = 7;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good, call.layer = 2;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good, call.position = -1;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good, call.inputs[0] = NULL;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good, call.output = NULL;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  call = good, call.stage = DFLASH_STAGE_COUNT;
  assert_int_equal(b.blas->stage(b.sequence, &call, NULL), DFLASH_INVALID_ARGUMENT);
  close_bench(&b);
}

/* NaN from an embedding reaches the logits: an error, with the stages still there to be read. */
static void nan_in_a_block(void **state) {
  (void)state;
  Bench b;
  float value[6 * 64];
  open_bench(&b, NULL, DFLASH_SEQUENCE_CAPTURE);
  b.h[70] = NAN;
  DflashBlockCall call = good_call(&b);
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_NONFINITE);
  assert_int_equal(b.blas->read_stage(b.sequence, DFLASH_STAGE_ATTN_NORM, 0, value, 6 * 64, NULL), DFLASH_OK);
  assert_false(isnan(value[0]));
  assert_true(isnan(value[64]));
  b.h[70] = 0;
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_OK);
  close_bench(&b);
}

static void spans_and_time(void **state) {
  (void)state;
  Bench b;
  DflashSpan spans[256];
  uint32_t count;
  open_bench(&b, NULL, 0);
  DflashBlockCall call = good_call(&b);
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_OK);
  assert_int_equal(b.blas->block_spans(b.sequence, spans, 256, &count, NULL), DFLASH_OK);
  assert_int_equal(count, 0);
  call.flags = DFLASH_BLOCK_STAMP;
  assert_int_equal(b.blas->push(b.sequence, 0, b.taps, 1, NULL), DFLASH_OK);
  assert_int_equal(b.blas->block(b.sequence, &call, NULL), DFLASH_OK);
  assert_int_equal(b.blas->block_spans(b.sequence, spans, 256, &count, NULL), DFLASH_OK);
  const uint32_t layered = DFLASH_STAGE_MLP_OUT - DFLASH_STAGE_ATTN_NORM + 1;
  assert_int_equal(count, 2 * layered + DFLASH_STAGE_COUNT - DFLASH_STAGE_FINAL_NORM);
  DflashBlockTime time = {.struct_size = sizeof time};
  assert_int_equal(b.blas->block_time(b.sequence, &time, NULL), DFLASH_OK);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(spans[i].begin_ns == (i ? spans[i - 1].end_ns : 0) && spans[i].end_ns >= spans[i].begin_ns);
    assert_int_equal(spans[i].layer, i < 2 * layered ? i / layered : 0);
  }
  assert_int_equal(time.clock, DFLASH_CLOCK_HOST);
  assert_true(time.device_ns >= spans[count - 1].end_ns);
  assert_true(time.resolution_ns >= 1 && time.resolution_ns < 100000);
  assert_true(time.context_ns > 0);
  close_bench(&b);
}

static void stage_info_of_every_stage(void **state) {
  (void)state;
  Bench b;
  DflashStageInfo info = {.struct_size = sizeof info};
  open_bench(&b, (const char *const[]){"form", "f32", NULL}, 0);
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const int64_t layer = naive_is_layered(stage) ? 1 : 0;
    assert_int_equal(b.blas->stage_info(b.model, stage, layer, 6, &info, NULL), DFLASH_OK);
    assert_int_equal(info.covered_by, stage);
    assert_true(info.materialised && info.alone && info.path[0]);
    const DflashTensor *matrix = naive_matrix(&b.test, stage, layer);
    if (matrix) /* rows are held in sixteens */
      assert_int_equal(info.weight_bytes, (matrix->shape[0] + 15) / 16 * 16 * matrix->shape[1] * 4);
    assert_int_equal(b.blas->stage_info(b.model, stage, layer + 1, 6, &info, NULL), DFLASH_INVALID_ARGUMENT);
  }
  assert_int_equal(b.blas->stage_info(b.model, -1, 0, 6, &info, NULL), DFLASH_INVALID_ARGUMENT);
  close_bench(&b);
}

static void measurements(void **state) {
  (void)state;
  Bench b;
  double rate = 0;
  uint64_t ns = 0;
  DflashDeviceState now = {.struct_size = sizeof now};
  open_bench(&b, NULL, 0);
  assert_int_equal(b.blas->measure_read(b.model, &rate, NULL), DFLASH_OK);
  assert_true(rate > 1e8 && rate < 1e13);
  assert_int_equal(b.blas->measure_matrix(b.model, &rate, NULL), DFLASH_OK);
  assert_true(rate > 1e8 && rate < 1e15);
  assert_int_equal(b.blas->evict_caches(b.model, NULL), DFLASH_OK);
  assert_int_equal(b.blas->device_state(b.model, &now, NULL), DFLASH_OK);
  for (int32_t stage = -1; stage <= DFLASH_STAGE_COUNT; stage++) {
    const int matrix = stage >= 0 && stage < DFLASH_STAGE_COUNT && naive_matrix(&b.test, stage, 0);
    assert_int_equal(b.blas->library_time(b.model, stage, 0, 6, &ns, NULL), matrix ? DFLASH_OK : DFLASH_UNSUPPORTED);
    if (matrix) assert_true(ns > 0);
  }
  assert_int_equal(b.blas->library_time(b.model, DFLASH_STAGE_MLP_UP, 0, 0, &ns, NULL), DFLASH_INVALID_ARGUMENT);
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entry_is_whole),
      cmocka_unit_test(shorter_structs),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(models_are_refused),
      cmocka_unit_test(model_without_a_head),
      cmocka_unit_test(blocks_are_checked),
      cmocka_unit_test(context_calls_are_checked),
      cmocka_unit_test(memory_that_is_not_there),
      cmocka_unit_test(stages_are_checked),
      cmocka_unit_test(nan_in_a_block),
      cmocka_unit_test(spans_and_time),
      cmocka_unit_test(stage_info_of_every_stage),
      cmocka_unit_test(measurements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
