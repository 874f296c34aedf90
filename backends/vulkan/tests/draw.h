/* Numbers and memory for tests. */
#ifndef DFLASH_VULKAN_TESTS_DRAW_H
#define DFLASH_VULKAN_TESTS_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* Zeroed memory that is there, or the test fails. free() releases it. */
void *test_memory(size_t count, size_t size);
/* A number in [-1, 1). */
float test_draw(DflashRandom random, uint64_t index);

#endif
