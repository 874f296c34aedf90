/* Numbers for tests of kernels, and how far a result is from the exact value. */
#ifndef DFLASH_VULKAN_TESTS_VALUES_H
#define DFLASH_VULKAN_TESTS_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* Half a unit in the last place of 1: one rounding is off by at most this much, relatively. */
#define TEST_ROUNDING 0x1p-24

/* Memory of the caller (free). Both end the test when there is none. */
float *test_drawn(size_t count,
                  const char *name); /* bell-shaped, deviation 1, no larger than 4; by the stream's name */
float *test_poisoned(size_t count);  /* NaN, for outputs */

uint32_t test_bits(float x);
float test_float(uint32_t bits);

/* |got - exact| in units of the last place that f32 has at `exact`. A result below 2^-126 may be flushed to 0. NaN for
 * NaN and infinity for what is too large are 0 off, in place of something else INFINITY. */
double test_ulps(float got, double exact);

#endif
