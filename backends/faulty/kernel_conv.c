/* The dynamic causal convolution over the rows of a block, before a sub-layer and after it. */
#include <math.h>

#include "backends/faulty/kernels.h"

typedef struct Conv {
  const FaultCall *call;
  const FaultConv *knobs;
  const float *base, *dynamic, *x;
  const float *h; /* the residual; NULL before the sub-layer */
  int64_t side, taps, hidden;
} Conv;

static float base_at(const Conv *c, int64_t row, int64_t tap, int64_t channel) {
  if (c->knobs->base != NULL) return c->knobs->base(c->call, c->base, row, c->side, tap, channel);
  return c->base[(c->side * c->call->model->geometry.conv_kernel + tap) * c->hidden + channel];
}

static float dynamic_at(const Conv *c, int64_t row, int64_t tap, int64_t channel) {
  const DflashGeometry *g = &c->call->model->geometry;
  if (c->knobs->dynamic != NULL) return c->knobs->dynamic(c->call, c->dynamic, row, c->side, tap, channel);
  const int64_t column = (c->side * g->conv_kernel + tap) * dflash_geometry_groups(g) + channel / g->conv_group;
  return c->dynamic[row * dflash_geometry_kernel_width(g) + column];
}

/* What a tap reads. Zero before the first row. */
static float source_at(const Conv *c, int64_t row, int64_t tap, int64_t channel) {
  const float *source = row >= tap ? c->x + (row - tap) * c->hidden + channel : NULL;
  if (c->knobs->source != NULL) source = c->knobs->source(c->call, c->x, row, tap, channel);
  if (source == NULL) return 0;
  return c->knobs->residual_inside && c->h != NULL ? *source + c->h[source - c->x] : *source;
}

static float multiply_add(const Conv *c, float a, float b, float sum) {
  return c->knobs->fused ? fmaf(a, b, sum) : sum + a * b;
}

static float add_tap(const Conv *c, int64_t row, int64_t tap, int64_t channel, float sum) {
  const float base = base_at(c, row, tap, channel), dynamic = dynamic_at(c, row, tap, channel);
  const float x = source_at(c, row, tap, channel);
  if (!c->knobs->apart) return multiply_add(c, base + dynamic, x, sum);
  return multiply_add(c, dynamic, x, multiply_add(c, base, x, sum));
}

static float residual_at(const Conv *c, int64_t row, int64_t channel) {
  if (c->h == NULL || c->knobs->residual_inside || c->knobs->no_residual) return 0;
  const float h =
      c->knobs->residual != NULL ? c->knobs->residual(c->call, c->h, row, channel) : c->h[row * c->hidden + channel];
  return c->knobs->residual_twice ? h + h : h;
}

static float conv_at(const Conv *c, int64_t row, int64_t channel) {
  const float residual = residual_at(c, row, channel);
  float sum = c->knobs->residual_first ? residual : 0;
  for (int64_t i = 0; i < c->taps; i++)
    sum = add_tap(c, row, c->knobs->taps_backwards ? c->taps - 1 - i : i, channel, sum);
  return c->knobs->residual_first ? sum : residual + sum;
}

DflashStatus fault_kernel_conv(FaultCall *call, const FaultConv *knobs) {
  const DflashStageCall *stage = &call->call;
  const bool after = stage->stage == DFLASH_STAGE_ATTN_OUT || stage->stage == DFLASH_STAGE_MLP_OUT;
  const DflashGeometry *g = &call->model->geometry;
  const Conv conv = {.call = call,
                     .knobs = knobs,
                     .base = fault_weight(call->model, stage->stage, stage->layer)->data,
                     .dynamic = stage->inputs[after ? 2 : 1],
                     .x = stage->inputs[after ? 1 : 0],
                     .h = after ? stage->inputs[0] : NULL,
                     .side = after,
                     .taps = knobs->taps != 0 && knobs->taps < g->conv_kernel ? knobs->taps : g->conv_kernel,
                     .hidden = g->hidden};
  for (int64_t r = 0; r < stage->rows; r++)
    for (int64_t i = 0; i < g->hidden; i++) stage->output[r * g->hidden + i] = conv_at(&conv, r, i);
  return DFLASH_OK;
}
