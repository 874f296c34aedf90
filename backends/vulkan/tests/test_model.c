/* What can be opened, and what is refused with which words. */
#include <stdio.h>
#include <string.h>

#include "contexts.h"
#include "limits.h"

static DflashModelDesc desc_of(const DrawnModel *drawn) { return drawn_desc(drawn, DFLASH_PROFILE_EXACT, NULL, 0); }

static void assert_refused(DflashStatus got, const DflashError *error, DflashStatus expected,
                           const char *const *words) {
  assert_int_equal(got, expected);
  assert_int_equal(error->status, expected);
  for (; *words; words++)
    if (!strstr(error->message, *words)) fail_msg("'%s' is not in: %s", *words, error->message);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_profiles(void **state) {
  (void)state;
  DflashModelDesc desc = desc_of(&contexts.drawn);
  static const int32_t offered[] = {DFLASH_PROFILE_EXACT, DFLASH_PROFILE_I8, DFLASH_PROFILE_F16};
  for (int i = 0; i < 3; i++)
    for (int known = 0; known < 2; known++) {
      desc.profile = offered[i];
      desc.weights = known ? &contexts.drawn.weights : NULL;
      DflashError error = {0};
      test_ok(vulkan_supports(&desc, &error), &error);
    }
  DflashError error = {0};
  desc.profile = DFLASH_PROFILE_BF16;
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_UNSUPPORTED, WORDS("bf16", "exact"));
  desc.profile = 17;
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("17"));
}

/* i8 is no other than exact where no matrix is q4tp. */
static void test_i8_alone(void **state) {
  (void)state;
  static DrawnModel drawn;
  const DrawnPlan plan = {.hidden = 8,
                          .intermediate = 8,
                          .layers = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .head_dim = 4,
                          .vocab = 9,
                          .block = 2,
                          .conv_group = 4,
                          .conv_kernel = 1,
                          .rank = 3,
                          .top = 2,
                          .taps = 1,
                          .storage = DFLASH_STORAGE_F16};
  DflashError error = {0};
  drawn_model_open(&drawn, &plan, 1);
  const DflashModelDesc desc = drawn_desc(&drawn, DFLASH_PROFILE_I8, NULL, 0);
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_UNSUPPORTED, WORDS("i8", "q4tp"));
  drawn_model_close(&drawn);
}

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    const char *name, *value, *limit;
    size_t offset;
    int64_t size;
  } cases[] = {
      {"head_dim", "258", "256", offsetof(DflashGeometry, head_dim), 258},
      {"selector_top", "257", "256", offsetof(DflashGeometry, selector_top), 257},
      {"block", "4097", "4096", offsetof(DflashGeometry, block), 4097},
      {"vocab", "2147483648", "2147483647", offsetof(DflashGeometry, vocab), 1LL << 31},
      {"intermediate", "bytes", "binding", offsetof(DflashGeometry, intermediate), 1LL << 40},
      {"heads", "bytes", "binding", offsetof(DflashGeometry, heads), 1LL << 40},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    DflashGeometry g = contexts.drawn.geometry;
    DflashError error = {0};
    memcpy((char *)&g + cases[i].offset, &cases[i].size, sizeof cases[i].size);
    const DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = &g};
    assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_UNSUPPORTED,
                   WORDS(cases[i].name, cases[i].value, cases[i].limit));
  }
}

/* A device with lower limits. */
static void test_limits(void **state) {
  (void)state;
  const DflashModelDesc desc = desc_of(&contexts.drawn);
  const VulkanTraits *real = &contexts.model->device.traits;
  VulkanOptions options = {0};
  VulkanTraits traits = *real;
  DflashError error = {0};
  test_ok(vulkan_check_device(&desc, &options, &traits, &error), &error);
  traits.max_binding = 4 * 32 * 4 - 1; /* of block * hidden */
  assert_refused(vulkan_check_device(&desc, &options, &traits, &error), &error, DFLASH_UNSUPPORTED,
                 WORDS("block * hidden", "512", "511"));
  traits = *real;
  traits.max_groups[1] = 3;
  assert_refused(vulkan_check_device(&desc, &options, &traits, &error), &error, DFLASH_UNSUPPORTED,
                 WORDS("rows", "4", "3"));
  traits = *real;
  traits.memory_bytes = 50000;
  assert_refused(vulkan_check_device(&desc, &options, &traits, &error), &error, DFLASH_UNSUPPORTED,
                 WORDS("weights", "scratch", "50000"));
  traits = *real;
  traits.integer_dot = false;
  test_ok(vulkan_check_device(&desc, &options, &traits, &error), &error);
  options.dot_required = true;
  assert_refused(vulkan_check_device(&desc, &options, &traits, &error), &error, DFLASH_UNSUPPORTED, WORDS("dot"));
}

