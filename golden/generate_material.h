/* Weights of a recipe in memory. */
#ifndef DFLASH_GOLDEN_GENERATE_MATERIAL_H
#define DFLASH_GOLDEN_GENERATE_MATERIAL_H

#include "golden/cases.h"
#include "golden/generate.h"
#include "model/checkpoint.h"
#include "model/sidecar.h"

struct DflashMaterial {
  DflashRecipe recipe;   /* resolved */
  char *cases;           /* its list of names, owned */
  DflashCasePlan *plans; /* of its cases, in order, owned */
  int64_t plan_count;
  int flags; /* of all its cases together */
  DflashGeometry geometry;
  DflashWeights weights;
  DflashWeightSet set; /* drawn weights */
  void **owned;        /* data of drawn tensors */
  int64_t owned_count;
  DflashSidecar sidecar;
  DflashCheckpoint checkpoint;
  DflashHead head;
  int has_set, has_sidecar, has_checkpoint, has_head;
};

/* dflash_material_open in its two parts. Found material has geometry, cases and what comes from files; filling it draws
 * the rest. */
DflashStatus dflash_material_find(const DflashRecipe *recipe, DflashMaterial **material, DflashError *error);
DflashStatus dflash_material_fill(DflashMaterial *material, DflashPool *pool, DflashError *error);

/* What the operations of a plan leave: its sizes, and the first position held. */
DflashStatus dflash_material_sizes(const DflashCasePlan *plan, DflashRunSizes *sizes, int64_t *context_first,
                                   DflashError *error);

/* The drawn embeddings, taps and sizes of a plan, without values. */
DflashStatus dflash_material_inputs(const DflashMaterial *material, const DflashCasePlan *plan, DflashPool *pool,
                                    DflashCase *c, DflashError *error);
/* Values and both scales; refuses stages that prove little unless the recipe or the plan allows them. */
DflashStatus dflash_material_values(const DflashMaterial *material, const DflashCasePlan *plan, DflashPool *pool,
                                    DflashCase *c, DflashError *error);

/* The first stage of a case that is mostly zeros or one value, NULL when there is none; label is room for its name. */
const char *dflash_case_untrusted(const DflashCase *c, const DflashGeometry *geometry, char label[64], double *share);

#endif
