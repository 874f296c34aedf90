/* Norms, and norms of heads with rotation. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "oracle_half.h"
#include "oracle_internal.h"
#include "oracle_kernel.h"
#include "oracle_math.h"
#include "oracle_scale.h"

/* One row x[n] that is divided by its root mean square. */
typedef struct Norm {
  const float *x, *sigma; /* sigma NULL: exact */
  int64_t n;
  double r;        /* 1 / sqrt(mean(x^2) + eps) */
  double own;      /* relative variance of r in f32, in roundings */
  double weighted; /* sum x^2 var(x) */
  double shrink;   /* of r, by errors that are no longer small beside x; else 1 */
} Norm;

/* r: the sum of squares counts half, relative to the sum; then the mean, eps itself, + eps, and a root within 4 units.
 */
static double root_roundings(const float *x, int64_t n, double sum) {
  DflashDistinct scratch;
  DflashRowFacts facts = dflash_row_facts(x, n, &scratch);
  if (facts.nonzero == 0) return 0;
  double fourths = dflash_dot_squares(x, x, n);
  double repeats = dflash_repeats(facts.nonzero, facts.distinct);
  double roundings = repeats * dflash_partials(facts.nonzero, fourths, sum) + fourths;
  return (roundings / (sum * sum) + 3) / 4 + DFLASH_FUNCTION(4);
}

static Norm norm_open(const DflashOracleCall *call, const float *x, const float *sigma, int64_t n) {
  Norm norm = {.x = x, .sigma = sigma, .n = n};
  double sum = dflash_dot(x, x, n);
  norm.r = 1 / sqrt(sum / (double)n + call->geometry->eps);
  if (!dflash_oracle_scaled(call)) return norm;
  norm.own = root_roundings(x, n, sum);
  if (sigma) norm.weighted = dflash_dot_squares(x, sigma, n);
  norm.shrink = dflash_half_shrink(call->half, sigma, n, norm.r);
  return norm;
}

static double variance_at(const Norm *norm, int64_t i) {
  return norm->sigma ? (double)norm->sigma[i] * norm->sigma[i] : 0;
}

/* Variance that an output y = r * sum_k gain_k x_k brings from x: x_k also moves r, by -r^3 x_k / n. At most two
 * gains differ from 0. */
static double inherited(const Norm *norm, double y, const int64_t at[2], const double gain[2]) {
  if (!norm->sigma) return 0;
  double pull = y * norm->r * norm->r / (double)norm->n, rest = norm->weighted, variance = 0;
  for (int k = 0; k < 2; k++) {
    if (at[k] < 0) continue;
    double x = norm->x[at[k]], slope = norm->r * gain[k] - pull * x;
    variance += slope * slope * variance_at(norm, at[k]);
    rest -= x * x * variance_at(norm, at[k]);
  }
  double first = variance + pull * pull * fmax(rest, 0), drawn = y * (1 - norm->shrink);
  return norm->shrink * norm->shrink * first + drawn * drawn;
}

/* A head's variance counts so often: in i8 a code that moves takes all its channels along one column of weights, and
 * the sum in a norm's derivative is not one of independent errors. */
static double moved_together(const DflashOracleCall *call) {
  int32_t stage = call->stage;
  bool head = stage == DFLASH_STAGE_CONTEXT_K || stage == DFLASH_STAGE_ATTN_Q || stage == DFLASH_STAGE_ATTN_K;
  return head && call->profile == DFLASH_PROFILE_I8 ? 3 : 1;
}

static void norm_row(const DflashOracleCall *call, const float *weight, int64_t row, int64_t n) {
  const float *sigma = call->chain && call->sigmas[0] ? call->sigmas[0] + row * n : NULL;
  Norm norm = norm_open(call, call->inputs[0] + row * n, sigma, n);
  for (int64_t i = 0; i < n; i++) {
    double y = norm.x[i] * norm.r * weight[i];
    double own = DFLASH_ROUNDING * (norm.own + 2) * y * y + dflash_golden_rounding(y);
    if (y != 0) own += DFLASH_FLUSH * (1 + (double)weight[i] * weight[i]);
    own += dflash_half_norm(call->half, y, weight[i]);
    double from = inherited(&norm, y, (int64_t[2]){i, -1}, (double[2]){weight[i], 0});
    dflash_oracle_put(call, row * n + i, y, own, from * moved_together(call), false);
  }
}

