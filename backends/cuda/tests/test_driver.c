/* What is said where the driver, its version or its devices do not serve. */
#include "scene.h"

#include <string.h>

#include "driver.h"

static Scene scene;

static void refused(DflashStatus expected, const char *text) {
  DflashDevice device = {.struct_size = sizeof device};
  DflashError of_devices = {0}, of_support = {0};
  uint32_t count = 0;
  const DflashModelDesc desc = scene_desc(&scene);
  if (expected == DFLASH_UNAVAILABLE) {
    assert_int_equal(cuda_backend.devices(&device, 1, &count, &of_devices), expected);
    assert_non_null(strstr(of_devices.message, text));
  }
  assert_int_equal(cuda_backend.supports(&desc, &of_support), expected);
  assert_int_equal(of_support.status, expected);
  assert_non_null(strstr(of_support.message, text));
  nothing_open();
}

static void test_version(void **state) {
  (void)state;
  driver->version = 11030;
  refused(DFLASH_UNAVAILABLE, "the driver is for CUDA 11.3; one for 11.4 or later is needed");
  driver->version = 13000;
}

static void test_no_device(void **state) {
  (void)state;
  driver->devices = 0;
  refused(DFLASH_UNAVAILABLE, "the driver is here, and no device");
  driver->devices = 1;
}

static void test_start(void **state) {
  (void)state;
  driver->calls = 0;
  driver->fail_with = CUDA_ERROR_NO_DEVICE;
  for (uint64_t n = 1; n <= 2; n++) { /* the start, and the version */
    DflashDevice device = {.struct_size = sizeof device};
    DflashError error = {0};
    uint32_t count = 0;
    driver->calls = 0;
    driver->fail_at = n;
    assert_int_equal(cuda_backend.devices(&device, 1, &count, &error), DFLASH_UNAVAILABLE);
    assert_non_null(strstr(error.message, "the driver does not start"));
  }
  driver->fail_at = 0;
}

static void test_old_device(void **state) {
  (void)state;
  driver->compute_major = 7;
  refused(DFLASH_UNSUPPORTED, "compute capability 7.0; 8.0 or later is needed");
  driver->compute_major = 9;
}

/* Sizes beyond the kernels are declined by name before a device is opened. */
static void test_sizes(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModelDesc desc = scene_desc(&scene);
  DflashGeometry g = *scene.g;
  desc.geometry = &g;
  desc.weights = NULL;
  g.head_dim = 258;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_UNSUPPORTED);
  assert_string_equal(error.message, "cuda: head_dim is 258, the limit is 256");
  g.head_dim = 256;
  must(cuda_backend.supports(&desc, &error), &error);
  g.selector_top = 1025;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_UNSUPPORTED);
}

static void test_options(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModelDesc desc = scene_desc(&scene);
  DflashOption option = {"splits", "64"};
  desc.options = &option;
  desc.option_count = 1;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "cuda: option splits is \"64\", valid is 0 to 63");
  option = (DflashOption){"split", "1"};
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "no option \"split\"; known: "));
  option = (DflashOption){"path", "slow"};
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "cuda: option path is \"slow\", valid is auto, plain or fast");
  option = (DflashOption){"keep", "all"};
  must(cuda_backend.supports(&desc, &error), &error);
}

/* Asked for by its name the fast path is declined with what does not fit; else the plain one is taken, and says so. */
static void test_path(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModelInfo info = {.struct_size = sizeof info};
  DflashModelDesc desc = scene_desc(&scene);
  DflashOption option = {"path", "fast"};
  DflashModel *model = scene_model(&scene, NULL);
  must(cuda_backend.model_info(model, &info, &error), &error);
  assert_non_null(strstr(info.path, "not fast: hidden is "));
  cuda_backend.model_close(model);
  desc.options = &option;
  desc.option_count = 1;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "cuda: path=fast: hidden is "));
  assert_int_equal(cuda_backend.model_open(&desc, &model, &error), DFLASH_UNSUPPORTED);
  option.value = "plain";
  must(cuda_backend.model_open(&desc, &model, &error), &error);
  must(cuda_backend.model_info(model, &info, &error), &error);
  assert_non_null(strstr(info.path, "not fast: path is plain"));
  cuda_backend.model_close(model);
  nothing_open();
}

/* The published geometry fits as far as the device does not matter. */
static void test_published(void **state) {
  (void)state;
  DflashError error = {0};
  DflashModelDesc desc = scene_desc(&scene);
  const DflashOption option = {"path", "fast"};
  DflashGeometry g = *scene.g;
  g.hidden = 5120, g.intermediate = 17408, g.layers = 5, g.heads = 32, g.kv_heads = 8, g.head_dim = 128;
  g.conv_group = 16, g.conv_kernel = 2, g.selector_rank = 256, g.vocab = 248320, g.windows.count = 0;
  desc.geometry = &g;
  desc.weights = NULL;
  desc.options = &option;
  desc.option_count = 1;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_UNSUPPORTED);
  assert_string_equal(error.message, "cuda: path=fast: the device has 4 processors, it takes 132");
  g.layers = 9;
  assert_int_equal(cuda_backend.supports(&desc, &error), DFLASH_UNSUPPORTED);
  assert_string_equal(error.message, "cuda: path=fast: layers is 9, it is for up to 8");
}

/* A device without room for the weights: refused, with how much it was. */
static void test_memory(void **state) {
  (void)state;
  DflashError error = {0};
  const DflashModelDesc desc = scene_desc(&scene);
  const int64_t left = driver->memory_left;
  DflashModel *model;
  driver->memory_left = 1000;
  assert_int_equal(cuda_backend.model_open(&desc, &model, &error), DFLASH_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "bytes for the weights: "));
  driver->memory_left = left;
  nothing_open();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_version),    cmocka_unit_test(test_no_device), cmocka_unit_test(test_start),
      cmocka_unit_test(test_old_device), cmocka_unit_test(test_sizes),     cmocka_unit_test(test_options),
      cmocka_unit_test(test_path),       cmocka_unit_test(test_published), cmocka_unit_test(test_memory)};
  scene_open(&scene, "operations.h5");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scene_close(&scene);
  return failed;
}
