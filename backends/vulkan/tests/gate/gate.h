/* The program on the Vulkan backend, as tests run it. */
#ifndef DFLASH_VULKAN_TESTS_GATE_H
#define DFLASH_VULKAN_TESTS_GATE_H

#include "harness/tests/program.h"

#define GATE_FILE(name) FIXTURE_FILE(name)
#define GATE_RECIPE(name) DFLASH_RECIPE_FOLDER "/" name ".json"

/* Ends the program as skipped (77), with the reason, where there is no Vulkan device with validation layers: with a
 * failure where the environment has DFLASH_REQUIRE_VULKAN. Call first in main. */
void gate_need_device(void);

/* golden make with these words; fails the test unless it does. */
void gate_make(const char *words);

#endif
