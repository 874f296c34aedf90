/* The dynamic causal convolution over the rows of one block. */
#include "reference.h"

typedef struct Conv {
  const DflashModel *model;
  const float *base;     /* [side, tap, channel] */
  const float *dynamic;  /* [row, side, tap, group] */
  const float *x;        /* [row, channel] */
  const float *residual; /* [row, channel], or NULL */
  int64_t side;          /* 0 before the sub-layer, 1 after it */
} Conv;

/* The terms of one element: coefficients and what they multiply. */
typedef struct Terms {
  float *coefficients, *values;
  int64_t count;
} Terms;

static void add_term(Terms *terms, float coefficient, float value) {
  terms->coefficients[terms->count] = coefficient;
  terms->values[terms->count++] = value;
}

/* Tap o reads the row o rows back; rows before the block's first count as zero. */
static void add_tap(const Conv *conv, int64_t row, int64_t channel, int64_t o, Terms *terms) {
  const DflashGeometry *g = &conv->model->geometry;
  const int64_t tap = conv->side * g->conv_kernel + o;
  const float base = conv->base[tap * g->hidden + channel];
  const float dynamic =
      conv->dynamic[row * dflash_geometry_kernel_width(g) + tap * dflash_geometry_groups(g) + channel / g->conv_group];
  const float x = conv->x[(row - o) * g->hidden + channel];
  if (conv->model->options.apart) {
    add_term(terms, base, x);
    add_term(terms, dynamic, x);
  } else {
    add_term(terms, base + dynamic, x);
  }
}

static float conv_at(const Conv *conv, int64_t row, int64_t channel) {
  const DflashGeometry *g = &conv->model->geometry;
  const bool residual_first = conv->model->options.apart && conv->residual != NULL;
  const float residual = conv->residual == NULL ? 0 : conv->residual[row * g->hidden + channel];
  Terms terms = {conv->model->taps, conv->model->taps + 2 * g->conv_kernel + 1, 0};
  if (residual_first) add_term(&terms, 1, residual);
  for (int64_t o = 0; o < g->conv_kernel && o <= row; o++) add_tap(conv, row, channel, o, &terms);
  const float sum = reference_dot(&conv->model->options.sums, terms.coefficients, terms.values, terms.count);
  return residual_first ? sum : residual + sum;
}

static void convolve(const Conv *conv, int64_t rows, float *out) {
  const int64_t hidden = conv->model->geometry.hidden;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < hidden; i++) out[r * hidden + i] = conv_at(conv, r, i);
}

/* attn.conv_in, mlp.conv_in: of the normed rows */
void reference_stage_conv(DflashModel *model, const DflashStageCall *call) {
  const float *base = reference_stage_weight(model, call->stage, call->layer)->data;
  const Conv conv = {model, base, .x = call->inputs[0], .dynamic = call->inputs[1], .side = 0};
  convolve(&conv, call->rows, call->output);
}

/* attn.out, mlp.out: residual + conv(what the sub-layer gave) */
void reference_stage_conv_residual(DflashModel *model, const DflashStageCall *call) {
  const float *base = reference_stage_weight(model, call->stage, call->layer)->data;
  const Conv conv = {model,    base, .residual = call->inputs[0], .x = call->inputs[1], .dynamic = call->inputs[2],
                     .side = 1};
  convolve(&conv, call->rows, call->output);
}
