/* Rank statistics when nothing differs: the sums of some of a set of ranks. Internal to the comparison. */
#ifndef DFLASH_TIME_COMPARE_RANK_H
#define DFLASH_TIME_COMPARE_RANK_H

#include <stdbool.h>
#include <stdint.h>

/* Ranks are doubled, so that those of equal values (a half between two) are whole numbers. */
typedef struct DflashRankLaw {
  int64_t most;  /* statistics are 0 .. most, doubled */
  double *below; /* [most + 1]: P(statistic <= i) */
} DflashRankLaw;

/* chosen >= 0: the sum over `chosen` of the ranks, all choices alike (Mann-Whitney); DFLASH_RANK_SIGNS: each rank is in
 * the sum or not, by a fair coin (Wilcoxon). Exact up to DFLASH_RANK_EXACT ranks, the normal law with the same mean and
 * variance above. false: memory is out. */
enum { DFLASH_RANK_SIGNS = -1, DFLASH_RANK_EXACT = 64 };
bool dflash_rank_law_open(DflashRankLaw *law, const int64_t *doubled, int64_t count, int64_t chosen);
void dflash_rank_law_close(DflashRankLaw *law);

/* The law of 1 .. count, no two alike. */
bool dflash_rank_law_plain(DflashRankLaw *law, int64_t count, int64_t chosen);

/* Two-sided: twice the smaller tail, 1 at most. */
double dflash_rank_law_p(const DflashRankLaw *law, int64_t statistic);
/* Of a plain law: the largest k so that the k-th smallest and the k-th largest of all shifts (Walsh averages, or
 * differences of pairs) enclose the true one but for `rate`. 0: not even the extremes do. */
int64_t dflash_rank_law_reach(const DflashRankLaw *law, int64_t count, int64_t chosen, double rate);

/* Doubled ranks of values (ties get their middle), by magnitude; returns whether there are ties. */
bool dflash_rank_values(const double *values, int64_t count, int64_t *doubled);

/* Smallest number of pairs, or of units a side, whose most extreme order has p <= rate. */
int64_t dflash_rank_least_pairs(double rate);
int64_t dflash_rank_least_side(double rate);

/* Standard normal: both-sided p of |z|, and the z that a share `below` lies under. */
double dflash_normal_p(double z);
double dflash_normal_point(double below);

#endif
