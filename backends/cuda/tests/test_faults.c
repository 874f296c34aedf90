/* Every call of the driver fails, one run after the other: each failure is told, and nothing stays open. */
#include "scene.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Every one of them takes minutes where memory is checked. */
#if defined(__SANITIZE_ADDRESS__)
enum { STEP = 7 };
#else
enum { STEP = 1 };
#endif

static Scene scene;

/* One stage alone, on inputs of zeros. */
static DflashStatus run_alone(DflashSequence *s, DflashError *error) {
  const DflashGeometry *g = scene.g;
  const int64_t most = scene.c.sizes.rows * (g->heads * g->head_dim + g->intermediate + g->hidden);
  float *zeros = calloc((size_t)most, sizeof *zeros), *output = calloc((size_t)most, sizeof *output);
  assert_true(zeros && output);
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_ATTN_MIX,
                                .rows = scene.c.sizes.rows,
                                .position = 2,
                                .context_len = 2,
                                .inputs = {zeros, zeros, zeros, zeros, zeros},
                                .output = output};
  const DflashStatus status = cuda_backend.stage(s, &call, error);
  free(zeros);
  free(output);
  return status;
}

static DflashStatus load_rows(DflashSequence *s, DflashError *error) {
  const size_t count = (size_t)(3 * scene.g->kv_heads * scene.g->head_dim);
  float *rows = calloc(count, sizeof *rows);
  const float *all[256];
  assert_true(rows && scene.g->layers <= 256);
  for (int64_t layer = 0; layer < scene.g->layers; layer++) all[layer] = rows;
  const DflashStatus status = cuda_backend.load(s, 0, 3, all, all, error);
  free(rows);
  return status;
}

/* Kernels do nothing here: what a block answers is no answer. */
static DflashStatus run_block(DflashSequence *s, uint32_t flags, DflashError *error) {
  Answer answer;
  const DflashStatus status = scene_block(&scene, s, 5, flags, &answer, error);
  free(answer.logits);
  return status == DFLASH_NONFINITE ? DFLASH_OK : status;
}

static DflashStatus read_back(DflashSequence *s, DflashError *error) {
  DflashBlockTime time = {.struct_size = sizeof time};
  uint32_t count;
  const int64_t hidden = scene.c.sizes.rows * scene.g->hidden, kv = 5 * scene.g->kv_heads * scene.g->head_dim;
  float *values = calloc((size_t)(hidden + 2 * kv), sizeof *values);
  assert_non_null(values);
  DflashStatus status = cuda_backend.block_time(s, &time, error);
  if (!status) status = cuda_backend.block_spans(s, NULL, 0, &count, error);
  if (!status) status = cuda_backend.read_stage(s, DFLASH_STAGE_ATTN_OUT, 0, values, (uint64_t)hidden, error);
  if (!status) status = cuda_backend.read_context(s, 0, 0, 5, values, values + kv, error);
  free(values);
  return status;
}

static DflashStatus use_sequence(DflashModel *model, uint32_t flags, DflashError *error) {
  DflashSequence *s = NULL;
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags, .reserve_rows = 3};
  DflashStatus status = cuda_backend.sequence_open(model, &desc, &s, error);
  if (!status) status = scene_push(&scene, s, 0, 5, error);
  if (!status) status = run_block(s, 0, error);
  if (!status) status = run_block(s, DFLASH_BLOCK_STAMP, error);
  if (!status && flags) status = read_back(s, error);
  if (!status) status = scene_push(&scene, s, 5, 300, error);
  if (!status) status = run_alone(s, error);
  if (!status) status = load_rows(s, error);
  if (!status) status = cuda_backend.poison(s, 0x7fc00001, error);
  cuda_backend.sequence_close(s);
  return status;
}

static DflashStatus use_model(DflashModel *model, DflashError *error) {
  double rate;
  DflashStatus status = use_sequence(model, DFLASH_SEQUENCE_CAPTURE, error);
  if (!status) status = use_sequence(model, 0, error);
  if (!status) status = cuda_backend.measure_read(model, &rate, error);
  if (!status) status = cuda_backend.measure_matrix(model, &rate, error);
  if (!status) status = cuda_backend.evict_caches(model, error);
  return status;
}

