/* How often each defect is found on goldens that nobody chose for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "golden/sweep_draw.h"
#include "run/selftest_parts.h"

/* Smaller than a sweep's: every defect of a catalogue runs on every draw. */
static const DflashSweepLimits draw_limits = {.columns = 256, .context = 320, .vocab = 4099};

/* One drawn recipe in memory, in the profiles that defects want. */
typedef struct Drawn {
  DflashMaterial *material;
  DflashCase cases[DFLASH_PROFILE_COUNT][DFLASH_PLANS_MAX];
  const DflashCase *list[DFLASH_PROFILE_COUNT][DFLASH_PLANS_MAX];
  int64_t count[DFLASH_PROFILE_COUNT]; /* 0: not in this profile */
} Drawn;

static DflashStatus make_cases(Drawn *drawn, int32_t profile, DflashError *error) {
  const char *name;
  DflashStatus status = DFLASH_OK;
  int64_t *count = &drawn->count[profile];
  while (status == DFLASH_OK && *count < DFLASH_PLANS_MAX &&
         (name = dflash_material_case_name(drawn->material, *count)) != NULL) {
    DflashCase *c = &drawn->cases[profile][*count];
    status = dflash_material_case(drawn->material, name, NULL, c, error);
    if (status != DFLASH_OK) break;
    drawn->list[profile][(*count)++] = c;
    status = dflash_trial_profile(dflash_material_geometry(drawn->material), dflash_material_weights(drawn->material),
                                  profile, c, error);
  }
  return status;
}

static void close_drawn(Drawn *drawn) {
  for (int p = 0; p < DFLASH_PROFILE_COUNT; p++)
    for (int64_t i = 0; i < drawn->count[p]; i++) dflash_case_close(&drawn->cases[p][i]);
  dflash_material_close(drawn->material);
}

static DflashStatus open_drawn(const DflashSelfTest *test, int64_t draw, Drawn *drawn, DflashError *error) {
  DflashRecipe recipe;
  dflash_sweep_draw(test->options->seed, (uint64_t)draw, &draw_limits, &recipe);
  *drawn = (Drawn){0};
  DflashStatus status = dflash_material_open(&recipe, NULL, &drawn->material, error);
  if (status == DFLASH_OK) status = make_cases(drawn, DFLASH_PROFILE_EXACT, error);
  bool wants[DFLASH_PROFILE_COUNT] = {0};
  for (int64_t i = 0; i < test->defect_count; i++) wants[test->defects[i]->profile] = true;
  for (int32_t p = 1; status == DFLASH_OK && p < DFLASH_PROFILE_COUNT; p++)
    if (wants[p] && (p != DFLASH_PROFILE_I8 || strcmp(recipe.storage, "sidecar") == 0))
      status = make_cases(drawn, p, error);
  return status;
}

/* A correct run that fails, or one that cannot be judged, is told at once. */
static void tell(const DflashSelfTest *test, int64_t draw, const DflashDefect *defect, int how, const char *message) {
  bool correct = defect == NULL || defect->lawful;
  if (how != DFLASH_SELF_BROKEN && !(correct && how == DFLASH_SELF_FOUND)) return;
  dflash_progress_done();
  dflash_log(DFLASH_LOG_WARNING, "%s: %s on draw %lld of seed %llu: %s",
             how == DFLASH_SELF_BROKEN ? "cannot tell" : "false alarm", defect != NULL ? defect->id : "no defect",
             (long long)draw, (unsigned long long)test->options->seed, message);
}

/* Some modes of a defect on a draw. */
static int run_modes(const DflashSelfTest *test, const Drawn *drawn, const DflashDefect *defect, unsigned modes,
                     char message[1024]) {
  int32_t profile = defect != NULL ? defect->profile : DFLASH_PROFILE_EXACT;
  DflashTrialResult result = {0};
  DflashError error = {0};
  DflashRunOptions options = dflash_self_options(test, defect, profile, false);
  options.modes = modes;
  const DflashTrial trial = {.options = &options,
                             .geometry = dflash_material_geometry(drawn->material),
                             .weights = dflash_material_weights(drawn->material),
                             .cases = drawn->list[profile],
                             .case_count = drawn->count[profile],
                             .until_failure = 1};
  if (drawn->count[profile] == 0) return DFLASH_SELF_NOT_TRIED;
  DflashStatus status = dflash_trial_run(&trial, &result, &error);
  if (status == DFLASH_UNSUPPORTED) return DFLASH_SELF_NOT_TRIED;
  snprintf(message, 1024, "%s", status != DFLASH_OK ? error.message : result.message);
  if (status != DFLASH_OK) return DFLASH_SELF_BROKEN;
  if (result.bad_case >= 0) return DFLASH_SELF_FOUND;
  return result.passed > 0 ? DFLASH_SELF_PASSED : DFLASH_SELF_NOT_TRIED;
}

/* The chain is what ships. Where end values hide a defect it may be one of a stage alone: that is looked at, too. */
static int run_drawn(const DflashSelfTest *test, int64_t draw, const Drawn *drawn, const DflashDefect *defect) {
  char message[1024] = "";
  int how = run_modes(test, drawn, defect, 1u << DFLASH_MODE_CHAIN, message);
  bool apart = defect != NULL && defect->hidden != NULL;
  if (how == DFLASH_SELF_PASSED && apart) how = run_modes(test, drawn, defect, 1u << DFLASH_MODE_ALONE, message);
  tell(test, draw, defect, how, message);
  return how;
}

static void count(DflashSelfRate *rate, int how) {
  __atomic_fetch_add(&rate->tried, how == DFLASH_SELF_FOUND || how == DFLASH_SELF_PASSED, __ATOMIC_RELAXED);
  __atomic_fetch_add(&rate->found, how == DFLASH_SELF_FOUND, __ATOMIC_RELAXED);
  __atomic_fetch_add(&rate->broken, how == DFLASH_SELF_BROKEN, __ATOMIC_RELAXED);
}

/* rates[defect_count] is the base's. */
static void work(const DflashSelfTest *test, int64_t worker) {
  for (int64_t draw = worker; draw < test->options->draws; draw += test->options->jobs) {
    Drawn drawn;
    DflashError error = {0};
    DflashStatus status = open_drawn(test, draw, &drawn, &error);
    if (status != DFLASH_OK) tell(test, draw, NULL, DFLASH_SELF_BROKEN, error.message);
    if (worker == 0) dflash_progress("draw %lld/%lld", (long long)draw, (long long)test->options->draws);
    count(&test->rates[test->defect_count],
          status == DFLASH_OK ? run_drawn(test, draw, &drawn, NULL) : DFLASH_SELF_BROKEN);
    for (int64_t i = 0; status == DFLASH_OK && i < test->defect_count; i++)
      if (!test->defects[i]->timing) count(&test->rates[i], run_drawn(test, draw, &drawn, test->defects[i]));
    close_drawn(&drawn);
  }
}

DflashStatus dflash_self_draw_all(DflashSelfTest *test, DflashError *error) {
  size_t bytes = (size_t)(test->defect_count + 1) * sizeof *test->rates;
  void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for rates");
  test->rates = shared;
  DflashStatus status = dflash_self_workers(test, work, error);
  dflash_progress_done();
  return status;
}
