/* The convolution over rows: alone before a sub-layer, and after it with the residual stream. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

#include "oracle_half.h"
#include "oracle_internal.h"
#include "oracle_likeness.h"
#include "oracle_scale.h"

typedef struct Job {
  const DflashOracleCall *call;
  const float *base;           /* [conv_kernel, hidden] of this side */
  const float *stream, *x, *d; /* stream NULL before a sub-layer */
  const float *stream_sigma, *x_sigma, *d_sigma;
  double *likeness;                            /* [rows] of x; NULL: x has no errors */
  int64_t hidden, kernel, group, first, width; /* first: this side's first column of d; width: of a row of d */
} Job;

typedef struct Sum {
  double value, parts, products, inherited; /* parts: squares of base x and d x; products: of (base + d) x */
  double independent;                       /* of inherited, what x's errors bring when each is its own */
  double shared, apart; /* deviation that x's errors bring in common, and variance that they bring each */
  double gains;         /* variance of rounding base to 16 bits */
  int terms;
  DflashExactSum exact;
} Sum;

static double square(double x) { return x * x; }

static double variance(const float *sigma, int64_t at) { return sigma ? square(sigma[at]) : 0; }

/* Errors of rows that are alike add up linearly over the taps. */
static void add_likeness(const Job *job, Sum *sum, double coefficient, int64_t x_at) {
  double like = job->likeness[x_at / job->hidden], deviation = coefficient * (double)job->x_sigma[x_at];
  sum->shared += like * deviation;
  sum->apart += (1 - like * like) * deviation * deviation;
}

/* By how much that exceeds errors that are independent. */
static double excess_of_likeness(const Sum *sum) {
  return fmax(0, sum->shared * sum->shared + sum->apart - sum->independent);
}

static void add_tap(const Job *job, Sum *sum, double base, int64_t x_at, int64_t d_at) {
  double x = job->x[x_at], d = job->d[d_at], product = (base + d) * x;
  sum->value += product;
  if (!dflash_oracle_scaled(job->call)) return;
  sum->parts += square(base * x) + square(d * x);
  sum->products += square(product);
  sum->independent += square(base + d) * variance(job->x_sigma, x_at);
  sum->inherited += square(base + d) * variance(job->x_sigma, x_at) + square(x) * variance(job->d_sigma, d_at);
  if (job->likeness) add_likeness(job, sum, base + d, x_at);
  if (job->call->half) sum->inherited += variance(job->x_sigma, x_at) * variance(job->d_sigma, d_at);
  sum->gains += dflash_half_gain(job->call->half, (float)base) * square(base * x);
  sum->terms += 2;
  if (!job->call->exact) return;
  dflash_exact_add(&sum->exact, base, x);
  dflash_exact_add(&sum->exact, d, x);
}

static void add_stream(const Job *job, Sum *sum, int64_t at) {
  double h = job->stream[at];
  sum->value += h;
  sum->parts += square(h);
  sum->inherited += variance(job->stream_sigma, at);
  sum->terms++;
  if (job->call->exact) dflash_exact_add(&sum->exact, h, 1);
}

/* base and d may be added first or multiplied apart, and terms may be summed in any order. */
static double own_variance(const Job *job, const Sum *sum) {
  double roundings = dflash_partials(sum->terms, sum->parts, sum->value) + sum->parts + 2 * sum->products;
  double flush = sum->parts > 0 ? sum->terms * DFLASH_FLUSH : 0;
  double half =
      sum->gains + dflash_half_between(job->call->half, roundings) + dflash_half_output(job->call->half, sum->value);
  return DFLASH_ROUNDING * roundings + flush + dflash_golden_rounding(sum->value) + half;
}

static void conv_row(const Job *job, int64_t row) {
  for (int64_t i = 0; i < job->hidden; i++) {
    Sum sum = {.exact = {INT_MAX, 0}};
    for (int64_t tap = 0; tap < job->kernel && tap <= row; tap++) {
      int64_t column = job->first + tap * (job->hidden / job->group) + i / job->group;
      add_tap(job, &sum, job->base[tap * job->hidden + i], (row - tap) * job->hidden + i, row * job->width + column);
    }
    if (job->stream) add_stream(job, &sum, row * job->hidden + i);
    sum.inherited += excess_of_likeness(&sum);
    if (job->call->half) sum.inherited = dflash_half_lost(job->call->half, sum.inherited, sum.parts, sum.value);
    bool exact = job->call->exact && dflash_exact_holds(&sum.exact) && dflash_half_exact(job->call->half, &sum.exact);
    dflash_oracle_put(job->call, row * job->hidden + i, sum.value, own_variance(job, &sum), sum.inherited, exact);
  }
}

static void run_rows(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  for (int64_t row = begin; row < end; row++) conv_row(context, row);
}

DflashStatus dflash_oracle_conv(const DflashOracleCall *call, DflashError *error) {
  const DflashGeometry *g = call->geometry;
  const DflashTensor *base = dflash_stage_weight(call->weights, call->stage, call->layer);
  int side = call->stage == DFLASH_STAGE_ATTN_OUT || call->stage == DFLASH_STAGE_MLP_OUT;
  const float *const *in = call->inputs, *sigmas[DFLASH_STAGE_INPUTS] = {NULL};
  for (int i = 0; call->chain && i < DFLASH_STAGE_INPUTS; i++) sigmas[i] = call->sigmas[i];
  Job job = {.call = call, .hidden = g->hidden, .kernel = g->conv_kernel, .group = g->conv_group};
  job.base = (const float *)base->data + side * g->conv_kernel * g->hidden;
  job.x = in[side], job.x_sigma = sigmas[side];
  job.d = in[side + 1], job.d_sigma = sigmas[side + 1];
  if (side) job.stream = in[0], job.stream_sigma = sigmas[0];
  job.width = dflash_geometry_kernel_width(g);
  job.first = side * g->conv_kernel * dflash_geometry_groups(g);
  if (job.x_sigma) {
    job.likeness = dflash_alloc((size_t)call->sizes.rows, sizeof *job.likeness);
    if (!job.likeness) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for a convolution");
    dflash_likeness(job.x, call->sizes.rows, g->hidden, job.likeness);
  }
  dflash_pool_run(call->pool, call->sizes.rows, 1, run_rows, &job);
  free(job.likeness);
  return DFLASH_OK;
}
