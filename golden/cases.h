/* Case kinds: what is pushed, truncated, reset, and which block follows. */
#ifndef DFLASH_GOLDEN_CASES_H
#define DFLASH_GOLDEN_CASES_H

#include "base/random.h"
#include "golden/generate.h"
#include "model/case.h"

/* Properties of a kind. */
enum {
  DFLASH_CASE_ZERO_ROW = 1, /* zero rows and groups in the inputs; untrusted stages are expected */
  DFLASH_CASE_OUTLIER = 2,  /* one very large value in a row */
  DFLASH_CASE_TIES = 4,     /* the drawn head repeats rows */
  DFLASH_CASE_INTEGER = 8,  /* exact data of its own */
  DFLASH_CASE_24BIT = 16,   /* exact data of its own */
  DFLASH_CASE_SMALL = 32,   /* rows whose mean square is about eps and below */
  DFLASH_CASE_EXACT = DFLASH_CASE_INTEGER | DFLASH_CASE_24BIT
};

int64_t dflash_case_kind_find(const char *name); /* -1 when unknown */
int dflash_case_kind_flags(size_t index);

/* The plan of a kind under a resolved recipe. NULL, or the reason why this geometry has no such case. */
const char *dflash_case_plan(size_t index, const DflashRecipe *recipe, DflashCasePlan *plan);

/* Kinds that patterns select ("main,window*"), as a comma-separated list of names; free() releases. Patterns leave
 * out kinds that the geometry has not, and exact kinds, whose weights are their own; a name that is given in full
 * must be possible. */
DflashStatus dflash_case_select(const DflashRecipe *recipe, const char *patterns, char **names, DflashError *error);

/* Walks a list that dflash_case_select made: *kind is its first name's, the result what follows it; NULL past the end.
 */
const char *dflash_case_next(const char *names, size_t *kind);

/* Rows of the head that repeat (period) and how many there are, so that ties fall at the cut of selector_top. */
const char *dflash_case_ties(const DflashGeometry *geometry, int64_t *period, int64_t *rows);

/* The stream of a part of a case: "cases/<name>/<part>". */
DflashRandom dflash_case_stream(uint64_t seed, const char *name, const char *part);

/* Draws taps and h of an opened case whose sizes and operations are set. stress: DFLASH_STRESS_* flags. */
DflashStatus dflash_case_fill(const DflashGeometry *geometry, const DflashWeights *weights, int flags, int stress,
                              uint64_t seed, DflashPool *pool, DflashCase *c, DflashError *error);

#endif
