/* Drawn matrices in the form that the kernels read, with their exact values, and what a product of them must be. */
#ifndef DFLASH_VULKAN_TESTS_MATRICES_H
#define DFLASH_VULKAN_TESTS_MATRICES_H

#include "launch.h"

#include "base/random.h"
#include "dflash/tensor.h"

enum { TEST_RUNGS = 32, TEST_GROUP = 32 };

typedef struct TestMatrix {
  int32_t storage;
  int64_t rows, cols;
  uint32_t pitch, code_pitch; /* as MatrixPush has them */
  uint32_t *weights;          /* [rows][pitch][4] */
  float *scales;              /* q8_2f [rows], q4tp [rows][2]; else one element that no kernel looks at */
  uint32_t *codes;            /* q4tp [rows][code_pitch]; else one */
  float *columns;             /* q8_2f [cols]; else one */
  double *values;             /* [rows][cols]: of q8_2f without the column field */
} TestMatrix;

/* Weights of magnitude 4 or less, f16 ones down to denormals; integers: small ones, exact sums in f32. */
TestMatrix test_matrix_draw(DflashRandom random, int32_t storage, int64_t rows, int64_t cols, bool integers);
void test_matrix_close(TestMatrix *matrix);

float test_rung(const TestMatrix *matrix, int64_t row, int64_t group); /* q4tp: scale of a group */
int test_nibble(const TestMatrix *matrix, int64_t row, int64_t col);   /* q4tp: value less 8 */

/* A product: rows x_first .. of x to rows y_first .. of y. Rows and columns of x that do not count are NaN, elements of
 * y that are not written keep their NaN. */
enum { TEST_X_FIRST = 1, TEST_Y_FIRST = 2, TEST_OUT_FIRST = 3 };
typedef struct TestProduct {
  const TestMatrix *matrix;
  int64_t rows, x_stride, y_stride;
  float *x, *y;
  uint32_t *largest; /* [rows], of the half kernels */
} TestProduct;

/* x drawn: uniform times 2^-d, d drawn below `octaves`; integers of magnitude 15 or less when octaves is 0. */
TestProduct test_product_draw(DflashRandom random, const TestMatrix *matrix, int64_t rows, int64_t spare,
                              uint32_t octaves);
void test_product_close(TestProduct *product);
float *test_product_x(const TestProduct *product, int64_t row); /* its `row`-th row that counts */
float test_product_y(const TestProduct *product, int64_t row, int64_t out);

/* Runs a matrix kernel on rows 0 .. `rows` of it; all elements of y but those that it must write are NaN afterwards. */
void test_product_run(TestKernels *kernels, TestProduct *product, int kernel, uint32_t tile_rows, uint32_t weight_rows,
                      int64_t rows);

#endif