typedef struct Job {
  const DflashOracleCall *call;
  const float *weight;
  int64_t n, heads;
  double *turns; /* [rows][half][2]: cosine, sine; NULL on a layer without rotation */
} Job;

static void run_norm(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  (void)worker;
  for (int64_t row = begin; row < end; row++) norm_row(job->call, job->weight, row, job->n);
}

DflashStatus dflash_oracle_norm(const DflashOracleCall *call, DflashError *error) {
  (void)error;
  const DflashTensor *weight = dflash_stage_weight(call->weights, call->stage, call->layer);
  Job job = {.call = call, .weight = weight->data, .n = call->geometry->hidden};
  dflash_pool_run(call->pool, dflash_stage_rows(call->geometry, &call->sizes, call->stage), 1, run_norm, &job);
  return DFLASH_OK;
}

/* One output of a rotated pair, y = cosine * own half - sine * other half, both normed. */
static void put_rotated(const Job *job, const Norm *norm, int64_t base, int64_t i, int64_t other, double cosine,
                        double sine) {
  const float *w = job->weight;
  double a = cosine * (norm->x[i] * norm->r * w[i]), b = sine * (norm->x[other] * norm->r * w[other]);
  double y = a - b;
  double terms = (2 + 1 + DFLASH_FUNCTION(2)) * (a * a + b * b); /* norm's products, this product, cos and sin */
  double own = DFLASH_ROUNDING * (norm->own * y * y + terms + y * y) + dflash_golden_rounding(y);
  if (a != 0 || b != 0) own += DFLASH_FLUSH * (3 + (double)w[i] * w[i] + (double)w[other] * w[other]);
  own += dflash_half_rotated(job->call->half, a, b, w[i], w[other]);
  double from = inherited(norm, y, (int64_t[2]){i, other}, (double[2]){cosine * w[i], -sine * w[other]});
  dflash_oracle_put(job->call, base + i, y, own, from * moved_together(job->call), false);
}

static void rotate_head(const Job *job, int64_t row, int64_t head) {
  const DflashOracleCall *call = job->call;
  int64_t n = job->n, half = n / 2, base = (row * job->heads + head) * n;
  const float *sigma = call->chain && call->sigmas[0] ? call->sigmas[0] + base : NULL;
  Norm norm = norm_open(call, call->inputs[0] + base, sigma, n);
  const double *turn = job->turns + row * n;
  for (int64_t i = 0; i < half; i++) {
    put_rotated(job, &norm, base, i, i + half, turn[2 * i], turn[2 * i + 1]);
    put_rotated(job, &norm, base, i + half, i, turn[2 * i], -turn[2 * i + 1]);
  }
}

static void run_heads(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  (void)worker;
  for (int64_t item = begin; item < end; item++) {
    if (job->turns)
      rotate_head(job, item / job->heads, item % job->heads);
    else
      norm_row(job->call, job->weight, item, job->n);
  }
}

/* The angle is rounded to f32 twice, position and product: that is the contract. */
static void run_turns(void *context, int64_t begin, int64_t end, int worker) {
  const Job *job = context;
  (void)worker;
  int64_t half = job->n / 2;
  for (int64_t row = begin; row < end; row++)
    for (int64_t i = 0; i < half; i++) {
      float angle = (float)(job->call->position + row) * job->call->weights->inv_freq[i];
      double *turn = job->turns + row * job->n + 2 * i;
      dflash_oracle_sincos(angle, &turn[1], &turn[0]);
    }
}

DflashStatus dflash_oracle_head_norm(const DflashOracleCall *call, DflashError *error) {
  const DflashGeometry *g = call->geometry;
  const DflashTensor *weight = dflash_stage_weight(call->weights, call->stage, call->layer);
  Job job = {.call = call, .weight = weight->data, .n = g->head_dim};
  job.heads = call->stage == DFLASH_STAGE_ATTN_Q ? g->heads : g->kv_heads;
  int64_t rows = dflash_stage_rows(g, &call->sizes, call->stage);
  if (dflash_geometry_rotary(g, call->layer)) {
    job.turns = dflash_alloc((size_t)rows, (size_t)job.n * sizeof *job.turns);
    if (!job.turns) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for a rotation");
    dflash_pool_run(call->pool, rows, 1, run_turns, &job);
  }
  dflash_pool_run(call->pool, rows * job.heads, 1, run_heads, &job);
  free(job.turns);
  return DFLASH_OK;
}
