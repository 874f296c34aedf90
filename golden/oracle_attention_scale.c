/* The scale of attention. With o = sum p v, a change ds of a score moves o by p (v - o) ds; the terms below follow
 * that derivative. docs/error-scale.md derives each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "oracle_attention.h"
#include "oracle_half.h"
#include "oracle_math.h"

enum { CHANNEL_SUMS = 8, SHARED_SUMS = 13 };

/* Sums over keys, by channel; centred is p (v - o). */
typedef struct Channels {
  double *scored, *scored_inherited;     /* centred^2 times the score's variance */
  double *values;                        /* p^2 var(v) */
  double *squares;                       /* (p v)^2 */
  double *running, *path;                /* sum p v so far, and the squares of it */
  double *drift, *drift_max;             /* sum of centred so far, and its largest square */
  double *scored_shared, *values_shared; /* deviations that rows which are alike bring in common */
} Channels;

typedef struct Softmax {
  double denominator; /* roundings of sum p */
  double repeats;     /* of equal terms p v */
} Softmax;

bool dflash_head_scale_open(DflashHeadScale *s, int64_t dim, int64_t keys) {
  size_t padded = (size_t)((dim + DFLASH_TILE - 1) / DFLASH_TILE * DFLASH_TILE);
  s->tiles = dflash_tiles();
  s->own = dflash_alloc((size_t)dim, 3 * sizeof(double));
  s->score_own = dflash_alloc((size_t)keys, 2 * sizeof(double));
  s->channel = dflash_alloc((size_t)dim, DFLASH_HEAD_CHANNELS * sizeof(double));
  s->left = dflash_alloc(padded, DFLASH_PANEL * sizeof(double));
  s->right = dflash_alloc(padded, DFLASH_PANEL * sizeof(double));
  s->covariance = dflash_alloc(padded, padded * sizeof(double));
  if (!s->own || !s->score_own || !s->channel || !s->left || !s->right || !s->covariance) return false;
  s->inherited = s->own + dim, s->from_values = s->inherited + dim;
  s->score_inherited = s->score_own + keys;
  return true;
}

void dflash_head_scale_close(DflashHeadScale *s) {
  free(s->own);
  free(s->score_own);
  free(s->channel);
  free(s->left);
  free(s->right);
  free(s->covariance);
}

/* A score: a product of dim terms, the scale, the difference to the maximum, log2(e) in the exponent, exp. */
static void score_variances(DflashHeadScale *s, const DflashHead *head, double max) {
  double n = (double)head->dim, square_scale = head->scale * head->scale;
  for (int64_t j = 0; j < head->keys; j++) {
    double score = head->score[j], squares = square_scale * dflash_dot_squares(head->q, head->k[j], head->dim);
    double below = score - max;
    s->score_own[j] =
        dflash_partials(n, squares, score) + squares + 2 * score * score + 2 * below * below + DFLASH_FUNCTION(4);
    const float *sigma = head->k_sigma[j];
    s->score_inherited[j] = sigma ? square_scale * dflash_dot_squares(head->q, sigma, head->dim) : 0;
  }
}

/* What the key's errors have in common with those of other rows of the block. */
static void add_shared(const DflashHead *head, const Channels *sums, int64_t j, double like, double deviation) {
  const float *v = head->v[j], *sigma = head->v_sigma[j];
  double p = head->p[j] * like;
  for (int64_t i = 0; i < head->dim; i++) {
    sums->scored_shared[i] += p * (v[i] - head->mix[i]) * deviation;
    if (sigma) sums->values_shared[i] += p * (double)sigma[i];
  }
}

static double square(double x) { return x * x; }

/* Where moved codes put a score off by much, a weight changes by more than its derivative tells: the secant at ten
 * deviations, what q's errors do to this score included. Relative to p. */
static double far_variance(const DflashHead *head, double p, int64_t j, double inherited) {
  enum { DEVIATIONS = 10 };
  double q = head->q_sigma ? dflash_dot_squares(head->q_sigma, head->k[j], head->dim) : 0;
  double far = DEVIATIONS * sqrt(inherited + head->scale * head->scale * q);
  double grown = dflash_oracle_exp(fmin(far, 300));
  double change = grown / (1 - p + p * grown) - 1; /* of p, in units of p */
  return fmax(inherited, square(change / DEVIATIONS));
}

