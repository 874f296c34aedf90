#include "blas_naive.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/stage_table.h"
#include "model/storage.h"

static const double UNIT = 0x1p-24;
static const double TINY = 0x1p-149;

const int32_t *naive_inputs(int32_t stage) { return dflash_stage_row(stage)->inputs; }
const char *naive_name(int32_t stage) { return dflash_stage_row(stage)->name; }
int naive_is_layered(int32_t stage) { return dflash_stage_row(stage)->scope == DFLASH_SCOPE_LAYER; }

static DflashRunSizes sizes_of(const NaiveRun *run) {
  return (DflashRunSizes){.rows = run->rows,
                          .n_draft = run->n_draft,
                          .head_width = run->head_width,
                          .push_rows = run->rows,
                          .context_len = run->context_len};
}

int64_t naive_count(const NaiveRun *run) {
  const DflashRunSizes sizes = sizes_of(run);
  return dflash_stage_rows(&run->model->geometry, &sizes, run->stage) *
         dflash_stage_width(&run->model->geometry, &sizes, run->stage);
}

const DflashTensor *naive_matrix(const TestModel *m, int32_t stage, int64_t layer) {
  const DflashLayerWeights *l = &m->layers[layer];
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_FC:
    return &m->weights.fc;
  case DFLASH_STAGE_CONTEXT_K_PROJ:
  case DFLASH_STAGE_ATTN_K_PROJ:
    return &l->k_proj;
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_ATTN_V_PROJ:
    return &l->v_proj;
  case DFLASH_STAGE_ATTN_KERNEL:
    return &l->attention_conv_kernel;
  case DFLASH_STAGE_ATTN_Q_PROJ:
    return &l->q_proj;
  case DFLASH_STAGE_ATTN_O_PROJ:
    return &l->o_proj;
  case DFLASH_STAGE_MLP_KERNEL:
    return &l->mlp_conv_kernel;
  case DFLASH_STAGE_MLP_GATE:
    return &l->gate_proj;
  case DFLASH_STAGE_MLP_UP:
    return &l->up_proj;
  case DFLASH_STAGE_MLP_DOWN:
    return &l->down_proj;
  case DFLASH_STAGE_HEAD_LOGITS:
    return &m->weights.head;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    return &m->weights.selector_hidden;
  default:
    return NULL;
  }
}

/* n roundings of the sum, one of the weight, one of a folded column field, one of the result. */
static void naive_product(const DflashTensor *tensor, const float *x, int64_t rows, int64_t outputs, double *value,
                          double *bound) {
  const int64_t cols = dflash_tensor_cols(tensor);
  double *weights = dflash_alloc((size_t)cols, sizeof *weights);
  for (int64_t o = 0; o < outputs; o++) {
    dflash_tensor_row(tensor, o, 0, cols, weights);
    for (int64_t r = 0; r < rows; r++) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < cols; k++) {
        sum += weights[k] * x[r * cols + k];
        size += fabs(weights[k] * x[r * cols + k]);
      }
      value[r * outputs + o] = sum;
      bound[r * outputs + o] = (double)(cols + 3) * UNIT * size + TINY;
    }
  }
  free(weights);
}

static double mean_square(const float *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)x[i] * x[i];
  return sum / (double)count;
}

static void naive_norm(const float *x, const float *weight, int64_t rows, int64_t width, double eps, double *value,
                       double *bound) {
  for (int64_t r = 0; r < rows; r++) {
    const double scale = 1 / sqrt(mean_square(x + r * width, width) + eps);
    for (int64_t i = 0; i < width; i++) {
      value[r * width + i] = x[r * width + i] * scale * weight[i];
      bound[r * width + i] = 4 * UNIT * fabs(value[r * width + i]) + TINY;
    }
  }
}

