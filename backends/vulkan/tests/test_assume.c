/* The option assume: what it takes, what it lowers, what it says. */
#include <string.h>

#include "assume.h"
#include "fixture.h"

static const VulkanTraits device_traits = {.name = "a device",
                                           .max_binding = 1 << 27,
                                           .max_allocation = 1 << 30,
                                           .shared_bytes = 32768,
                                           .max_threads = 1024,
                                           .max_groups = {65535, 100, 100},
                                           .timestamp_bits = 64,
                                           .integer_dot = true,
                                           .addresses = true,
                                           .mapped_local = true,
                                           .memory_bytes = UINT64_C(1) << 33};

static void test_parse(void **state) {
  (void)state;
  VulkanAssumed a;
  assert_true(vulkan_assumed_parse("binding:64K,dot:0", &a));
  assert_true(a.given[VULKAN_ASSUME_BINDING] && a.values[VULKAN_ASSUME_BINDING] == 65536);
  assert_true(a.given[VULKAN_ASSUME_DOT] && a.values[VULKAN_ASSUME_DOT] == 0);
  for (int i = 0; i < VULKAN_ASSUME_COUNT; i++)
    assert_true(a.given[i] == (i == VULKAN_ASSUME_BINDING || i == VULKAN_ASSUME_DOT));
  assert_true(vulkan_assumed_parse("memory:3G,allocation:2M,shared:16384,threads:128,groups:64,stamps:36", &a));
  assert_true(a.values[VULKAN_ASSUME_MEMORY] == UINT64_C(3) << 30 && a.values[VULKAN_ASSUME_ALLOCATION] == 2 << 20);
  assert_true(a.values[VULKAN_ASSUME_SHARED] == 16384 && a.values[VULKAN_ASSUME_THREADS] == 128);
  assert_true(a.values[VULKAN_ASSUME_GROUPS] == 64 && a.values[VULKAN_ASSUME_STAMPS] == 36);
}

static void test_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "binding",
                                      "binding:",
                                      "binding:K",
                                      "binding:-1",
                                      "binding:1k",
                                      "binding:0",
                                      "groups:0",
                                      "bindings:1",
                                      ":1",
                                      "dot:0,",
                                      ",dot:0",
                                      "dot:0dot:",
                                      "binding:1 ",
                                      "dot:0,dot:0",
                                      "binding:9999999999G",
                                      "binding:11111111111111111111111111"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    VulkanAssumed a;
    if (vulkan_assumed_parse(texts[i], &a)) fail_msg("'%s' was taken", texts[i]);
  }
}

static void test_lowers(void **state) {
  (void)state;
  VulkanAssumed a;
  VulkanTraits t = device_traits;
  DflashError error = {0};
  assert_true(vulkan_assumed_parse(
      "binding:1,allocation:2,shared:3,threads:4,groups:5,stamps:6,dot:0,addresses:0,mapped:0,memory:8", &a));
  test_ok(vulkan_assume(&a, &t, &error), &error);
  assert_true(t.max_binding == 1 && t.max_allocation == 2 && t.shared_bytes == 3 && t.max_threads == 4);
  assert_true(t.max_groups[0] == 5 && t.max_groups[1] == 100 && t.timestamp_bits == 6 && !t.integer_dot);
  assert_true(!t.addresses && !t.mapped_local && t.memory_bytes == 8);
  assert_string_equal(t.name, "a device as assumed");
  VkPhysicalDeviceMemoryProperties memory = {.memoryHeapCount = 2, .memoryHeaps = {{.size = 5}, {.size = 9}}};
  vulkan_assume_heaps(&a, &memory);
  assert_true(memory.memoryHeaps[0].size == 5 && memory.memoryHeaps[1].size == 8);
}

static void test_changes_nothing(void **state) {
  (void)state;
  const VulkanAssumed a = {0};
  VulkanTraits t = device_traits;
  DflashError error = {0};
  char text[64];
  test_ok(vulkan_assume(&a, &t, &error), &error);
  assert_memory_equal(&t, &device_traits, sizeof t);
  vulkan_assumed_text(&a, text, sizeof text);
  assert_string_equal(text, "");
}

static void test_never_raises(void **state) {
  (void)state;
  static const char *const texts[] = {"binding:129M", "allocation:2G", "shared:32769", "threads:1025",
                                      "groups:65536", "stamps:65",     "dot:2",        "memory:9G"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    VulkanAssumed a;
    VulkanTraits t = device_traits;
    DflashError error = {0};
    assert_true(vulkan_assumed_parse(texts[i], &a));
    assert_int_equal(vulkan_assume(&a, &t, &error), DFLASH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "only be lowered"));
    const size_t key = strcspn(texts[i], ":");
    assert_true(memmem(error.message, strlen(error.message), texts[i], key) != NULL);
  }
}

/* A name that fills its place loses its end, not the mark. */
static void test_long_name(void **state) {
  (void)state;
  VulkanAssumed a;
  VulkanTraits t = device_traits;
  memset(t.name, 'x', sizeof t.name - 1);
  assert_true(vulkan_assumed_parse("dot:0", &a));
  test_ok(vulkan_assume(&a, &t, NULL), NULL);
  assert_int_equal(strlen(t.name), sizeof t.name - 1);
  assert_string_equal(t.name + sizeof t.name - 12, " as assumed");
}

static void test_text(void **state) {
  (void)state;
  VulkanAssumed a;
  char text[256];
  assert_true(vulkan_assumed_parse("stamps:0,binding:64K", &a));
  vulkan_assumed_text(&a, text, sizeof text);
  assert_string_equal(text, "assumed binding 65536, stamps 0; ");
  vulkan_assumed_text(&a, text, 8);
  assert_string_equal(text, "assumed");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse),        cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_lowers),       cmocka_unit_test(test_changes_nothing),
                                     cmocka_unit_test(test_never_raises), cmocka_unit_test(test_long_name),
                                     cmocka_unit_test(test_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
