/* Every stage in long double, one element at a time, straight from its definition. */
#ifndef DFLASH_TESTS_ORACLE_NAIVE_H
#define DFLASH_TESTS_ORACLE_NAIVE_H

#include "golden/oracle.h"

/* Element (row, column) of the stage's value. */
long double naive_element(const DflashOracleCall *call, int64_t row, int64_t column);

#endif