static void naive_heads(const NaiveRun *run, const float *x, const float *weight, int64_t heads, double *value,
                        double *bound) {
  const DflashGeometry *g = &run->model->geometry;
  const int64_t d = g->head_dim, half = d / 2;
  const int rotary = dflash_geometry_rotary(g, run->layer);
  naive_norm(x, weight, run->rows * heads, d, g->eps, value, bound);
  for (int64_t h = 0; rotary && h < run->rows * heads; h++)
    for (int64_t i = 0; i < half; i++) {
      const int64_t own = run->position + h / heads;
      const float position = (float)own;
      const float angle = position * run->model->inv_freq[i];
      double *lo = value + h * d + i, *hi = lo + half;
      const double c = cos((double)angle), s = sin((double)angle), a = *lo, b = *hi;
      *lo = a * c - b * s;
      *hi = b * c + a * s;
      bound[h * d + i] = 6 * UNIT * (fabs(a * c) + fabs(b * s)) + TINY;
      bound[h * d + half + i] = 6 * UNIT * (fabs(b * c) + fabs(a * s)) + TINY;
    }
}

static void naive_conv(const NaiveRun *run, const float *x, const float *kernel, const DflashTensor *base, int side,
                       const float *residual, double *value, double *bound) {
  const DflashGeometry *g = &run->model->geometry;
  const int64_t groups = dflash_geometry_groups(g), width = dflash_geometry_kernel_width(g);
  for (int64_t r = 0; r < run->rows; r++)
    for (int64_t i = 0; i < g->hidden; i++) {
      double sum = residual ? residual[r * g->hidden + i] : 0, size = fabs(sum);
      for (int64_t o = 0; o < g->conv_kernel && o <= r; o++) {
        const int64_t tap = side * g->conv_kernel + o;
        const double b = dflash_tensor_at(base, tap, i), d = kernel[r * width + tap * groups + i / g->conv_group];
        sum += (b + d) * x[(r - o) * g->hidden + i];
        size += (fabs(b) + fabs(d)) * fabs((double)x[(r - o) * g->hidden + i]);
      }
      value[r * g->hidden + i] = sum;
      bound[r * g->hidden + i] = (double)(g->conv_kernel + 4) * UNIT * size + TINY;
    }
}

/* Keys of one query: the visible context, then the block's own rows. */
typedef struct Keys {
  const float *k[4096], *v[4096];
  int64_t count;
} Keys;

static void gather_keys(const NaiveRun *run, const float *const *in, int64_t row, int64_t kv, Keys *keys) {
  const DflashGeometry *g = &run->model->geometry;
  const int64_t window = dflash_geometry_window(g, run->layer), d = g->head_dim;
  keys->count = 0;
  for (int64_t p = run->context_first; p < run->context_first + run->context_len && p < run->position; p++) {
    if (window > 0 && p < run->position + row + 1 - window) continue;
    const int64_t at = ((p - run->context_first) * g->kv_heads + kv) * d;
    keys->k[keys->count] = in[3] + at;
    keys->v[keys->count++] = in[4] + at;
  }
  for (int64_t r = 0; r < run->rows; r++) {
    keys->k[keys->count] = in[1] + (r * g->kv_heads + kv) * d;
    keys->v[keys->count++] = in[2] + (r * g->kv_heads + kv) * d;
  }
}

static void naive_attend(const float *q, const Keys *keys, int64_t d, double *value, double *bound) {
  static double scores[4096];
  double largest = -INFINITY, slack = 0, total = 0;
  for (int64_t j = 0; j < keys->count; j++) {
    double sum = 0, size = 0;
    for (int64_t i = 0; i < d; i++) {
      sum += (double)q[i] * keys->k[j][i];
      size += fabs((double)q[i] * keys->k[j][i]);
    }
    scores[j] = sum / sqrt((double)d);
    slack = fmax(slack, (double)(d + 4) * UNIT * size / sqrt((double)d));
    largest = fmax(largest, scores[j]);
  }
  for (int64_t j = 0; j < keys->count; j++) total += scores[j] = exp(scores[j] - largest);
  for (int64_t i = 0; i < d; i++) {
    double size = 0;
    value[i] = 0;
    for (int64_t j = 0; j < keys->count; j++) {
      value[i] += scores[j] / total * keys->v[j][i];
      size += scores[j] / total * fabs((double)keys->v[j][i]);
    }
    bound[i] = (4 * slack + (double)(keys->count + 16) * UNIT) * size + TINY;
  }
}

