/* Attention with operands of 16 bits: q, K and V rounded on entry, p rounded before its product with V. */
#include <math.h>
#include <string.h>

#include "oracle_half.h"
#include "oracle_scale.h"

/* Sums over keys, by channel. Known: the error itself, of rounding just that operand. */
typedef struct Channels {
  double *squares, *power;       /* (p v)^2, p v^2 */
  double *varied;                /* p var(v) */
  double *p_plain, *p_centred;   /* var(p) v^2, var(p) (v - o)^2 */
  double *known_v, *known_k;     /* sum p dv, sum p (v - o) ds */
  double *known_p, *known_parts; /* sum dp v, with p divided before or after */
  double *least, *most;          /* of v */
} Channels;

/* sum dp, the same two ways: what a denominator of rounded p sees. */
typedef struct Denominators {
  double p, parts;
} Denominators;

static double largest_p(const DflashHead *head) {
  double max = 0;
  for (int64_t j = 0; j < head->keys; j++) max = fmax(max, head->p[j]);
  return max;
}

static double score_variance(const DflashHead *head, int64_t j, double *both) {
  double sum = 0, scale = head->scale * head->scale;
  const float *k = head->k[j], *q_sigma = head->q_sigma, *k_sigma = head->k_sigma[j];
  *both = 0;
  for (int64_t i = 0; q_sigma && i < head->dim; i++) {
    double q = (double)q_sigma[i] * q_sigma[i];
    sum += q * ((double)k[i] * k[i]);
    if (k_sigma) *both += q * ((double)k_sigma[i] * k_sigma[i]);
  }
  *both *= scale;
  return sum * scale;
}

/* How much more a key's error d of its score counts than to first order: p (1 - p) d, of a change that is
 * p (1 - p) (e^d - 1) / (1 + p (e^d - 1)); taken at four deviations, so that four of the error stay within four of
 * sigma.
 */
static double stretch(double p, double variance) {
  double far = fmin(4 * sqrt(variance), 300), growth = expm1(far);
  return variance > 0 ? fmax(1, growth / (far * (1 + p * growth))) : 1;
}

/* The queries' errors move all scores: by the mean of the keys, as far as they move the output. */
void dflash_half_scores(DflashHeadScale *s, const DflashHead *head) {
  double sum = 0, weights = 0;
  for (int64_t j = 0; j < head->keys; j++) {
    double both, q = score_variance(head, j, &both), from_k = s->score_inherited[j] + both, p = head->p[j];
    double factor = stretch(p, from_k + q);
    s->score_inherited[j] = from_k * factor * factor;
    sum += p * (1 - p) * factor;
    weights += p * (1 - p);
  }
  s->query_stretch = weights > 0 ? sum / weights : 1;
}

static double rounding_error(const DflashHalf *half, double value) {
  return dflash_half_round(half->profile, (float)value) - (double)(float)value;
}

static double known_score(const DflashHead *head, int64_t j) {
  double sum = 0;
  for (int64_t i = 0; i < head->dim; i++) sum += head->q[i] * rounding_error(head->half, head->k[j][i]);
  return head->scale * sum;
}

static void add_key(const DflashHead *head, const Channels *sums, int64_t j, double max, Denominators *denominators) {
  const DflashHalf *half = head->half;
  double p = head->p[j], part = max > 0 ? p / max : 0;
  double dp = rounding_error(half, p), dpart = max * rounding_error(half, part);
  double variance = fmax(dflash_half_operand(half->profile, (float)p, 1),
                         max * max * dflash_half_operand(half->profile, (float)part, 1));
  double ds = half->rounded[1] ? known_score(head, j) : 0;
  const float *v = head->v[j];
  denominators->p += dp;
  denominators->parts += dpart;
  for (int64_t i = 0; i < head->dim; i++) {
    double value = v[i], centred = value - head->mix[i];
    sums->p_plain[i] += variance * value * value;
    sums->p_centred[i] += variance * centred * centred;
    if (half->rounded[2]) sums->known_v[i] += p * rounding_error(half, value);
    sums->known_k[i] += p * centred * ds;
    sums->known_p[i] += dp * value;
    sums->known_parts[i] += dpart * value;
    sums->least[i] = fmin(sums->least[i], value);
    sums->most[i] = fmax(sums->most[i], value);
  }
}

