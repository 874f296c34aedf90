#include "golden/sweep_draw.h"

#include <inttypes.h>
#include <stdio.h>

#include "golden/cases.h"
#include "golden/sweep_dice.h"

const DflashSweepLimits dflash_sweep_limits = {.columns = 1024, .context = 320, .vocab = 66000};

static int draw_stress(DflashDice *dice) {
  int64_t kinds = (int64_t)dflash_stress_count() - 1, count = dflash_dice(dice, 0, 9);
  int stress = 0;
  if (count < 5) return 0;
  stress |= dflash_stress((size_t)dflash_dice(dice, 0, kinds))->flag;
  if (count == 9) stress |= dflash_stress((size_t)dflash_dice(dice, 0, kinds))->flag;
  return stress;
}

/* Exact data stands alone: it is every plan's, and takes no stress and no other flag. */
static void make_exact(DflashDice *dice, DflashRecipe *recipe) {
  int flag = dflash_dice_chance(dice, 1, 2) ? DFLASH_CASE_INTEGER : DFLASH_CASE_24BIT;
  recipe->stress = 0;
  for (int64_t i = 0; i < recipe->plan_count; i++) recipe->plans[i].flags = flag;
}

void dflash_sweep_draw(uint64_t seed, uint64_t index, const DflashSweepLimits *limits, DflashRecipe *recipe) {
  static const char *const storages[] = {"sidecar", "sidecar", "f32", "f16", "bf16", "q8_2f"};
  static const int64_t counts[] = {1, 1, 1, 1, 1, 2, 2, 3};
  char name[48];
  snprintf(name, sizeof name, "sweep/%" PRIu64, index);
  DflashDice dice = {.stream = dflash_random_stream(seed, name)};
  (void)dflash_recipe_open(NULL, recipe, NULL); /* an empty one cannot fail */
  recipe->seed = (uint64_t)dflash_dice(&dice, 0, INT64_C(0xfffffffe));
  const char *storage = DFLASH_DICE_PICK(&dice, storages);
  snprintf(recipe->storage, sizeof recipe->storage, "%s", limits->quantised ? "sidecar" : storage);
  recipe->allow_untrusted = 1;
  dflash_sweep_geometry(&dice, limits, recipe->storage, &recipe->geometry);
  recipe->stress = draw_stress(&dice);
  if (limits->sixteen) recipe->stress &= ~DFLASH_STRESS_QUIET;
  recipe->plan_count = DFLASH_DICE_PICK(&dice, counts);
  for (int64_t i = 0; i < recipe->plan_count; i++) {
    snprintf(recipe->plans[i].name, sizeof recipe->plans[i].name, "drawn-%" PRId64, i + 1);
    dflash_sweep_plan(&dice, limits, &recipe->geometry, &recipe->plans[i]);
    /* an element of 7e4 in a row near 1e-37: sums of squares of such a row leave f32 and no model has one */
    if (recipe->stress & DFLASH_STRESS_QUIET) recipe->plans[i].flags &= ~DFLASH_CASE_OUTLIER;
  }
  if (dflash_dice_chance(&dice, 1, 25)) make_exact(&dice, recipe);
}
