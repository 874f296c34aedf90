/* One value against its golden: classes first, then the score by the error scale, then where and in what pattern. */
#ifndef DFLASH_COMPARE_COMPARE_H
#define DFLASH_COMPARE_COMPARE_H

#include <stdbool.h>

#include "dflash/geometry.h"
#include "dflash/stages.h"
#include "dflash/status.h"
#include "model/case.h"

/* The one number of the project: score = max |got - golden| / (DFLASH_LAMBDA * sigma + floor). */
#define DFLASH_LAMBDA 10.0

enum {
  DFLASH_OUTCOME_PASS,
  DFLASH_OUTCOME_NEAR_TIE,    /* tokens differ where the golden's own decision was closer than its error */
  DFLASH_OUTCOME_COVERED,     /* not materialised: judged by the next stage that is */
  DFLASH_OUTCOME_NOT_TRUSTED, /* the golden proves little here: zeros, saturated, constant */
  DFLASH_OUTCOME_NOT_RUN,
  DFLASH_OUTCOME_UNSUPPORTED, /* the backend declined, with a reason */
  DFLASH_OUTCOME_UNAVAILABLE,
  DFLASH_OUTCOME_MISMATCH,
  DFLASH_OUTCOME_NONFINITE,
  DFLASH_OUTCOME_UNWRITTEN,    /* poison is still there */
  DFLASH_OUTCOME_OVERRUN,      /* a guard band is damaged */
  DFLASH_OUTCOME_UNREPEATABLE, /* two equal runs gave different bits, and the backend promises equal ones */
  DFLASH_OUTCOME_ERROR,        /* the backend returned an error */
  DFLASH_OUTCOME_CRASHED,
  DFLASH_OUTCOME_HUNG,
  DFLASH_OUTCOME_COUNT
};
const char *dflash_outcome_name(int outcome); /* "pass", "near tie", "not trusted", ... */
int dflash_outcome_find(const char *name);    /* -1 when unknown */
/* 1: something is wrong (mismatch and everything after it in the list). */
int dflash_outcome_is_failure(int outcome);

typedef struct DflashMetrics {
  double max_abs, max_rel, nmse, cosine;
  double max_ulp;
} DflashMetrics;

typedef struct DflashComparison {
  int outcome;
  double score; /* largest; infinity for a class failure */
  int64_t elements;
  int64_t bad;                  /* elements with a score above 1, or of a bad class */
  int64_t worst_row, worst_col; /* where the score is largest */
  int64_t first_row, first_col; /* the first bad element; -1 when none */
  float got, expected;          /* at the worst place */
  double sigma;                 /* there */
  double lambda;                /* the largest (difference - floor) / sigma of elements whose sigma is not 0; 0: none */
  int64_t scaled;               /* elements whose sigma is not 0 */
  DflashMetrics metrics;        /* over finite pairs */
  char place[128];              /* "row 3, head 5, channel 17", "row 0, side 1, tap 0, group 12" */
  char pattern[224];            /* of the bad elements, see compare/pattern.h; "" when none is bad */
  char cause[160];              /* what such a pattern usually comes from at this stage; "" when none is known */
} DflashComparison;

/* How a value was kept before it came here: a narrow type has rounded it once more. */
enum { DFLASH_STORED_F32, DFLASH_STORED_F16, DFLASH_STORED_BF16 };

typedef struct DflashCompareCall {
  const DflashGeometry *geometry;
  int32_t stage; /* for the names of places: heads, channels, groups */
  int64_t rows, width;
  int64_t position; /* of row 0; names rows of context.* stages */
  /* Of a part of the value's rows: which ones, below row_count, in any order. NULL: all. */
  const int64_t *row_ids;
  int64_t row_count;
  int storage; /* DFLASH_STORED_* of got */
  const float *got;
  const float *golden;
  const float *sigma; /* [rows * width]; NULL: exact, bits must agree (sigma 0) */
} DflashCompareCall;

/* floor = half the distance to the nearest other f32, plus 2^-149 where sigma > 0. A value stored in f16 or bf16 has
 * sigma^2 + spacing^2 / 12 for sigma^2 and half a spacing for floor, by the spacing of its type. +0 and -0 are equal.
 * NaN or infinity on either side: NONFINITE. Poison left in got (DFLASH_POISON_BITS): UNWRITTEN. Never loses a NaN. */
void dflash_compare_values(const DflashCompareCall *call, DflashComparison *out);

/* Share of zeros, of one constant value, of the largest magnitude repeated; not trusted above 30%. The reason in
 * *why (static text), NULL when trusted. */
int dflash_value_trusted(const float *values, int64_t count, const char **why);

/* Tokens. The golden's logits and scores with sigmas, the backend's tokens, and (for rows after a near tie) a
 * callback that scores the golden's candidates from another previous token. */
typedef struct DflashTokenCall {
  const DflashGeometry *geometry;
  DflashRunSizes sizes;
  int64_t anchor_token;
  const float *golden_logits; /* [n_draft, head_width] */
  const float *logits_sigma;  /* same shape; alone or chain as the mode asks; NULL: exact */
  const DflashTokensValue *golden;
  bool chain;                    /* which sigma of golden to use */
  const int32_t *chosen, *plain; /* the backend's, [n_draft] */
  const int32_t *candidates;     /* [n_draft, selector_top] or NULL when not given */
  const float *scores;           /* the same, or NULL */
  /* score and sigma of `candidate` in `row` after `previous` */
  double (*score)(void *context, int64_t row, int32_t previous, int32_t candidate, double *sigma);
  void *score_context;
} DflashTokenCall;

typedef struct DflashTokenVerdict {
  int outcome;       /* PASS, NEAR_TIE, MISMATCH, UNWRITTEN (an id out of range) */
  int64_t near_ties; /* rows decided within the error */
  int64_t row;       /* first wrong row, or first near tie; -1 */
  /* Largest |score - golden| / (lambda sigma + floor) where scores are given. Of a wrong token: how far the golden's
   * decision is beyond lambda sigma of what was compared, in units of that; infinite where that is 0. */
  double score;
  char message[256]; /* "row 3: chosen 517, golden 88, margin 0.021 is 41 times the error" */
} DflashTokenVerdict;

/* Same tokens pass. A different one passes as a near tie only when the golden's score (or, for candidate sets and
 * plain tokens, logit) of both was closer than lambda * sqrt(sigma_a^2 + sigma_b^2); later rows are then judged by the
 * walk continued from the backend's token. Equal logits must go to the lower id only where sigma is 0. Without
 * candidates one that leads by more than its error may still be none of the backend's: where its logit is a near tie
 * with one that the golden left out. */
void dflash_compare_tokens(const DflashTokenCall *call, DflashTokenVerdict *out);

#endif
