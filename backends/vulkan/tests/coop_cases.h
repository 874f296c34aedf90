/* What products on matrix units must be. */
#ifndef DFLASH_VULKAN_TESTS_COOP_CASES_H
#define DFLASH_VULKAN_TESTS_COOP_CASES_H

#include "coop_product.h"

/* Runs all tests; the number of those that failed. */
int test_coop_run(TestCoop *coop, const char *name);

#endif