static DflashStatus live(DflashError *error) {
  DflashDevice device = {.struct_size = sizeof device};
  uint32_t count;
  const DflashModelDesc desc = scene_desc(&scene);
  DflashModel *model = NULL;
  DflashStatus status = cuda_backend.devices(&device, 1, &count, error);
  if (!status) status = cuda_backend.supports(&desc, error);
  if (!status) status = cuda_backend.model_open(&desc, &model, error);
  if (!status) status = use_model(model, error);
  cuda_backend.model_close(model);
  return status;
}

/* A device may lack a PCI address, asked for three times; what is closed is closed, whatever its three entries of the
 * context say, and its wait for copies, unless a device was lost then: the next call tells. */
static void fail_all(int32_t with, DflashStatus expected) {
  uint64_t n = 1, forgiven = 0;
  DflashStatus status = DFLASH_OK;
  driver->skips_kernels = 1;
  for (bool failed = true; failed; n += STEP) {
    DflashError error = {0};
    driver->calls = 0;
    driver->fail_at = n;
    driver->fail_with = with;
    status = live(&error);
    failed = driver->calls >= n;
    driver->fail_at = 0;
    nothing_open();
    if (status == DFLASH_OK && failed) forgiven++;
    if (status == DFLASH_OK) continue;
    assert_int_equal(error.status, status);
    assert_memory_equal(error.message, "cuda: ", 6);
    if (status != expected && status != DFLASH_UNAVAILABLE)
      fail_msg("call %d: status %d: %s", (int)n, (int)status, error.message);
  }
  driver->skips_kernels = 0;
  assert_true(n > 300);
  if (STEP == 1) assert_int_equal(forgiven, expected == DFLASH_DEVICE_LOST ? 6 : 7);
}

static void test_memory(void **state) {
  (void)state;
  fail_all(CUDA_ERROR_OUT_OF_MEMORY, DFLASH_OUT_OF_MEMORY);
}

/* It stays lost until everything is closed; then a fresh one is there. */
static void test_lost(void **state) {
  (void)state;
  fail_all(CUDA_ERROR_ILLEGAL_ADDRESS, DFLASH_DEVICE_LOST);
}

/* A kernel that reads where nothing is: one clear error, then every call says that the device is lost. */
static void test_crash(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModel *model = scene_model(&scene, NULL);
  DflashSequence *s = scene_sequence(model, 0, 0);
  must(scene_push(&scene, s, 0, 5, &error), &error);
  driver->crash_at = driver->kernels + 30;
  assert_int_equal(run_block(s, 0, &error), DFLASH_DEVICE_LOST);
  driver->crash_at = 0;
  assert_int_equal(run_block(s, 0, &error), DFLASH_DEVICE_LOST);
  assert_non_null(strstr(error.message, "lost in an earlier call"));
  cuda_backend.sequence_close(s);
  cuda_backend.model_close(model);
  nothing_open();
  driver->skips_kernels = 1;
  must(live(&error), &error);
  driver->skips_kernels = 0;
}

/* Whether opening a model fails at one of its calls with this result, and with this status and text. */
static bool opening_says(int32_t with, DflashStatus expected, const char *text) {
  const DflashModelDesc desc = scene_desc(&scene);
  bool said = false;
  for (uint64_t n = 1; !said && n < 100; n++) {
    DflashModel *model = NULL;
    DflashError error = {0};
    driver->calls = 0;
    driver->fail_at = n;
    driver->fail_with = with;
    const DflashStatus status = cuda_backend.model_open(&desc, &model, &error);
    driver->fail_at = 0;
    said = status == expected && strstr(error.message, text);
    cuda_backend.model_close(model);
    nothing_open();
  }
  return said;
}

/* No code for the device, or not all of it. */
static void test_no_image(void **state) {
  (void)state;
  assert_true(opening_says(CUDA_ERROR_NO_BINARY_FOR_GPU, DFLASH_UNSUPPORTED, "cuda: loading the plain kernels: "));
  assert_true(opening_says(CUDA_ERROR_NOT_FOUND, DFLASH_INTERNAL, "cuda: no module has the kernel dflash_norm"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_lost),
                                     cmocka_unit_test(test_crash), cmocka_unit_test(test_no_image)};
  scene_open(&scene, "operations.h5");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scene_close(&scene);
  return failed;
}
