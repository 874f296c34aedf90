/* Explicit plans of a recipe: JSON, and the checks that hostile ones need. */
#ifndef DFLASH_GOLDEN_PLAN_H
#define DFLASH_GOLDEN_PLAN_H

#include "golden/generate.h"

struct cJSON;

/* The list that stands as "plans" in a recipe; NULL: memory. */
struct cJSON *dflash_plans_to_json(const DflashCasePlan *plans, int64_t count);
/* Into recipe->plans. Sizes that are left out are -1. */
DflashStatus dflash_plans_from_json(const struct cJSON *list, DflashRecipe *recipe, DflashError *error);

/* Fills in the recipe's sizes where a plan has -1 and checks every plan of a recipe whose own sizes are resolved. */
DflashStatus dflash_plans_resolve(DflashRecipe *recipe, DflashError *error);

/* Appends an operation; tap rows follow one another. 0 when the plan is full. */
int dflash_plan_add(DflashCasePlan *plan, int32_t op, int64_t pos, int64_t rows);

#endif
