/* Profiles beside exact in a golden: for i8 the stages whose values differ. */
#ifndef DFLASH_GOLDEN_GENERATE_I8_H
#define DFLASH_GOLDEN_GENERATE_I8_H

#include "golden/generate_material.h"

/* Whether a list of profiles names i8; NULL and "" name none. */
bool dflash_profiles_i8(const char *profiles);

/* Refuses lists that name anything but i8. */
DflashStatus dflash_profiles_check(const char *profiles, DflashError *error);

/* Refuses a recipe that asks for i8 where no matrix, found or to be drawn, is q4tp. */
DflashStatus dflash_i8_possible(const DflashMaterial *material, DflashError *error);

/* Computes profile i8's values of a case whose exact ones are there, and keeps those that differ in any bit as
 * stages_i8. */
DflashStatus dflash_i8_values(const DflashGeometry *geometry, const DflashWeights *weights, DflashPool *pool,
                              DflashCase *c, DflashError *error);

#endif
