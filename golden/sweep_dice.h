/* Numbers of one draw, one after another. Private to sweep_*.c. */
#ifndef DFLASH_GOLDEN_SWEEP_DICE_H
#define DFLASH_GOLDEN_SWEEP_DICE_H

#include "base/random.h"
#include "golden/sweep_draw.h"

typedef struct DflashDice {
  DflashRandom stream;
  uint64_t at;
} DflashDice;

/* least .. most */
static inline int64_t dflash_dice(DflashDice *dice, int64_t least, int64_t most) {
  return least + (int64_t)dflash_random_below(dice->stream, dice->at++, (uint32_t)(most - least + 1));
}

static inline int dflash_dice_chance(DflashDice *dice, int64_t one, int64_t of) {
  return dflash_dice(dice, 1, of) <= one;
}

#define DFLASH_DICE_PICK(dice, list) ((list)[dflash_dice((dice), 0, (int64_t)(sizeof(list) / sizeof *(list)) - 1)])

/* The sequence that a plan of a recipe is: operations, anchor, sizes, flags. `length` is the context to aim at. */
void dflash_sweep_plan(DflashDice *dice, const DflashSweepLimits *limits, const DflashGeometry *geometry,
                       DflashCasePlan *plan);
void dflash_sweep_geometry(DflashDice *dice, const DflashSweepLimits *limits, const char *storage,
                           DflashGeometry *geometry);

#endif
