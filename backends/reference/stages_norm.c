/* Norms, and the rotation of queries and keys that follows theirs. */
#include "reference.h"

#include <math.h>

/* rms(x, w) = x / sqrt(mean(x^2) + eps) * w */
static void norm_row(const DflashModel *model, const float *x, const float *weight, int64_t width, float *out) {
  const float squares = reference_dot(&model->options.sums, x, x, width);
  const float root = sqrtf(squares / (float)width + (float)model->geometry.eps);
  for (int64_t i = 0; i < width; i++) out[i] = x[i] / root * weight[i];
}

static void norm_rows(const DflashModel *model, const DflashStageCall *call, int64_t rows, int64_t width) {
  const float *weight = reference_stage_weight(model, call->stage, call->layer)->data;
  for (int64_t r = 0; r < rows; r++)
    norm_row(model, call->inputs[0] + r * width, weight, width, call->output + r * width);
}

void reference_stage_norm(DflashModel *model, const DflashStageCall *call) {
  norm_rows(model, call, call->rows, model->geometry.hidden);
}

/* Pairs (i, i + head_dim / 2) of every head turn by f32(position) * inv_freq[i], an f32 angle. Its sine and
 * cosine are taken in f64: angles reach 2^53, where a sine made for small angles is noise. */
static void rotate_row(const DflashModel *model, int64_t position, int64_t heads, float *row) {
  const int64_t head_dim = model->geometry.head_dim, half = head_dim / 2;
  for (int64_t i = 0; i < half; i++) {
    const double angle = (double)((float)position * model->inv_freq[i]);
    const float cosine = (float)cos(angle), sine = (float)sin(angle);
    for (int64_t head = 0; head < heads; head++) {
      float *lo = row + head * head_dim + i, *hi = lo + half;
      const float x = *lo, y = *hi;
      *lo = x * cosine - y * sine;
      *hi = y * cosine + x * sine;
    }
  }
}

/* context.k, attn.q and attn.k */
void reference_stage_norm_rotate(DflashModel *model, const DflashStageCall *call) {
  const DflashGeometry *g = &model->geometry;
  const int64_t heads = call->stage == DFLASH_STAGE_ATTN_Q ? g->heads : g->kv_heads;
  norm_rows(model, call, call->rows * heads, g->head_dim);
  if (!dflash_geometry_rotary(g, call->layer)) return;
  for (int64_t r = 0; r < call->rows; r++)
    rotate_row(model, call->position + r, heads, call->output + r * heads * g->head_dim);
}