static void add_key(DflashHeadScale *s, const DflashHead *head, const Channels *sums, int64_t j) {
  double p = head->p[j], own = s->score_own[j], inherited = s->score_inherited[j];
  if (head->codes && inherited > 0) inherited = far_variance(head, p, j, inherited);
  const float *v = head->v[j], *sigma = head->v_sigma[j];
  double like = head->likeness && j >= head->context ? head->likeness[j - head->context] : 0;
  if (like > 0) add_shared(head, sums, j, like, sqrt(inherited));
  double apart = 1 - like * like, moved = 0;
  for (int64_t i = 0; i < head->dim; i++) {
    double term = p * v[i], centred = p * (v[i] - head->mix[i]);
    moved += centred * centred;
    sums->scored[i] += centred * centred * own;
    sums->scored_inherited[i] += centred * centred * inherited * apart;
    sums->squares[i] += term * term;
    sums->running[i] += term;
    sums->path[i] += sums->running[i] * sums->running[i];
    sums->drift[i] += centred;
    sums->drift_max[i] = fmax(sums->drift_max[i], sums->drift[i] * sums->drift[i]);
  }
  s->concentration += square(moved * (DFLASH_ROUNDING * own + inherited * apart));
  for (int64_t i = 0; sigma && i < head->dim; i++) sums->values[i] += p * p * ((double)sigma[i] * sigma[i]) * apart;
}

/* How many different rows v has, by a hash of their bits. */
static double distinct_values(const DflashHead *head) {
  DflashDistinct distinct = {0};
  for (int64_t j = 0; j < head->keys; j++) {
    uint32_t hash = 2166136261u, word;
    for (int64_t i = 0; i < head->dim; i++) {
      memcpy(&word, &head->v[j][i], sizeof word);
      hash = (hash ^ word) * 16777619u;
    }
    float key;
    memcpy(&key, &hash, sizeof key);
    dflash_distinct_add(&distinct, key);
  }
  return dflash_distinct_values(&distinct);
}

/* The denominator's roundings, relative to it. Few different scores make equal terms, which round alike; a single
 * one makes ones, whose sum is exact. */
static Softmax softmax_sums(const DflashHead *head) {
  double squares = 0, running = 0, path = 0, n = (double)head->keys;
  DflashDistinct distinct = {0};
  for (int64_t j = 0; j < head->keys; j++) {
    squares += head->p[j] * head->p[j];
    running += head->p[j];
    path += running * running;
    dflash_distinct_add(&distinct, (float)head->p[j]);
  }
  double values = dflash_distinct_values(&distinct);
  double denominator = values <= 1 ? 1 : dflash_repeats(n, values) * fmax(dflash_partials(n, squares, 1), path);
  return (Softmax){denominator, values < n ? dflash_repeats(n, values * distinct_values(head)) : 1};
}

/* cov_p(k_i, v_d) = sum p k_i (v_d - o_d), by panels of keys. */
static void load_panel(DflashHeadScale *s, const DflashHead *head, int64_t begin, int64_t count) {
  memset(s->left, 0, (size_t)(head->dim * DFLASH_PANEL) * sizeof *s->left);
  memset(s->right, 0, (size_t)(head->dim * DFLASH_PANEL) * sizeof *s->right);
  for (int64_t j = 0; j < count; j++) {
    const float *k = head->k[begin + j], *v = head->v[begin + j];
    double p = head->p[begin + j];
    for (int64_t i = 0; i < head->dim; i++) {
      s->left[i * DFLASH_PANEL + j] = p * k[i];
      s->right[i * DFLASH_PANEL + j] = v[i] - head->mix[i];
    }
  }
}

static void add_panel(DflashHeadScale *s, int64_t padded, int64_t count) {
  double tile[DFLASH_TILE * DFLASH_TILE];
  for (int64_t i = 0; i < padded; i += DFLASH_TILE)
    for (int64_t d = 0; d < padded; d += DFLASH_TILE) {
      s->tiles.f64(s->left + i * DFLASH_PANEL, s->right + d * DFLASH_PANEL, dflash_panel_round(count), tile);
      for (int r = 0; r < DFLASH_TILE; r++)
        for (int c = 0; c < DFLASH_TILE; c++) s->covariance[(i + r) * padded + d + c] += tile[r * DFLASH_TILE + c];
    }
}

/* q's errors move all scores of a head together: exact through the covariance. A q that is scaled first is rounded
 * once more, by itself. */
