#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

/* For the leak sanitiser, which tells whose a leak is by the library that allocated it. Libraries stay loaded: of those
 * that the loader has closed, nothing can be told, and what they still point at looks lost. */
EXPORTED int dlclose(void *library);
EXPORTED int dlclose(void *library) {
  (void)library;
  return 0;
}

/* The validation layers leave some of their own behind. */
EXPORTED const char *__lsan_default_suppressions(void);
EXPORTED const char *__lsan_default_suppressions(void) { return "leak:libVkLayer_khronos_validation.so\n"; }

void test_device_open(VulkanDevice *device) {
  DflashError error = {0};
  const VulkanDeviceOptions options = {.validation = !getenv("DFLASH_VULKAN_WITHOUT_LAYERS")};
  DflashStatus status = vulkan_device_open(&options, device, &error);
  if (status == DFLASH_OK) return;
  fprintf(stderr, "%s\n", error.message);
  exit(status == DFLASH_UNAVAILABLE && !getenv("DFLASH_REQUIRE_VULKAN") ? TEST_SKIPPED : EXIT_FAILURE);
}

bool test_device_close(VulkanDevice *device) {
  DflashError error = {0};
  vulkan_device_close(device);
  if (vulkan_device_check(device, &error) == DFLASH_OK) return true;
  fprintf(stderr, "%s\n", error.message);
  return false;
}

void test_ok(DflashStatus status, const DflashError *error) {
  if (status != DFLASH_OK) fail_msg("%s", error->message);
}
