/* Drawn recipes: geometry, storage, stress and operation sequences that follow from a seed and an index alone, by
 * integer arithmetic. Shapes and inputs are those that small tests tend to miss. */
#ifndef DFLASH_GOLDEN_SWEEP_DRAW_H
#define DFLASH_GOLDEN_SWEEP_DRAW_H

#include "golden/generate.h"

/* Bounds of what is drawn. */
typedef struct DflashSweepLimits {
  int64_t columns; /* of the widest matrices, at least 64: one draw in twenty comes near */
  int64_t context; /* rows held, at least 64: few draws come near */
  int64_t vocab;   /* at least 2049 */
  int sixteen; /* 1: no draw is quiet, for profiles of 16 bits: numbers near 2^-126 are none that they are used with */
  int quantised; /* 1: every draw has q4tp matrices, for profile i8, which is about these alone */
} DflashSweepLimits;

/* 1024 columns, 320 rows of context, 66000 tokens. */
extern const DflashSweepLimits dflash_sweep_limits;

/* A whole recipe with plans; it always resolves. It allows untrusted stages, and points to nothing. */
void dflash_sweep_draw(uint64_t seed, uint64_t index, const DflashSweepLimits *limits, DflashRecipe *recipe);

#endif