static void add_query(DflashHeadScale *s, const DflashHead *head) {
  int64_t padded = (head->dim + DFLASH_TILE - 1) / DFLASH_TILE * DFLASH_TILE;
  memset(s->covariance, 0, (size_t)(padded * padded) * sizeof *s->covariance);
  for (int64_t begin = 0; begin < head->keys; begin += DFLASH_PANEL) {
    int64_t count = head->keys - begin < DFLASH_PANEL ? head->keys - begin : DFLASH_PANEL;
    load_panel(s, head, begin, count);
    add_panel(s, padded, count);
  }
  for (int64_t i = 0; i < head->dim; i++) {
    double q = head->scale * head->q[i], sigma = head->q_sigma ? head->scale * s->query_stretch * head->q_sigma[i] : 0;
    double moved = 0;
    for (int64_t d = 0; d < head->dim; d++) {
      double covariance = square(s->covariance[i * padded + d]);
      s->own[d] += DFLASH_ROUNDING * q * q * covariance;
      s->inherited[d] += sigma * sigma * covariance;
      moved += covariance;
    }
    s->concentration += square(moved * (DFLASH_ROUNDING * q * q + sigma * sigma));
  }
}

/* The constants head_dim^-0.5 and log2(e) round once for all keys: half a unit each, in full, times
 * cov_p(score, v). */
static void add_constants(DflashHeadScale *s, const DflashHead *head) {
  double *shared = s->channel + CHANNEL_SUMS * head->dim;
  memset(shared, 0, (size_t)head->dim * sizeof *shared);
  for (int64_t j = 0; j < head->keys; j++)
    for (int64_t i = 0; i < head->dim; i++) shared[i] += head->score[j] * head->p[j] * (head->v[j][i] - head->mix[i]);
  double moved = 0;
  for (int64_t i = 0; i < head->dim; i++) {
    s->own[i] += DFLASH_ROUNDING * 2 * 3 * shared[i] * shared[i];
    moved += shared[i] * shared[i];
  }
  s->concentration += square(DFLASH_ROUNDING * 2 * 3 * moved);
}

static Channels sum_channels(DflashHeadScale *s, const DflashHead *head) {
  int64_t n = head->dim;
  double *at = s->channel;
  memset(at, 0, (size_t)(CHANNEL_SUMS * n) * sizeof *at);
  double *shared = at + SHARED_SUMS * n;
  memset(shared, 0, (size_t)(2 * n) * sizeof *shared);
  Channels sums = {at,         at + n,     at + 2 * n, at + 3 * n, at + 4 * n,
                   at + 5 * n, at + 6 * n, at + 7 * n, shared,     shared + n};
  for (int64_t j = 0; j < head->keys; j++) add_key(s, head, &sums, j);
  return sums;
}

void dflash_head_scale_run(DflashHeadScale *s, const DflashHead *head) {
  double max = -INFINITY, n = (double)head->keys;
  for (int64_t j = 0; j < head->keys; j++) max = fmax(max, head->score[j]);
  score_variances(s, head, max);
  s->query_stretch = 1;
  s->concentration = 0;
  if (head->half) dflash_half_scores(s, head);
  Channels sums = sum_channels(s, head);
  Softmax softmax = softmax_sums(head);
  double rescales = 1 + dflash_oracle_log(n); /* new maxima of n scores in random order */
  for (int64_t i = 0; i < head->dim; i++) {
    double o = head->mix[i], squares = sums.squares[i];
    double numerator = softmax.repeats * fmax(dflash_partials(n, squares, o), sums.path[i]) + squares;
    double online = rescales * ((DFLASH_FUNCTION(4) + 1) * sums.drift_max[i] + 2 * o * o);
    double roundings = sums.scored[i] + numerator + softmax.denominator * o * o + online + 2 * o * o;
    s->own[i] = DFLASH_ROUNDING * roundings + dflash_golden_rounding(o) + (squares > 0 ? n * DFLASH_FLUSH : 0);
    s->from_values[i] = sums.values[i] + sums.values_shared[i] * sums.values_shared[i];
    s->inherited[i] = sums.scored_inherited[i] + sums.scored_shared[i] * sums.scored_shared[i] + s->from_values[i];
  }
  add_constants(s, head);
  add_query(s, head);
  if (head->half) dflash_half_attention(s, head);
  double common = 0;
  for (int64_t i = 0; i < head->dim; i++) common += square(sums.scored_shared[i]);
  s->concentration += square(common);
  s->total = 0;
  for (int64_t i = 0; i < head->dim; i++) s->total += s->own[i] + s->inherited[i];
}
