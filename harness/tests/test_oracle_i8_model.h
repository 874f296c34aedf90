/* Drawn q4tp products and blocks of profile i8. Everything asserts. */
#ifndef DFLASH_TESTS_ORACLE_I8_MODEL_H
#define DFLASH_TESTS_ORACLE_I8_MODEL_H

#include "golden/oracle.h"
#include "test_oracle_model.h"

enum { I8_ROWS = 5, I8_OUTPUTS = 24 };

/* One product, selector.hidden, whose matrix holds every nibble and many rungs. */
typedef struct I8Product {
  DflashGeometry geometry;
  DflashWeights weights; /* only selector_hidden */
  unsigned char *data;
  float *x; /* [I8_ROWS + 1, cols]; rows 1 .. are read */
  DflashOracleCall call;
  float value[I8_ROWS * I8_OUTPUTS], alone[I8_ROWS * I8_OUTPUTS], chain[I8_ROWS * I8_OUTPUTS];
} I8Product;

void i8_product_open(I8Product *p, int64_t cols, uint64_t seed);
void i8_product_close(I8Product *p);

void i8_run(const DflashOracleCall *call);

/* Turns a case into one of profile i8; evaluates one of `profile` with all scales. */
void i8_turn(DflashCase *c, const DflashGeometry *geometry);
void i8_evaluate(const OracleModel *model, int32_t profile, DflashCase *c);

#endif
