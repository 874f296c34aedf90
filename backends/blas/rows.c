/* Norms, rotation and convolution: row by row, sums in f64. */
#include <math.h>

#include "run.h"

int64_t dflash_grain(int64_t work) { return 1 + 32768 / (work > 0 ? work : 1); }

enum { SUMS = 8 }; /* independent sums, for the compiler's vectors */

static double sum_of_squares(const float *x, int64_t count) {
  double sums[SUMS] = {0};
  int64_t i = 0;
  for (; i + SUMS <= count; i += SUMS)
    for (int l = 0; l < SUMS; l++) sums[l] += (double)x[i + l] * x[i + l];
  for (; i < count; i++) sums[0] += (double)x[i] * x[i];
  for (int l = 1; l < SUMS; l++) sums[0] += sums[l];
  return sums[0];
}

static double inverse_norm(const float *x, int64_t count, double eps) {
  return 1.0 / sqrt(sum_of_squares(x, count) / (double)count + eps);
}

typedef struct Norm {
  const float *x, *weight;
  float *out;
  int64_t width;
  double eps;
} Norm;

static void norm_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Norm *n = context;
  (void)worker;
  for (int64_t r = begin; r < end; r++) {
    const float *x = n->x + r * n->width;
    const double scale = inverse_norm(x, n->width, n->eps);
    for (int64_t i = 0; i < n->width; i++) n->out[r * n->width + i] = (float)(x[i] * scale * n->weight[i]);
  }
}

void dflash_run_norm(const DflashRun *run, const float *x, const float *weight, float *out) {
  const DflashGeometry *g = &run->model->geometry;
  Norm norm = {x, weight, out, g->hidden, g->eps};
  dflash_pool_run(run->model->pool, run->rows, dflash_grain(2 * g->hidden), norm_rows, &norm);
}

/* ---- heads ---- */

typedef struct Heads {
  const DflashRun *run;
  const float *x, *weight;
  float *out;
  int64_t heads;
  int rotates;
} Heads;

/* cos and sin, by the f64 library, of the angle that is rounded to f32 once. */
static void fill_turns(const float *inv_freq, int64_t half, int64_t position, double *turns) {
  for (int64_t i = 0; i < half; i++) {
    const float angle = (float)position * inv_freq[i];
    turns[2 * i] = cos((double)angle);
    turns[2 * i + 1] = sin((double)angle);
  }
}

static void norm_head(const float *x, const float *weight, int64_t dim, double scale, const double *turns, float *out) {
  const int64_t half = dim / 2;
  for (int64_t i = 0; i < half; i++) {
    const double lo = x[i] * scale * weight[i], hi = x[i + half] * scale * weight[i + half];
    out[i] = (float)(turns ? lo * turns[2 * i] - hi * turns[2 * i + 1] : lo);
    out[i + half] = (float)(turns ? hi * turns[2 * i] + lo * turns[2 * i + 1] : hi);
  }
}

static void head_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Heads *h = context;
  const DflashGeometry *g = &h->run->model->geometry;
  double *turns = h->rotates ? dflash_workspace_worker(h->run->workspace, worker).turns : NULL;
  for (int64_t r = begin; r < end; r++) {
    if (turns) fill_turns(h->run->model->inv_freq, g->head_dim / 2, h->run->position + r, turns);
    for (int64_t head = 0; head < h->heads; head++) {
      const int64_t at = (r * h->heads + head) * g->head_dim;
      norm_head(h->x + at, h->weight, g->head_dim, inverse_norm(h->x + at, g->head_dim, g->eps), turns, h->out + at);
    }
  }
}

void dflash_run_heads(const DflashRun *run, int64_t layer, const float *x, int64_t heads, const float *weight,
                      float *out) {
  const DflashGeometry *g = &run->model->geometry;
  Heads h = {run, x, weight, out, heads, dflash_geometry_rotary(g, layer)};
  dflash_pool_run(run->model->pool, run->rows, dflash_grain(4 * heads * g->head_dim), head_rows, &h);
}

/* ---- convolution ---- */

typedef struct Conv {
  const DflashGeometry *geometry;
  const float *x, *kernel, *base, *residual; /* kernel and base of the side */
  float *out;
} Conv;

/* out += (base + coefficient of the group) * x */
static void add_tap(const DflashGeometry *g, const float *base, const float *coefficients, const float *restrict x,
                    float *restrict out) {
  const int64_t groups = dflash_geometry_groups(g), width = g->conv_group;
  for (int64_t group = 0; group < groups; group++)
    for (int64_t i = group * width; i < (group + 1) * width; i++) out[i] += (base[i] + coefficients[group]) * x[i];
}

static void conv_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Conv *c = context;
  const DflashGeometry *g = c->geometry;
  const int64_t groups = dflash_geometry_groups(g);
  (void)worker;
  for (int64_t r = begin; r < end; r++) {
    float *out = c->out + r * g->hidden;
    for (int64_t i = 0; i < g->hidden; i++) out[i] = 0;
    for (int64_t o = 0; o < g->conv_kernel && o <= r; o++)
      add_tap(g, c->base + o * g->hidden, c->kernel + r * dflash_geometry_kernel_width(g) + o * groups,
              c->x + (r - o) * g->hidden, out);
    for (int64_t i = 0; c->residual && i < g->hidden; i++) out[i] += c->residual[r * g->hidden + i];
  }
}

void dflash_run_conv(const DflashRun *run, const float *x, const float *kernel, const float *base, int side,
                     const float *residual, float *out) {
  const DflashGeometry *g = &run->model->geometry;
  Conv conv = {g,
               x,
               kernel + side * g->conv_kernel * dflash_geometry_groups(g),
               base + side * g->conv_kernel * g->hidden,
               residual,
               out};
  dflash_pool_run(run->model->pool, run->rows, dflash_grain(g->hidden * g->conv_kernel), conv_rows, &conv);
}