static void add_values(const DflashHead *head, const Channels *sums, int64_t j) {
  const float *v = head->v[j], *sigma = head->v_sigma[j];
  double p = head->p[j];
  for (int64_t i = 0; i < head->dim; i++) {
    double variance = sigma ? (double)sigma[i] * sigma[i] : 0;
    sums->squares[i] += p * v[i] * (p * v[i]);
    sums->power[i] += p * v[i] * v[i];
    sums->varied[i] += p * variance;
  }
}

static Channels open_channels(DflashHeadScale *s, const DflashHead *head) {
  int64_t n = head->dim;
  double *at = s->channel;
  memset(at, 0, (size_t)(DFLASH_HEAD_CHANNELS * n) * sizeof *at);
  Channels sums = {at,         at + n,     at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n,
                   at + 6 * n, at + 7 * n, at + 8 * n, at + 9 * n, at + 10 * n};
  for (int64_t i = 0; i < n; i++) sums.least[i] = INFINITY, sums.most[i] = -INFINITY;
  return sums;
}

static double square(double x) { return x * x; }

/* p may be rounded for the numerator alone, or for both. */
static double p_variance(const Channels *sums, int64_t i, double o, Denominators d) {
  double chance = fmax(sums->p_plain[i], sums->p_centred[i]);
  double divided = fmax(square(sums->known_p[i]), square(sums->known_p[i] - o * d.p));
  double parts = fmax(square(sums->known_parts[i]), square(sums->known_parts[i] - o * d.parts));
  return fmax(chance, fmax(divided, parts));
}

/* Of a query that is rounded once more after its product with the scale (all but f16, which rounds it just once), and
 * the known error of rounding it on entry. */
static double query_variance(const DflashHeadScale *s, const DflashHead *head, int64_t i, double *known) {
  int64_t padded = (head->dim + DFLASH_TILE - 1) / DFLASH_TILE * DFLASH_TILE;
  const DflashHalf *half = head->half;
  double squares = 0;
  *known = 0;
  for (int64_t k = 0; k < head->dim; k++) {
    double slope = head->scale * s->covariance[k * padded + i], q = head->q[k];
    squares += square(slope * q);
    if (half->rounded[0])
      *known += slope * ((double)dflash_half_round_shifted(half->profile, head->q[k], half->shift[0]) - q);
  }
  return dflash_half_between(half, squares);
}

/* How much of V all keys have in common. So much of the rows that V comes from they have in common, too, and a weight's
 * rounding error does the same to it in every key: it is not averaged away. */
static double common_part(const DflashHead *head, const Channels *sums) {
  double mix = 0, power = 0;
  for (int64_t i = 0; i < head->dim; i++) mix += square(head->mix[i]), power += sums->power[i];
  return power > 0 ? mix / power : 0;
}

/* Whatever the scores are off by, the output stays among the values: half their range is a bound on its deviation. */
void dflash_half_attention(DflashHeadScale *s, const DflashHead *head) {
  double max = largest_p(head), known_q;
  Denominators denominators = {0, 0};
  Channels sums = open_channels(s, head);
  for (int64_t j = 0; j < head->keys; j++) {
    add_key(head, &sums, j, max, &denominators);
    add_values(head, &sums, j);
  }
  double shared = head->half->rounded[2] ? 0 : head->half->shared * common_part(head, &sums);
  double moved = 0; /* by errors of scores, all channels together */
  for (int64_t i = 0; i < head->dim; i++) {
    double o = head->mix[i], bound = square(sums.most[i] - sums.least[i]) / 4;
    double own = query_variance(s, head, i, &known_q);
    double scores = fmax(s->inherited[i] - s->from_values[i], square(known_q) + square(sums.known_k[i]));
    double values = dflash_half_lost(head->half, s->from_values[i], sums.squares[i], o);
    values = fmax(values, shared * sums.varied[i]);
    s->own[i] += fmin(own, bound) + p_variance(&sums, i, o, denominators) + dflash_half_output(head->half, o);
    s->inherited[i] = fmin(scores, bound) + fmax(values, square(sums.known_v[i]));
    moved += fmin(own, bound) + fmin(scores, bound);
  }
  s->concentration = fmax(s->concentration, square(moved));
}
