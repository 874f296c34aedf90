/* The convolution of block.md for tests of `conv` and `out`: its inputs, drawn, and its exact value. */
#ifndef DFLASH_VULKAN_TESTS_CONVOLUTION_H
#define DFLASH_VULKAN_TESTS_CONVOLUTION_H

#include "launch.h"
#include "rows.h"

typedef struct TestConvolution {
  uint32_t rows, width, group, groups, taps;
  float *x;    /* [rows][width] */
  float *d;    /* [rows][2 * taps * groups] */
  float *base; /* [2][taps][width] */
} TestConvolution;

/* group divides width. */
TestConvolution test_convolution_open(uint32_t rows, uint32_t width, uint32_t group, uint32_t taps);
void test_convolution_close(TestConvolution *c);

TestArray test_convolution_x(const TestConvolution *c);
TestArray test_convolution_d(const TestConvolution *c);
TestArray test_convolution_base(const TestConvolution *c);

/* The geometry that has it. */
DflashGeometry test_convolution_geometry(const TestConvolution *c);

/* The exact sum; *size: the sum of its terms' sizes, base and d apart, which bounds its error. */
double test_convolution_at(const TestConvolution *c, uint32_t side, uint32_t row, uint32_t channel, double *size);

#endif