static void naive_attention(const NaiveRun *run, const float *const *in, double *value, double *bound) {
  static Keys keys;
  const DflashGeometry *g = &run->model->geometry;
  for (int64_t r = 0; r < run->rows; r++)
    for (int64_t a = 0; a < g->heads; a++) {
      const int64_t at = (r * g->heads + a) * g->head_dim;
      gather_keys(run, in, r, a / dflash_geometry_rep(g), &keys);
      naive_attend(in[0] + at, &keys, g->head_dim, value + at, bound + at);
    }
}

/* exp within 4 units in the last place, and a few roundings. */
static void naive_silu(const float *gate, const float *up, int64_t count, double *value, double *bound) {
  for (int64_t i = 0; i < count; i++) {
    const double silu = gate[i] / (1 + exp(-(double)gate[i]));
    value[i] = silu * up[i];
    bound[i] = 12 * UNIT * fabs(value[i]) + TINY * (1 + fabs((double)up[i]));
  }
}

void naive_stage(const NaiveRun *run, const float *const *in, double *value, double *bound) {
  const TestModel *m = run->model;
  const DflashGeometry *g = &m->geometry;
  const DflashLayerWeights *l = &m->layers[run->layer];
  const DflashTensor *matrix = naive_matrix(m, run->stage, run->layer);
  const int64_t rows = run->rows;
  switch (run->stage) {
  case DFLASH_STAGE_HEAD_LOGITS:
    naive_product(matrix, in[0] + g->hidden, run->n_draft, run->head_width, value, bound);
    break;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    naive_product(matrix, in[0] + g->hidden, run->n_draft, g->selector_rank, value, bound);
    break;
  case DFLASH_STAGE_CONTEXT_NORM:
    naive_norm(in[0], m->weights.hidden_norm.data, rows, g->hidden, g->eps, value, bound);
    break;
  case DFLASH_STAGE_FINAL_NORM:
    naive_norm(in[0], m->weights.norm.data, rows, g->hidden, g->eps, value, bound);
    break;
  case DFLASH_STAGE_ATTN_NORM:
    naive_norm(in[0], l->input_layernorm.data, rows, g->hidden, g->eps, value, bound);
    break;
  case DFLASH_STAGE_MLP_NORM:
    naive_norm(in[0], l->post_attention_layernorm.data, rows, g->hidden, g->eps, value, bound);
    break;
  case DFLASH_STAGE_ATTN_Q:
    naive_heads(run, in[0], l->q_norm.data, g->heads, value, bound);
    break;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_K:
    naive_heads(run, in[0], l->k_norm.data, g->kv_heads, value, bound);
    break;
  case DFLASH_STAGE_ATTN_CONV_IN:
    naive_conv(run, in[0], in[1], &l->attention_conv_base, 0, NULL, value, bound);
    break;
  case DFLASH_STAGE_MLP_CONV_IN:
    naive_conv(run, in[0], in[1], &l->mlp_conv_base, 0, NULL, value, bound);
    break;
  case DFLASH_STAGE_ATTN_OUT:
    naive_conv(run, in[1], in[2], &l->attention_conv_base, 1, in[0], value, bound);
    break;
  case DFLASH_STAGE_MLP_OUT:
    naive_conv(run, in[1], in[2], &l->mlp_conv_base, 1, in[0], value, bound);
    break;
  case DFLASH_STAGE_ATTN_MIX:
    naive_attention(run, in, value, bound);
    break;
  case DFLASH_STAGE_MLP_ACT:
    naive_silu(in[0], in[1], rows * g->intermediate, value, bound);
    break;
  default:
    naive_product(matrix, in[0], rows, dflash_tensor_rows(matrix), value, bound);
  }
}
