/* Goldens from recipes: geometry, weights, cases, all from counters or from files that a user names. */
#ifndef DFLASH_GOLDEN_GENERATE_H
#define DFLASH_GOLDEN_GENERATE_H

#include <stddef.h>

#include "base/pool.h"
#include "golden/stress.h"
#include "load/golden.h"
#include "model/case.h"
#include "model/geometry.h"
#include "model/weights.h"

/* One entry of the list of cases that `golden make --case` knows. */
typedef struct DflashCaseKind {
  const char *name, *about;
} DflashCaseKind;
size_t dflash_case_kind_count(void);
const DflashCaseKind *dflash_case_kind(size_t index);

enum { DFLASH_PLAN_OPS = 32, DFLASH_PLANS_MAX = 8 };

/* A case before anything is drawn: operations and sizes. Values follow from them, the name and the seed. */
typedef struct DflashCasePlan {
  char name[32];
  int flags; /* DFLASH_CASE_* (cases.h) */
  DflashContextOp ops[DFLASH_PLAN_OPS];
  int64_t op_count, tap_rows; /* every push brings rows of its own */
  int64_t anchor_pos, rows, n_draft, head_width;
} DflashCasePlan;

/* Everything that is needed to make a golden again; written as JSON into its `recipe` attribute. */
typedef struct DflashRecipe {
  DflashGeometry geometry;
  char preset[32]; /* "" when from files */
  uint64_t seed;
  char storage[16];  /* "sidecar", "f32", "f16", "bf16", "q8_2f" */
  const char *cases; /* comma-separated case kinds or patterns, "" = the preset's default list */
  int64_t rows, n_draft, head_width, context; /* -1: the preset's default */
  const char *weights_path;                   /* sidecar file or checkpoint folder; NULL: drawn from the seed */
  const char *head_path;                      /* target file; NULL: drawn from the seed */
  int allow_untrusted;                        /* make goldens with stages of more than 30% zeros too */
  const char *profiles;                       /* comma list of profiles with values beside exact: "i8"; NULL: none */
  const char *target_hash;                    /* hex; NULL: any. The target that the sidecar must name (trunk_hash64) */
  int stress;                                 /* DFLASH_STRESS_* flags (stress.h) of drawn weights and inputs */
  DflashCasePlan plans[DFLASH_PLANS_MAX];     /* explicit cases instead of kinds; sizes of -1 are the recipe's */
  int64_t plan_count;
} DflashRecipe;

/* Defaults of a preset; NULL or "" leaves the geometry empty, for weights from files. */
DflashStatus dflash_recipe_open(const char *preset, DflashRecipe *recipe, DflashError *error);
/* From a stored recipe attribute; strings point into `text`'s parsed copy, owned by *owner (cJSON_Delete). A person
 * may write a preset with changes instead of a whole geometry: {"preset": "tiny", "set": {"conv_kernel": "3"}}, as
 * golden/recipes/ does. */
struct cJSON;
DflashStatus dflash_recipe_from_json(const char *text, DflashRecipe *recipe, struct cJSON **owner, DflashError *error);
char *dflash_recipe_to_json(const DflashRecipe *recipe); /* free() */

typedef struct DflashMakeResult {
  char inputs_hash[65], values_hash[65], scales_hash[65];
  int64_t cases;
  uint64_t bytes; /* of the file */
} DflashMakeResult;

/* Draws or imports, evaluates, writes. A path that cannot be written, files that do not fit and too little free space
 * are refused before anything is drawn. progress may be NULL. */
DflashStatus dflash_golden_make(const DflashRecipe *recipe, const char *path, int threads,
                                void (*progress)(const char *line), DflashMakeResult *result, DflashError *error);

/* The weights of a recipe in memory, drawn or mapped, and cases of it: what dflash_golden_make writes. For sweeps,
 * which need no file. `name` is a plan's of the recipe, or a case kind, which need not be among the recipe's cases; but
 * exact kinds and ties need weights that were drawn for them. */
typedef struct DflashMaterial DflashMaterial;
DflashStatus dflash_material_open(const DflashRecipe *recipe, DflashPool *pool, DflashMaterial **material,
                                  DflashError *error);
const DflashGeometry *dflash_material_geometry(const DflashMaterial *material);
const DflashWeights *dflash_material_weights(const DflashMaterial *material); /* with the head */
/* The recipe's cases, in order: names for dflash_material_case; NULL past the last. */
const char *dflash_material_case_name(const DflashMaterial *material, int64_t index);
DflashStatus dflash_material_case(const DflashMaterial *material, const char *name, DflashPool *pool, DflashCase *c,
                                  DflashError *error);
void dflash_material_close(DflashMaterial *material);

/* A drawn case without a file: geometry and weights in memory, values evaluated. For tests and sweeps. */
DflashStatus dflash_case_draw(const DflashRecipe *recipe, const char *kind, DflashCase *c, DflashError *error);

#endif
