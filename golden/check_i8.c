/* Profile i8 of one case, computed again. */
#include <stdio.h>

#include "dflash/backend.h"
#include "golden/check_values.h"
#include "golden/oracle.h"

/* Context state and tokens are not stored for this profile. */
static void visit(void *context, int32_t stage, int64_t layer, const char *label, const float *stored,
                  const float *computed, int64_t count) {
  char text[80];
  (void)layer;
  if (stage == DFLASH_STAGE_HELD_K || stage == DFLASH_STAGE_HELD_V) return;
  snprintf(text, sizeof text, "stages.i8/%s", label);
  dflash_check_value(context, stage, text, stored, computed, count);
}

DflashStatus dflash_check_i8(DflashChecker *k, const DflashWeights *weights, DflashPool *pool, DflashError *error) {
  const DflashEvaluate options = {.geometry = k->geometry,
                                  .weights = weights,
                                  .pool = pool,
                                  .profile = DFLASH_PROFILE_I8,
                                  .recompute = true,
                                  .values = true,
                                  .visit = visit,
                                  .visit_context = k};
  DflashStatus status = dflash_case_to_profile(k->c, k->geometry, DFLASH_PROFILE_I8, error);
  return status == DFLASH_OK ? dflash_evaluate_case(&options, k->c, error) : status;
}