static void test_description(void **state) {
  (void)state;
  DflashModelDesc desc = desc_of(&contexts.drawn);
  DflashModel *model = contexts.model;
  DflashError error = {0};
  desc.weights = NULL;
  assert_refused(vulkan_model_open(&desc, &model, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("weights"));
  assert_null(model);
  desc.device = "no such device";
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_UNAVAILABLE, WORDS("no such device"));
  desc.geometry = NULL;
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("geometry"));
  desc.struct_size = offsetof(DflashModelDesc, options);
  assert_refused(vulkan_supports(&desc, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("struct_size"));
  assert_refused(vulkan_supports(NULL, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("not given"));
  vulkan_model_close(NULL);
}

/* A tensor that is not what the geometry asks for is named. */
static void test_tensors(void **state) {
  (void)state;
  DflashWeights weights = contexts.drawn.weights;
  DflashLayerWeights layers[LAYERS];
  DflashModelDesc desc = desc_of(&contexts.drawn);
  DflashModel *model;
  DflashError error = {0};
  memcpy(layers, weights.layers, sizeof layers);
  weights.layers = layers;
  desc.weights = &weights;
  layers[1].k_proj.shape[0]++;
  assert_refused(vulkan_model_open(&desc, &model, &error), &error, DFLASH_INVALID_ARGUMENT,
                 WORDS("k_proj of layer 1", "10 x 32"));
  layers[1].k_proj.shape[0]--;
  layers[2].q_norm.storage = DFLASH_STORAGE_F16;
  assert_refused(vulkan_model_open(&desc, &model, &error), &error, DFLASH_INVALID_ARGUMENT,
                 WORDS("q_norm of layer 2", "storage 1"));
  layers[2].q_norm.storage = DFLASH_STORAGE_F32;
  layers[0].mlp_conv_base.data = NULL;
  assert_refused(vulkan_model_open(&desc, &model, &error), &error, DFLASH_INVALID_ARGUMENT,
                 WORDS("mlp_conv base_kernel of layer 0", "no data"));
  layers[0].mlp_conv_base.data = contexts.drawn.layers[0].mlp_conv_base.data;
  weights.fc.bytes--;
  assert_refused(vulkan_model_open(&desc, &model, &error), &error, DFLASH_INVALID_ARGUMENT, WORDS("fc", "bytes"));
  assert_null(model);
}

/* Opened without a head; what is held is what was given. */
static void test_opened(void **state) {
  (void)state;
  DflashWeights weights = contexts.drawn.weights;
  DflashModelDesc desc = desc_of(&contexts.drawn);
  DflashModel *model;
  DflashError error = {0};
  weights.head = (DflashTensor){0};
  desc.weights = &weights;
  test_ok(vulkan_model_open(&desc, &model, &error), &error);
  assert_int_equal(model->head.rows, 0);
  assert_int_equal(model->fc.rows, HIDDEN);
  assert_int_equal(model->fc.cols, TAPS);
  float got[KV], *inv_freq = contexts.drawn.inv_freq;
  test_ok(vulkan_download(&model->device, model->inv_freq, got, KV / 2 * sizeof *got, &error), &error);
  assert_memory_equal(got, inv_freq, KV / 2 * sizeof *got);
  for (int layer = 0; layer < LAYERS; layer++) {
    test_ok(vulkan_download(&model->device, model->layers[layer].k_norm, got, sizeof got, &error), &error);
    assert_memory_equal(got, contexts.drawn.layers[layer].k_norm.data, sizeof got);
  }
  vulkan_model_close(model);
}

/* A call of the API that fails while the model is opened: an error, nothing left behind, whichever call it is. */
static void test_failures(void **state) {
  (void)state;
  DflashModel *model = NULL;
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  int n = 0;
  while (status) {
    char text[32];
    DflashError error = {0};
    snprintf(text, sizeof text, "%d:memory", ++n);
    const DflashOption options[] = {{"fail", text}};
    const DflashModelDesc desc = drawn_desc(&contexts.drawn, DFLASH_PROFILE_EXACT, options, 1);
    status = vulkan_model_open(&desc, &model, &error);
    if (status == DFLASH_OK) break;
    assert_null(model);
    assert_int_equal(error.status, status);
    assert_true(status == DFLASH_OUT_OF_MEMORY || status == DFLASH_UNAVAILABLE);
    assert_true(strncmp(error.message, "vulkan: ", 8) == 0);
  }
  assert_true(n > 10);
  vulkan_model_close(model);
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles),    cmocka_unit_test(test_i8_alone),
                                     cmocka_unit_test(test_sizes),       cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_description), cmocka_unit_test(test_tensors),
                                     cmocka_unit_test(test_opened),      cmocka_unit_test(test_failures)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
