/* numbers.glsl on the device, by the shader numbers.comp in place of the kernel `act`. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "launch.h"
#include "numbers.h"
#include "numbers_shader.h" /* made of numbers.comp */
#include "values.h"

enum { COUNT = 1 << 16 };

/* Arguments and results of one launch. */
typedef struct Table {
  uint32_t a[COUNT], b[COUNT], y[COUNT];
} Table;

static Table *table_open(void) {
  Table *table = dflash_alloc(1, sizeof *table);
  assert_non_null(table);
  return table;
}

static VkPipeline make_pipeline(VulkanDevice *device, VkPipelineLayout layout, uint32_t function) {
  const VulkanApi *api = &device->api;
  const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = sizeof numbers_shader_words,
                                         .pCode = numbers_shader_words};
  VkShaderModule module;
  assert_int_equal(api->vkCreateShaderModule(device->device, &code, NULL, &module), VK_SUCCESS);
  const VkSpecializationMapEntry entry = {0, 0, sizeof function};
  const VkSpecializationInfo constants = {1, &entry, sizeof function, &function};
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main",
                                                      .pSpecializationInfo = &constants},
                                            .layout = layout};
  VkPipeline pipeline;
  assert_int_equal(api->vkCreateComputePipelines(device->device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline),
                   VK_SUCCESS);
  api->vkDestroyShaderModule(device->device, module, NULL);
  return pipeline;
}

static void compute(TestKernels *kernels, uint32_t function, Table *table) {
  DflashError error = {0};
  const VulkanPipeline *act;
  test_ok(vulkan_pipeline_get(&kernels->device, &kernels->pipelines, VULKAN_KERNEL_ACT, NULL, 0, &act, &error), &error);
  VulkanPipeline pipeline = *act;
  pipeline.pipeline = make_pipeline(&kernels->device, act->layout, function);
  const TestArray arrays[] = {{table->a, sizeof table->a}, {table->b, sizeof table->b}, {table->y, sizeof table->y}};
  const ActPush push = {COUNT};
  test_launch_pipeline(kernels, &pipeline,
                       &(TestLaunch){VULKAN_KERNEL_ACT, NULL, 0, arrays, &push, {COUNT / 64, 1, 1}});
  kernels->device.api.vkDestroyPipeline(kernels->device.device, pipeline.pipeline, NULL);
}

/* Any bits: every exponent and sign, NaN and infinity among them. */
static void draw_bits(uint32_t *bits, const char *name) {
  dflash_random_fill(dflash_random_stream(1, name), 0, COUNT, bits);
}

/* Evenly between two numbers */
static void draw_between(uint32_t *bits, const char *name, double low, double high) {
  draw_bits(bits, name);
  for (int i = 0; i < COUNT; i++) bits[i] = test_bits((float)(low + (high - low) * (bits[i] * 0x1p-32)));
}

static const float special[] = {
    0.0F,      -0.0F,      INFINITY,        -INFINITY,        NAN,  0x1p-149F, -0x1p-149F,
    0x1p-126F, -0x1p-126F, 0x1.fffffep127F, -0x1.fffffep127F, 1.0F, -1.0F,     0x1.fffffcp-127F};
enum { SPECIAL = sizeof special / sizeof special[0] };

static void put_special(uint32_t *bits) {
  for (int i = 0; i < SPECIAL; i++) bits[i] = test_bits(special[i]);
}

/* The largest error over the table; the test fails above `limit`. */
static void assert_ulps(const Table *table, double (*exact)(double), double limit) {
  for (int i = 0; i < COUNT; i++) {
    const double ulps = test_ulps(test_float(table->y[i]), exact(test_float(table->a[i])));
    if (!(ulps <= limit))
      fail_msg("%.3f ulp: %a for %a, should be %a", ulps, test_float(table->y[i]), test_float(table->a[i]),
               exact(test_float(table->a[i])));
  }
}

static void exp_within_its_bound(void **state) {
  static const double ends[][2] = {{-1, 1}, {-20, 20}, {-88, 89}, {-110, -86}, {88.5, 89}};
  Table *table = table_open();
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    draw_between(table->a, "exp", ends[i][0], ends[i][1]);
    compute(*state, NUMBERS_EXP, table);
    assert_ulps(table, exp, 1.1);
  }
  draw_bits(table->a, "exp");
  put_special(table->a);
  compute(*state, NUMBERS_EXP, table);
  assert_ulps(table, exp, 1.1);
  free(table);
}

static double reciprocal_root(double x) { return 1 / sqrt(x); }

static void rsqrt_within_its_bound(void **state) {
  Table *table = table_open();
  draw_between(table->a, "rsqrt", 1, 4);
  compute(*state, NUMBERS_RSQRT, table);
  assert_ulps(table, reciprocal_root, 1.5);
  draw_bits(table->a, "rsqrt");
  for (int i = 0; i < COUNT; i++) table->a[i] &= 0x7fffffff;
  put_special(table->a);
  table->a[1] = test_bits(2); /* -0 is no argument */
  compute(*state, NUMBERS_RSQRT, table);
  assert_ulps(table, reciprocal_root, 1.5);
  free(table);
}

/* The f32 numbers around multiples of pi / 2, small and large, and what positions and frequencies give. */
static void draw_hard_angles(uint32_t *bits) {
  const double quarter = acos(-1) / 2;
  draw_bits(bits, "hard angles");
  for (int i = 0; i < COUNT; i++) {
    const int step = (int)(bits[i] & 3) - 1;
    const int near = i / 4 + 1;
    const double far = ldexp(1 + (bits[i] >> 8), (int)(bits[i] >> 2 & 15)), multiple = i < COUNT / 2 ? near : far;
    bits[i] = (uint32_t)((int)test_bits((float)(multiple * quarter)) + step) | (uint32_t)(i & 1) << 31;
  }
}

