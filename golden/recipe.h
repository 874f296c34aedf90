/* Recipes inside the generator: defaults filled in, text owned. */
#ifndef DFLASH_GOLDEN_RECIPE_H
#define DFLASH_GOLDEN_RECIPE_H

#include "golden/generate.h"

/* Raised whenever the same recipe would draw other numbers, or give other values or error scales. */
#define DFLASH_GENERATOR_VERSION 4

/* The `generator` attribute of goldens that this generator makes. */
void dflash_generator_text(char text[64]);

/* A copy whose -1s and empty case list are replaced by the preset's defaults; *cases, the list of names that the copy
 * points to, is freed by the caller. Checks every size against the geometry, which must be there. */
DflashStatus dflash_recipe_resolve(const DflashRecipe *recipe, DflashRecipe *resolved, char **cases,
                                   DflashError *error);

#endif
