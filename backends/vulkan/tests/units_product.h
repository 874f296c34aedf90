/* Products on matrix units, or on emulated ones, for tests. */
#ifndef DFLASH_VULKAN_TESTS_UNITS_PRODUCT_H
#define DFLASH_VULKAN_TESTS_UNITS_PRODUCT_H

#include "stored.h"
#include "units.h"

/* A model that has nothing but products on matrix units. `emulated`: what a thread takes of shared memory besides.
 * False, with a line on stderr, where the device has none that fit. */
bool test_units_open(DflashModel *model, uint64_t emulated);
/* As test_device_close. */
bool test_units_close(DflashModel *model);

/* How a product is cut; NULL: as it is chosen. */
typedef struct TestCut {
  VulkanUnitsTile tile;
  uint32_t splits;
} TestCut;

typedef struct TestUnits {
  DflashModel *model;
  Stored stored;
  VulkanMatrix matrix; /* in parts of 32 rows at most */
} TestUnits;
void test_matrix_on_units(TestUnits *units, DflashModel *model, Stored stored); /* takes what is stored */
void test_matrix_close_units(TestUnits *units);

/* The first out_rows rows of the matrix times `rows` rows of x, [rows][cols], of at most most_rows: [rows][out_rows],
 * which the caller frees. Fails the test when it is another one the second time (by descriptors, where no cut is
 * given), when something beside it was written, counters are not left at 0, or sums of splits that are left apart add
 * up to something else. */
float *test_units_run(const TestUnits *units, const float *x, int64_t rows, int64_t most_rows, int64_t out_rows,
                      const TestCut *cut);

#endif
