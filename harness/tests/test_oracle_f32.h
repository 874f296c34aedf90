/* Stages in f32, as straightforward backends compute them, in several lawful ways; to measure error scales with. */
#ifndef DFLASH_TESTS_ORACLE_F32_H
#define DFLASH_TESTS_ORACLE_F32_H

#include "golden/oracle.h"

enum { F32_FORWARD, F32_BACKWARD, F32_PAIRWISE, F32_LANES, F32_BLOCKS, F32_MATRIX_UNIT };

typedef struct F32Way {
  const char *name;
  int order;
  bool fused;   /* multiply-add with one rounding */
  bool folded;  /* q8_2f: column field into x, row scale after the sum */
  bool online;  /* attention in one pass over the keys, in three splits */
  bool apart;   /* convolution: base and dynamic products apart, residual first */
  double slack; /* exp and rsqrt off by up to 4 * slack units, sin and cos by 2 * slack */
} F32Way;

/* A set that covers the members. */
extern const F32Way f32_ways[];
extern const int f32_way_count;

float f32_dot(const F32Way *way, const float *a, const float *b, int64_t count);

/* call->value is ignored; out is [rows * width]. */
void f32_stage(const F32Way *way, const DflashOracleCall *call, float *out);

#endif
