/* Stages in 16-bit arithmetic, as straightforward engines of profiles f16 and bf16 compute them, in several lawful
 * ways; to measure error scales with. */
#ifndef DFLASH_TESTS_ORACLE_HALF_WAYS_H
#define DFLASH_TESTS_ORACLE_HALF_WAYS_H

#include "test_oracle_f32.h"

typedef struct HalfWay {
  const char *name;
  int32_t profile; /* DFLASH_PROFILE_F16 or BF16 */
  F32Way f32;      /* what happens in f32: sums, the functions */
  bool weights;    /* weights are rounded to the format; else they stand at their f32 value */
  bool eager;      /* bf16: every operation rounds its result; else a stage's output alone is rounded */
  bool stored;     /* f16: what attention reads is held in f16 */
  bool divided;    /* p is divided by the sum before it is rounded; the sum is of unrounded p */
} HalfWay;

extern const HalfWay half_ways[];
extern const int half_way_count;

/* call->value is ignored; out is [rows * width]. */
void half_stage(const HalfWay *way, const DflashOracleCall *call, float *out);
/* logit + sum (P * hidden) * C. */
float half_score(const HalfWay *way, const DflashWeights *weights, float logit, const float *hidden, int64_t rank,
                 int32_t previous, int32_t candidate);

#endif
