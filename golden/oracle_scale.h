/* Building blocks of the error scale: variances of f32 arithmetic, in float64. docs/error-scale.md derives them. */
#ifndef DFLASH_GOLDEN_ORACLE_SCALE_H
#define DFLASH_GOLDEN_ORACLE_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* Variance of one rounding to f32 of a value of size 1: at most half a unit, uniformly. */
#define DFLASH_ROUNDING (0x1p-48 / 3)
/* The same for results below the smallest normal number, which may be flushed to zero. */
#define DFLASH_FLUSH (0x1p-252 / 3)

/* Relative variance of a function whose error is bounded by so many units of the last place, in roundings of size
 * 1: a unit is at most 2^-23 of the value, and the bound counts as three standard deviations. */
#define DFLASH_FUNCTION(units) ((units) * (units) * (4.0 / 3))

/* sum over k <= n of the expected square of the partial sum s_k of n terms in random order, given the sum of the
 * terms' squares and the whole sum. */
static inline double dflash_partials(double n, double squares, double sum) {
  return n / 6 * squares + (n / 3 + 0.5) * sum * sum;
}

/* Variance of rounding a value to f32 once: spacing^2 / 12. */
double dflash_golden_rounding(double value);

/* (a * scale)^2 for values of any size: the power of two nearest below max, inverted; 1 when max is 0 or not finite. */
double dflash_power_scale(double max);

/* A standard deviation as f32. */
float dflash_sigma(double variance);

/* Counts distinct magnitudes up to a limit. All zero bits is an empty set. */
enum { DFLASH_DISTINCT_LIMIT = 1024, DFLASH_DISTINCT_SLOTS = 2048 };
typedef struct DflashDistinct {
  int64_t count; /* of distinct magnitudes other than 0; stops at DFLASH_DISTINCT_LIMIT */
  uint32_t slots[DFLASH_DISTINCT_SLOTS];
} DflashDistinct;
void dflash_distinct_add(DflashDistinct *set, float value);
static inline bool dflash_distinct_full(const DflashDistinct *set) { return set->count >= DFLASH_DISTINCT_LIMIT; }

/* How often each term occurs in a sum of n terms that take at most `values` values: equal terms round alike, so
 * their errors add up linearly. At least 1. */
static inline double dflash_repeats(double n, double values) { return values < n ? n / (values > 1 ? values : 1) : 1; }

/* Values other than 0 in a row, and how many different magnitudes they take. */
typedef struct DflashRowFacts {
  double nonzero, distinct; /* distinct is infinite from DFLASH_DISTINCT_LIMIT on */
} DflashRowFacts;
DflashRowFacts dflash_row_facts(const float *values, int64_t count, DflashDistinct *scratch);
/* The least relative variance of a row's elements other than 0: what all of them may have in common, as when a norm's
 * factor errs for the whole row. 0 for a row of zeros. */
double dflash_row_common(const float *values, const float *sigma, int64_t count);
double dflash_distinct_values(const DflashDistinct *set); /* infinite when full */

/* Exponent of the lowest bit set; INT_MAX for 0, and for values that are not finite. */
int dflash_lowest_bit(double value);

/* Terms w[i] * x[i] whose partial sums f32 holds exactly in any order: all are multiples of one power of two, no
 * sum of magnitudes exceeds 2^24 of it, and no product is subnormal. */
typedef struct DflashExactSum {
  int lowest; /* start at INT_MAX */
  double magnitude;
} DflashExactSum;
void dflash_exact_add(DflashExactSum *sum, double a, double b);
bool dflash_exact_holds(const DflashExactSum *sum);

#endif
