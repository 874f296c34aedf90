/* Profile i8 written down once more: codes, steps and products as block.md defines them. For tests. */
#ifndef DFLASH_TESTS_ORACLE_I8_NAIVE_H
#define DFLASH_TESTS_ORACLE_I8_NAIVE_H

#include "test_oracle_f32.h"

enum { I8_GROUP = 32 };

typedef struct I8Group {
  float step; /* 0: the group is zero */
  int codes[I8_GROUP];
} I8Group;

I8Group i8_group(const float *x);

/* Whether the stage's matrix takes codes. */
bool i8_takes_codes(const DflashOracleCall *call);

/* Element (row, column) of a q4tp matrix's stage, in long double. */
long double i8_element(const DflashOracleCall *call, int64_t row, int64_t column);

/* A stage in f32: integer dots, groups added in the way's order; other stages as f32_stage. */
void i8_stage(const F32Way *way, const DflashOracleCall *call, float *out);

#endif
