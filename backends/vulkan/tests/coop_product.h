/* Products on matrix units, or on emulated ones, for tests. */
#ifndef DFLASH_VULKAN_TESTS_COOP_PRODUCT_H
#define DFLASH_VULKAN_TESTS_COOP_PRODUCT_H

#include "matrices.h"

/* A kernel with its constants, but for parts, as kernel.h orders them. */
typedef struct TestCoopCase {
  int kernel;
  uint32_t threads, rows, tiles, slices, step, depth, parts;
} TestCoopCase;

/* Where kernels come from: emulated, by VULKAN_KERNEL_COOP_F16 and after, or NULL: the backend's own. */
typedef struct TestCoop {
  TestKernels kernels;
  const VulkanModule *emulated;
  uint32_t widths_f16, widths_i8; /* rows of x that can be taken at once: 8 and 16, as bits */
  bool direct;                    /* the places of elements are as the direct kernels expect */
} TestCoop;

bool test_coop_is_direct(const TestCoopCase *with);

/* Whether rows as many as the case's, and its kernel, can be taken. */
bool test_coop_takes(const TestCoop *coop, const TestCoopCase *with);
/* Puts a kernel among the device's pipelines when it is emulated: they give it out instead of the backend's own. */
void test_coop_pipeline(TestCoop *coop, int kernel, const uint32_t *constants, uint32_t count);

/* What a product reads of x. The caller closes it. */
typedef struct TestPrepared {
  uint32_t *x; /* parts, or int8 words */
  size_t x_words;
  float *factors; /* two a row, or steps of groups */
  size_t factor_count;
} TestPrepared;
TestPrepared test_prepared_open(size_t x_words, size_t factor_count); /* zeroed */
void test_prepared_close(TestPrepared *prepared);

/* The f16 parts of the first rows of x, by the backend's kernel; fills largest. bits: of a stored weight; direct: for a
 * direct kernel. */
TestPrepared test_coop_parts(TestCoop *coop, const TestProduct *p, uint32_t bits, bool direct, uint32_t parts,
                             int64_t rows);
/* The first `rows` rows of the product, with the columns in `splits` workgroups' hands. All elements of y but those
 * that it must write are NaN afterwards, or the test fails. */
void test_coop_multiply(TestCoop *coop, TestProduct *p, const TestCoopCase *with, uint32_t splits, int64_t rows,
                        const TestPrepared *prepared);

#endif
