/* The device that a test runs on, with validation. */
#ifndef DFLASH_VULKAN_TESTS_FIXTURE_H
#define DFLASH_VULKAN_TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device.h"

enum { TEST_SKIPPED = 77 };

/* Opens the device, or ends the program with TEST_SKIPPED and the reason where there is none: with a failure where the
 * environment has DFLASH_REQUIRE_VULKAN. Without the validation layers where it has DFLASH_VULKAN_WITHOUT_LAYERS, for
 * machines that lack them. Call first in main. */
void test_device_open(VulkanDevice *device);
/* Closes it; false, with a line on stderr, when the validation layers had something to say. */
bool test_device_close(VulkanDevice *device);

/* Fails the test with the error's message unless the status is DFLASH_OK. */
void test_ok(DflashStatus status, const DflashError *error);

#endif
