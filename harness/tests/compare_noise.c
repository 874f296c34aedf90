#include "compare_noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

/* About the groups of a published geometry, in order of their size. */
static const double group_shares[NOISE_GROUPS] = {0.422, 0.274, 0.137, 0.052, 0.046, 0.034,
                                                  0.014, 0.014, 0.004, 0.002, 0.001};

double noise_group_share(int group) { return group_shares[group]; }

typedef struct Source {
  DflashRandom random;
  uint64_t at;
} Source;

static double uniform(Source *source) {
  return ((double)dflash_random_u32(source->random, source->at++) + 0.5) / 4294967296.0;
}

static double normal(Source *source) {
  const double radius = sqrt(-2 * log(uniform(source)));
  return radius * cos(6.283185307179586 * uniform(source));
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median(double *values, int n) {
  qsort(values, (size_t)n, sizeof *values, by_value);
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* One sample's disturbance, shared by the groups: what else the machine does hits the whole block. */
static void draw_process(const Noise *noise, Source *source, const double *level, int samples, NoisySide *side,
                         int at) {
  double sums[NOISE_SAMPLES], times[NOISE_GROUPS][NOISE_SAMPLES], state = normal(source);
  for (int s = 0; s < samples; s++) {
    state = noise->lag1 * state + sqrt(1 - noise->lag1 * noise->lag1) * normal(source);
    double hit = uniform(source) < noise->outliers ? 1 + uniform(source) : 1;
    sums[s] = 0;
    for (int g = 0; g < NOISE_GROUPS; g++) {
      times[g][s] = level[g] * hit * exp(noise->within * (state + 0.3 * normal(source)));
      sums[s] += times[g][s];
    }
    side->samples[s] = sums[s];
  }
  side->block[at] = median(sums, samples);
  for (int g = 0; g < NOISE_GROUPS; g++) side->groups[g][at] = median(times[g], samples);
}

static void draw_levels(const Noise *noise, Source *source, double common, int slow, double by, double *level) {
  const double process = common + noise->process * normal(source);
  for (int g = 0; g < NOISE_GROUPS; g++) {
    level[g] = 1e6 * group_shares[g];
    if (g == slow) level[g] *= 1 + by / group_shares[g];
    level[g] *= exp(process + noise->group * normal(source));
  }
}

void noise_draw(const Noise *noise, uint64_t seed, uint64_t number, int processes, int samples, int slow, double by,
                NoisyRun *run) {
  Source source = {dflash_random_stream(seed, noise->name), number << 24};
  double level[NOISE_GROUPS];
  for (int p = 0; p < processes; p++) {
    const double common = noise->drift * normal(&source);
    draw_levels(noise, &source, common, -1, 0, level);
    draw_process(noise, &source, level, samples, &run->a, p);
    draw_levels(noise, &source, common, slow, by, level);
    draw_process(noise, &source, level, samples, &run->b, p);
  }
}
