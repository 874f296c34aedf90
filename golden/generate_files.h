/* What a recipe takes from files: weights, the head, and the target that they belong to. */
#ifndef DFLASH_GOLDEN_GENERATE_FILES_H
#define DFLASH_GOLDEN_GENERATE_FILES_H

#include "golden/generate_material.h"

/* The weights file, when the recipe names one, and with it the geometry, which must be the recipe's if that has one;
 * then the target's hash. Without weights the geometry is the recipe's. */
DflashStatus dflash_material_open_weights(DflashMaterial *material, const DflashRecipe *recipe, DflashError *error);
/* The head's file, when the recipe names one; its tensor must fit the material's geometry. */
DflashStatus dflash_material_open_head(DflashMaterial *material, const DflashRecipe *recipe, DflashError *error);

#endif
