/* The steps of products on matrix units, as coop.c makes them. */
#ifndef DFLASH_VULKAN_TESTS_COOP_STEPS_H
#define DFLASH_VULKAN_TESTS_COOP_STEPS_H

#include "coop_product.h"

/* Runs all tests; the number of those that failed. */
int test_coop_steps_run(TestCoop *coop, const char *name);

#endif
