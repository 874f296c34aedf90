#include "compare/compare.h"
#include "run/sweep_parts.h"
#include "time/clock.h"

typedef struct Cases {
  DflashCase at[DFLASH_PLANS_MAX];
  const DflashCase *list[DFLASH_PLANS_MAX];
  int64_t count;
} Cases;

static void close_cases(Cases *cases) {
  for (int64_t i = 0; i < cases->count; i++) dflash_case_close(&cases->at[i]);
}

static DflashStatus make_cases(const DflashMaterial *material, int32_t profile, Cases *cases, DflashError *error) {
  const char *name;
  while (cases->count < DFLASH_PLANS_MAX && (name = dflash_material_case_name(material, cases->count)) != NULL) {
    DflashCase *c = &cases->at[cases->count];
    DflashStatus status = dflash_material_case(material, name, NULL, c, error);
    if (status != DFLASH_OK) return status;
    cases->list[cases->count++] = c;
    status =
        dflash_trial_profile(dflash_material_geometry(material), dflash_material_weights(material), profile, c, error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static int64_t compared(const DflashTrialResult *result) {
  int64_t sum = 0;
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    for (int stage = 0; stage < DFLASH_STAGE_COUNT; stage++) sum += result->scores[mode][stage].elements;
  return sum;
}

static double seconds_since(uint64_t begin) { return (double)(dflash_clock_ns() - begin) * 1e-9; }

static void run_cases(const DflashRunOptions *options, const DflashMaterial *material, const Cases *cases,
                      DflashSweepOutcome *outcome) {
  DflashTrial trial = {.options = options,
                       .geometry = dflash_material_geometry(material),
                       .weights = dflash_material_weights(material),
                       .cases = cases->list,
                       .case_count = cases->count};
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = dflash_trial_run(&trial, &outcome->result, &outcome->error);
  outcome->ran_s = seconds_since(begin);
  outcome->how = status == DFLASH_OK ? DFLASH_SWEEP_JUDGED : DFLASH_SWEEP_NOT_RUN;
  outcome->elements = compared(&outcome->result);
}

void dflash_sweep_try(const DflashRunOptions *options, const DflashRecipe *recipe, DflashSweepOutcome *outcome) {
  DflashMaterial *material = NULL;
  Cases cases = {0};
  uint64_t begin = dflash_clock_ns();
  *outcome = (DflashSweepOutcome){.how = DFLASH_SWEEP_NOT_MADE};
  DflashStatus status = dflash_material_open(recipe, NULL, &material, &outcome->error);
  if (status == DFLASH_OK) status = make_cases(material, options->profile, &cases, &outcome->error);
  outcome->made_s = seconds_since(begin);
  if (status == DFLASH_OK) run_cases(options, material, &cases, outcome);
  close_cases(&cases);
  dflash_material_close(material);
}

bool dflash_sweep_failed(const DflashSweepOutcome *outcome) {
  return outcome->how == DFLASH_SWEEP_JUDGED && dflash_outcome_is_failure(outcome->result.outcome);
}

bool dflash_sweep_declined(const DflashSweepOutcome *outcome) {
  if (outcome->how == DFLASH_SWEEP_NOT_RUN) return outcome->error.status == DFLASH_UNSUPPORTED;
  return outcome->how == DFLASH_SWEEP_JUDGED && outcome->result.outcome == DFLASH_OUTCOME_UNSUPPORTED;
}