static void put_known_angles(uint32_t *bits) {
  static const float known[] = {0x1.f9cbe2p+7F, 0x1.47d0fep+34F, 0x1p24F,        0x1.000002p24F, 1e8F,   1e9F,
                                3.4e38F,        -3.4e38F,        0x1.921fb6p-1F, 0x1.921fb8p-1F, 1e-30F, 0x1.921fb6p0F};
  put_special(bits);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) bits[SPECIAL + i] = test_bits(known[i]);
}

static void assert_turns(TestKernels *kernels, Table *table) {
  compute(kernels, NUMBERS_COSINE, table);
  assert_ulps(table, cos, 1.2);
  compute(kernels, NUMBERS_SINE, table);
  assert_ulps(table, sin, 1.2);
}

static void cosine_and_sine_at_any_angle(void **state) {
  Table *table = table_open();
  draw_between(table->a, "turn", -7, 7);
  assert_turns(*state, table);
  draw_between(table->a, "many turns", -2e8, 2e8);
  assert_turns(*state, table);
  draw_bits(table->a, "angles");
  put_known_angles(table->a);
  assert_turns(*state, table);
  draw_hard_angles(table->a);
  assert_turns(*state, table);
  free(table);
}

/* Quotients near 1, of equal exponents, and results that are subnormal or too large, beside any bits. */
static void draw_quotients(Table *table) {
  draw_bits(table->a, "above");
  draw_bits(table->b, "below");
  for (int i = 0; i < COUNT; i++) {
    if (i % 4 == 1) table->b[i] = table->a[i] + table->b[i] % 64;
    if (i % 4 == 2) table->a[i] &= 0x80ffffff;
    if (i % 4 == 3) table->b[i] = (table->b[i] & 0x807fffff) | 0x3f000000;
  }
  for (int i = 0; i < SPECIAL * SPECIAL; i++) {
    table->a[i] = test_bits(special[i / SPECIAL]);
    table->b[i] = test_bits(special[i % SPECIAL]);
  }
}

static void divide_is_correctly_rounded(void **state) {
  Table *table = table_open();
  draw_quotients(table);
  compute(*state, NUMBERS_DIVIDE, table);
  for (int i = 0; i < COUNT; i++) {
    const float exact = test_float(table->a[i]) / test_float(table->b[i]), got = test_float(table->y[i]);
    if (isnan(exact) ? !isnan(got) : table->y[i] != test_bits(exact))
      fail_msg("%a for %a / %a", got, test_float(table->a[i]), test_float(table->b[i]));
  }
  free(table);
}

static void quotient_within_one_ulp(void **state) {
  Table *table = table_open();
  draw_bits(table->a, "above");
  draw_bits(table->b, "below");
  for (int i = 0; i < COUNT; i++) { /* exponents that keep what is left of a normal */
    table->a[i] = (table->a[i] & 0x807fffff) | (97 + i % 60) << 23;
    table->b[i] = (table->b[i] & 0x807fffff) | (87 + i / 60 % 80) << 23;
  }
  table->a[0] = test_bits(NAN);
  compute(*state, NUMBERS_QUOTIENT, table);
  for (int i = 0; i < COUNT; i++) {
    const double exact = (double)test_float(table->a[i]) / test_float(table->b[i]);
    assert_true(test_ulps(test_float(table->y[i]), exact) <= 1);
  }
  free(table);
}

/* The value of an f16, from its definition */
static double half_value(uint32_t bits) {
  const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void every_f16_and_bf16_is_decoded(void **state) {
  Table *table = table_open();
  for (uint32_t i = 0; i < COUNT; i++) table->a[i] = i;
  compute(*state, NUMBERS_F16, table);
  for (uint32_t i = 0; i < COUNT; i++) {
    const float exact = (float)half_value(i);
    assert_true(isnan(exact) ? isnan(test_float(table->y[i])) : table->y[i] == test_bits(exact));
  }
  compute(*state, NUMBERS_BF16, table);
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(table->y[i], i << 16);
  free(table);
}

static void nan_and_infinity_are_told(void **state) {
  Table *table = table_open();
  draw_bits(table->a, "classes");
  for (int i = 0; i < COUNT / 2; i++) table->a[i] |= 0x7f800000; /* NaN */
  table->a[0] = 0x7f800001;
  table->a[1] = 0xffffffff;
  put_special(table->a + 2);
  compute(*state, NUMBERS_IS_NAN, table);
  for (int i = 0; i < COUNT; i++) assert_int_equal(table->y[i], isnan(test_float(table->a[i])) ? 1 : 0);
  compute(*state, NUMBERS_IS_FINITE, table);
  for (int i = 0; i < COUNT; i++) assert_int_equal(table->y[i], isfinite(test_float(table->a[i])) ? 1 : 0);
  free(table);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(exp_within_its_bound, &kernels),
      cmocka_unit_test_prestate(rsqrt_within_its_bound, &kernels),
      cmocka_unit_test_prestate(cosine_and_sine_at_any_angle, &kernels),
      cmocka_unit_test_prestate(divide_is_correctly_rounded, &kernels),
      cmocka_unit_test_prestate(quotient_within_one_ulp, &kernels),
      cmocka_unit_test_prestate(every_f16_and_bf16_is_decoded, &kernels),
      cmocka_unit_test_prestate(nan_and_infinity_are_told, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
