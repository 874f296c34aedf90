/* The oracle: every stage in float64 from f32 inputs, with the error scale that correct arithmetic of a
 * profile would show. It shares no arithmetic with any backend. Results do not depend on the number of
 * threads: every output element is summed in one fixed order.
 *
 * The derivation of each scale stands in docs/error-scale.md.
 */
#ifndef DFLASH_GOLDEN_ORACLE_H
#define DFLASH_GOLDEN_ORACLE_H

#include <stdbool.h>

#include "base/pool.h"
#include "dflash/backend.h"
#include "model/case.h"
#include "model/weights.h"

typedef struct DflashOracleCall {
  const DflashGeometry *geometry;
  const DflashWeights *weights;
  DflashPool *pool; /* NULL: the caller's thread */
  int32_t profile;  /* DFLASH_PROFILE_*: values for I8 round the activations; scales are the profile's */
  int32_t stage;    /* not select */
  int64_t layer;
  DflashRunSizes sizes;
  int64_t position;      /* of row 0: anchor_pos, or the push's for context.* */
  int64_t context_first; /* of HELD_K, HELD_V */
  /* Test sums for exactness in any order: alone is 0 where they are, chain the inputs' sigma (with the sum's own where
   * that is not 0). */
  bool exact;
  /* Inputs in the order of the stage table: values, and their chain sigma (NULL: exact input). */
  const float *inputs[DFLASH_STAGE_INPUTS];
  const float *sigmas[DFLASH_STAGE_INPUTS];
  /* Outputs, each [rows * width], any may be NULL. value is f32, rounded once from f64. */
  float *value;
  float *alone;
  float *chain;                  /* own error and the inputs' */
  const struct DflashHalf *half; /* the oracle's own; NULL */
} DflashOracleCall;

DflashStatus dflash_oracle_stage(const DflashOracleCall *call, DflashError *error);

/* select: candidates by logit, the walk, plain tokens. logits [n_draft, head_width], hidden [n_draft,
 * selector_rank]; *_sigma their chain sigmas or NULL. `out` arrays are the caller's; alone and chain may be NULL.
 * forced_previous: NULL, or for every row the token to walk from instead of the row before's choice
 * ([n_draft], -1: the walk's own). NaN is DFLASH_NONFINITE. */
typedef struct DflashOracleSelect {
  const DflashGeometry *geometry;
  const DflashWeights *weights;
  DflashRunSizes sizes;
  int64_t anchor_token;
  const float *logits, *hidden, *logits_sigma, *hidden_sigma;
  const int32_t *forced_previous;
  DflashTokensValue *out;
  int32_t profile; /* DFLASH_PROFILE_*, of the scales; values are the exact ones */
} DflashOracleSelect;
DflashStatus dflash_oracle_select(const DflashOracleSelect *call, DflashError *error);

/* Score and its sigmas of one candidate after `previous`, for rows judged outside the walk. */
double dflash_oracle_score(const DflashOracleSelect *call, int64_t row, int32_t previous, int32_t candidate,
                           float *alone, float *chain);

/* Deviations of logits that a selector rounds as it takes them in: *sigma is [count], which free() releases, or NULL in
 * profiles that round none. */
DflashStatus dflash_oracle_logits_rounded(int32_t profile, const float *logits, int64_t count, float **sigma,
                                          DflashError *error);

/* Fills what a case lacks: every stage in data-flow order, context state, tokens, both scales. A value that is
 * already there is kept and used as the input of what follows; with recompute set it is also computed again and
 * `visit` is told both. */
typedef struct DflashEvaluate {
  const DflashGeometry *geometry;
  const DflashWeights *weights;
  DflashPool *pool;
  int32_t profile;                 /* DFLASH_PROFILE_*, of the case's values and scales (dflash_case_to_profile) */
  bool scales_alone, scales_chain; /* compute these where absent */
  bool values;                     /* compute values where absent (else their absence is an error) */
  bool recompute;
  int skip_context; /* 1: context.* stages of the last push and context_state are left as they are */
  /* Called after each stage (select included, with label "select"; the context state as HELD_K and HELD_V, with
   * labels "context_state.k/0"): stored is NULL when it was absent, computed when it was kept and not computed
   * again. Both are NULL for select, whose values visit_tokens shows. */
  void (*visit)(void *context, int32_t stage, int64_t layer, const char *label, const float *stored,
                const float *computed, int64_t count);
  void *visit_context;
  /* The same for select, called before visit. */
  void (*visit_tokens)(void *context, const DflashTokensValue *stored, const DflashTokensValue *computed);
} DflashEvaluate;
DflashStatus dflash_evaluate_case(const DflashEvaluate *options, DflashCase *c, DflashError *error);

#endif
