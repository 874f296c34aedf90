/* The dynamic causal convolution over the rows of one block. */
#include "reference.h"

typedef struct Conv {
  const DflashGeometry *geometry;
  const float *base;    /* [side, tap, channel] */
  const float *dynamic; /* [row, side, tap, group] */
  const float *x;       /* [row, channel] */
  int64_t side;         /* 0 before the sub-layer, 1 after it */
} Conv;

static Conv conv_of(const DflashModel *model, const DflashStageCall *call, int64_t side, const float *x,
                    const float *dynamic) {
  const float *base = reference_stage_weight(model, call->stage, call->layer)->data;
  return (Conv){&model->geometry, base, dynamic, x, side};
}

/* Tap o reads the row o rows back; rows before the block's first count as zero. */
static float conv_at(const Conv *conv, int64_t row, int64_t channel) {
  const DflashGeometry *g = conv->geometry;
  const int64_t groups = dflash_geometry_groups(g), group = channel / g->conv_group;
  const float *dynamic = conv->dynamic + row * dflash_geometry_kernel_width(g);
  float sum = 0;
  for (int64_t o = 0; o < g->conv_kernel && o <= row; o++) {
    const int64_t tap = conv->side * g->conv_kernel + o;
    const float coefficient = conv->base[tap * g->hidden + channel] + dynamic[tap * groups + group];
    sum += coefficient * conv->x[(row - o) * g->hidden + channel];
  }
  return sum;
}

/* attn.conv_in, mlp.conv_in: of the normed rows */
void reference_stage_conv(DflashModel *model, const DflashStageCall *call) {
  const Conv conv = conv_of(model, call, 0, call->inputs[0], call->inputs[1]);
  const int64_t hidden = model->geometry.hidden;
  for (int64_t r = 0; r < call->rows; r++)
    for (int64_t i = 0; i < hidden; i++) call->output[r * hidden + i] = conv_at(&conv, r, i);
}

/* attn.out, mlp.out: residual + conv(what the sub-layer gave) */
void reference_stage_conv_residual(DflashModel *model, const DflashStageCall *call) {
  const Conv conv = conv_of(model, call, 1, call->inputs[1], call->inputs[2]);
  const int64_t hidden = model->geometry.hidden;
  for (int64_t r = 0; r < call->rows; r++)
    for (int64_t i = 0; i < hidden; i++)
      call->output[r * hidden + i] = call->inputs[0][r * hidden + i] + conv_at(&conv, r, i);
}
