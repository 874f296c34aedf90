/* What products on matrix units must be. */
#ifndef DFLASH_VULKAN_TESTS_UNITS_CASES_H
#define DFLASH_VULKAN_TESTS_UNITS_CASES_H

#include "model.h"

/* Runs all tests; the number of those that failed. emulated: as test_units_open has it. */
int test_units_cases(DflashModel *model, uint64_t emulated, const char *name);

#endif
