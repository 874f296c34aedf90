/* got as the golden with one number applied to all of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare/relation.h"
#include "compare/score.h"

typedef struct Named {
  double factor;
  const char *name;
} Named;

/* got = factor * golden + offset, with got's own rounding. */
static bool fits_line(const DflashBadSample *sample, double factor, double offset) {
  const DflashCompareCall *call = sample->call;
  DflashTrial trial = {0};
  for (int64_t i = 0; i < sample->count && !dflash_trial_failed(&trial); i++) {
    int64_t at = sample->at[i];
    double sigma = hypot(factor * dflash_sample_sigma(sample, at), dflash_spacing(call->got[at]));
    dflash_trial_add(&trial, sample, at, factor * (double)call->golden[at] + offset, sigma);
  }
  return dflash_trial_convinces(&trial, sample->count);
}

/* Least squares, each element weighted by what it may be off by. */
static double weight_of(const DflashBadSample *sample, int64_t at) {
  double allowed = hypot(dflash_sample_sigma(sample, at), dflash_spacing(sample->call->golden[at]));
  return 1 / (allowed * allowed);
}

static double fit_factor(const DflashBadSample *sample) {
  const DflashCompareCall *call = sample->call;
  double above = 0, below = 0;
  for (int64_t i = 0; i < sample->count; i++) {
    double golden = (double)call->golden[sample->at[i]], weight = weight_of(sample, sample->at[i]);
    above += weight * (double)call->got[sample->at[i]] * golden;
    below += weight * golden * golden;
  }
  return below > 0 ? above / below : 0;
}

static double fit_offset(const DflashBadSample *sample) {
  const DflashCompareCall *call = sample->call;
  double above = 0, below = 0;
  for (int64_t i = 0; i < sample->count; i++) {
    double weight = weight_of(sample, sample->at[i]);
    above += weight * ((double)call->got[sample->at[i]] - (double)call->golden[sample->at[i]]);
    below += weight;
  }
  return below > 0 ? above / below : 0;
}

static void name_factor(const DflashGeometry *g, double factor, char *text, size_t size) {
  double dim = (double)g->head_dim, rep = (double)dflash_geometry_rep(g);
  const Named named[] = {{2, "2"},
                         {0.5, "1/2"},
                         {4, "4"},
                         {0.25, "1/4"},
                         {8, "8"},
                         {0.125, "1/8"},
                         {16, "16"},
                         {0.0625, "1/16"},
                         {127.0 / 128, "127/128"},
                         {128.0 / 127, "128/127"},
                         {sqrt(dim), "sqrt(head_dim)"},
                         {1 / sqrt(dim), "1/sqrt(head_dim)"},
                         {dim, "head_dim"},
                         {1 / dim, "1/head_dim"},
                         {rep, "heads/kv_heads"},
                         {1 / rep, "kv_heads/heads"}};
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
    if (fabs(fabs(factor) / named[i].factor - 1) < 2e-4) {
      snprintf(text, size, "got = %s%s * golden", factor < 0 ? "-" : "", named[i].name);
      return;
    }
  snprintf(text, size, "got = %.6g * golden", factor);
}

static int find_factor(const DflashBadSample *sample, char *text, size_t size) {
  double factor = fit_factor(sample);
  if (factor == 0 || !isfinite(factor) || !fits_line(sample, factor, 0)) return DFLASH_RELATION_NONE;
  if (fabs(factor + 1) < 2e-4) {
    snprintf(text, size, "sign flipped");
    return DFLASH_RELATION_NEGATED;
  }
  name_factor(sample->call->geometry, factor, text, size);
  return DFLASH_RELATION_FACTOR;
}

int dflash_relation_numbers(const DflashBadSample *sample, char *text, size_t size) {
  if (sample->got_most == 0) {
    snprintf(text, size, "zeros");
    return DFLASH_RELATION_ZERO;
  }
  bool several = sample->bad >= DFLASH_SAMPLE_LEAST;
  if (several && sample->got_least == sample->got_most && sample->beyond) {
    snprintf(text, size, "clipped at %.6g", sample->got_most);
    return DFLASH_RELATION_CLIPPED;
  }
  int found = find_factor(sample, text, size);
  if (found != DFLASH_RELATION_NONE) return found;
  double offset = fit_offset(sample);
  if (offset == 0 || !isfinite(offset) || !fits_line(sample, 1, offset)) return DFLASH_RELATION_NONE;
  snprintf(text, size, "got = golden %c %.6g", offset < 0 ? '-' : '+', fabs(offset));
  return DFLASH_RELATION_OFFSET;
}
