/* Cases in memory on one backend: what sweeps, the self test and calibration run thousands of. No file, no records. */
#ifndef DFLASH_RUN_TRIAL_H
#define DFLASH_RUN_TRIAL_H

#include "model/case.h"
#include "model/weights.h"
#include "run/options.h"

typedef struct DflashTrial {
  /* backend, backend_path, device, profile, options, stages, layer, modes, repeat, timeout_s, threads, load_context
   * count; the rest is not looked at. */
  const DflashRunOptions *options;
  const DflashGeometry *geometry;
  const DflashWeights *weights; /* with the head */
  const DflashCase *const
      *cases;         /* of the options' profile, every value and both scales filled (dflash_evaluate_case) */
  int64_t case_count; /* more than one: also all in turn on one model, a sequence each */
  int timing;         /* 1: times a block too, and judges clock and spans */
  int until_failure;  /* 1: the first case that fails is the last */
} DflashTrial;

/* What a kind of stage showed where it passed, over layers. */
typedef struct DflashTrialScore {
  double score;     /* the largest */
  double lambda;    /* the largest (|got - golden| - floor) / sigma of an element whose sigma is not 0; 0: none */
  int64_t elements; /* compared, those with sigma 0 not counted */
} DflashTrialScore;

typedef struct DflashTrialResult {
  int outcome;      /* DFLASH_OUTCOME_*, the worst of all cases */
  int64_t bad_case; /* the first that failed; -1 */
  char name[64];    /* its name */
  /* Its first divergence: the stage's name ("attn.mix") or the check's ("repeat"), the verdict's outcome, mode
   * ("alone") and score (infinite where a class failed), and one line. */
  char stage[64];
  int64_t layer; /* -1: none */
  int failure;
  char mode[16];
  double score;
  char message[900];
  int64_t verdicts, passed, failed;
  double largest_passing; /* score */
  DflashTrialScore scores[DFLASH_MODE_COUNT][DFLASH_STAGE_COUNT];
} DflashTrialResult;

/* Turns a case of profile exact, with every value, into one of another profile, with every value and both scales. */
DflashStatus dflash_trial_profile(const DflashGeometry *geometry, const DflashWeights *weights, int32_t profile,
                                  DflashCase *c, DflashError *error);

/* Runs in a child process: a crash or a hang is an outcome. An error means that nothing could be judged (no such
 * backend, profile declined: status as dflash_run_verify's reasons; DFLASH_UNSUPPORTED with the backend's own words).
 */
DflashStatus dflash_trial_run(const DflashTrial *trial, DflashTrialResult *result, DflashError *error);

#endif
