/* Times of a block with its groups, drawn with noise as machines have it. */
#ifndef DFLASH_TESTS_COMPARE_NOISE_H
#define DFLASH_TESTS_COMPARE_NOISE_H

#include <stdint.h>

enum { NOISE_GROUPS = 11, NOISE_UNITS = 64, NOISE_SAMPLES = 64 };

/* Standard deviations as shares. */
typedef struct Noise {
  const char *name;
  double within;   /* of one sample */
  double lag1;     /* correlation of neighbouring samples */
  double outliers; /* share of samples that take up to twice as long */
  double process;  /* of what a process has in common, for all groups alike */
  double group;    /* of what a group of a process has in common */
  double drift;    /* of what two processes that ran side by side have in common */
} Noise;

typedef struct NoisySide {
  double block[NOISE_UNITS], groups[NOISE_GROUPS][NOISE_UNITS]; /* medians of processes */
  double samples[NOISE_SAMPLES];                                /* of the block, in the last process */
} NoisySide;

typedef struct NoisyRun {
  NoisySide a, b;
} NoisyRun;

/* Draws `processes` a side, `samples` each; group `slow` (-1: none) of side B is slowed so that the block takes
 * 1 + by of its time. The same seed and number give the same times. */
void noise_draw(const Noise *noise, uint64_t seed, uint64_t number, int processes, int samples, int slow, double by,
                NoisyRun *run);

/* The part of the block that a group takes. */
double noise_group_share(int group);

#endif
