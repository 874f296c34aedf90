#include "test_oracle_naive.h"

#include <math.h>
#include <stddef.h>

#include "model/storage.h"

static const DflashLayerWeights *layer_of(const DflashOracleCall *call) { return &call->weights->layers[call->layer]; }

static long double product(const DflashTensor *w, const float *x, int64_t output) {
  long double sum = 0;
  for (int64_t i = 0; i < dflash_tensor_cols(w); i++)
    sum += (long double)dflash_tensor_at(w, output, i) * (long double)x[i];
  return sum;
}

static long double normed(const DflashOracleCall *call, const float *x, const DflashTensor *w, int64_t n, int64_t i) {
  long double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += (long double)x[k] * x[k];
  return x[i] / sqrtl(sum / n + (long double)call->geometry->eps) * ((const float *)w->data)[i];
}

static long double head_normed(const DflashOracleCall *call, const DflashTensor *w, int64_t row, int64_t column,
                               int64_t heads) {
  const DflashGeometry *g = call->geometry;
  int64_t n = g->head_dim, half = n / 2, i = column % n;
  const float *x = call->inputs[0] + (row * heads + column / n) * n;
  if (!dflash_geometry_rotary(g, call->layer)) return normed(call, x, w, n, i);
  volatile float position = (float)(call->position + row);
  volatile float angle = position * call->weights->inv_freq[i % half];
  long double c = cosl((long double)angle), s = sinl((long double)angle);
  long double lo = normed(call, x, w, n, i % half), hi = normed(call, x, w, n, i % half + half);
  return i < half ? lo * c - hi * s : hi * c + lo * s;
}

static long double convolved(const DflashOracleCall *call, const float *x, const float *d, const DflashTensor *base,
                             int64_t side, int64_t row, int64_t column) {
  const DflashGeometry *g = call->geometry;
  int64_t kernel = g->conv_kernel, groups = g->hidden / g->conv_group;
  long double y = 0;
  for (int64_t o = 0; o < kernel && o <= row; o++) {
    long double b = ((const float *)base->data)[(side * kernel + o) * g->hidden + column];
    long double dynamic = d[row * 2 * kernel * groups + (side * kernel + o) * groups + column / g->conv_group];
    y += (b + dynamic) * x[(row - o) * g->hidden + column];
  }
  return y;
}

static long double attended(const DflashOracleCall *call, int64_t row, int64_t column) {
  const DflashGeometry *g = call->geometry;
  int64_t n = g->head_dim, a = column / n, kv = a / (g->heads / g->kv_heads), width = g->kv_heads * n;
  int64_t len = call->sizes.context_len, window = g->windows.count ? g->windows.at[call->layer] : g->window;
  const float *q = call->inputs[0] + row * g->heads * n + a * n;
  long double max = -INFINITY, sum = 0, mix = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < len + call->sizes.rows; j++) {
      bool held = j < len;
      int64_t p = call->context_first + j, at = (held ? j : j - len) * width + kv * n;
      if (held && p >= call->position) continue;
      if (held && window > 0 && p < call->position + row + 1 - window) continue;
      const float *k = call->inputs[held ? 3 : 1] + at, *v = call->inputs[held ? 4 : 2] + at;
      long double score = 0;
      for (int64_t i = 0; i < n; i++) score += (long double)q[i] * k[i];
      score /= sqrtl((long double)n);
      if (pass == 0 && score > max) max = score;
      if (pass == 0) continue;
      sum += expl(score - max);
      mix += expl(score - max) * v[column % n];
    }
  return mix / sum;
}

static long double activated(const DflashOracleCall *call, int64_t at) {
  long double gate = call->inputs[0][at];
  return gate / (1 + expl(-gate)) * call->inputs[1][at];
}

static long double projected(const DflashOracleCall *call, int64_t row, int64_t column) {
  const DflashLayerWeights *l = layer_of(call);
  const DflashWeights *w = call->weights;
  const DflashTensor *matrices[DFLASH_STAGE_COUNT] = {[DFLASH_STAGE_CONTEXT_FC] = &w->fc,
                                                      [DFLASH_STAGE_CONTEXT_K_PROJ] = &l->k_proj,
                                                      [DFLASH_STAGE_CONTEXT_V_PROJ] = &l->v_proj,
                                                      [DFLASH_STAGE_ATTN_KERNEL] = &l->attention_conv_kernel,
                                                      [DFLASH_STAGE_ATTN_Q_PROJ] = &l->q_proj,
                                                      [DFLASH_STAGE_ATTN_K_PROJ] = &l->k_proj,
                                                      [DFLASH_STAGE_ATTN_V_PROJ] = &l->v_proj,
                                                      [DFLASH_STAGE_ATTN_O_PROJ] = &l->o_proj,
                                                      [DFLASH_STAGE_MLP_KERNEL] = &l->mlp_conv_kernel,
                                                      [DFLASH_STAGE_MLP_GATE] = &l->gate_proj,
                                                      [DFLASH_STAGE_MLP_UP] = &l->up_proj,
                                                      [DFLASH_STAGE_MLP_DOWN] = &l->down_proj,
                                                      [DFLASH_STAGE_HEAD_LOGITS] = &w->head,
                                                      [DFLASH_STAGE_SELECTOR_HIDDEN] = &w->selector_hidden};
  const DflashTensor *matrix = matrices[call->stage];
  bool draft = call->stage == DFLASH_STAGE_HEAD_LOGITS || call->stage == DFLASH_STAGE_SELECTOR_HIDDEN;
  return product(matrix, call->inputs[0] + (row + draft) * dflash_tensor_cols(matrix), column);
}

long double naive_element(const DflashOracleCall *call, int64_t row, int64_t column) {
  const DflashGeometry *g = call->geometry;
  const DflashLayerWeights *l = layer_of(call);
  int64_t at = row * g->hidden + column;
  const float *const *in = call->inputs, *x = in[0] + row * g->hidden;
  switch (call->stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
    return normed(call, x, &call->weights->hidden_norm, g->hidden, column);
  case DFLASH_STAGE_ATTN_NORM:
    return normed(call, x, &l->input_layernorm, g->hidden, column);
  case DFLASH_STAGE_MLP_NORM:
    return normed(call, x, &l->post_attention_layernorm, g->hidden, column);
  case DFLASH_STAGE_FINAL_NORM:
    return normed(call, x, &call->weights->norm, g->hidden, column);
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_K:
    return head_normed(call, &l->k_norm, row, column, g->kv_heads);
  case DFLASH_STAGE_ATTN_Q:
    return head_normed(call, &l->q_norm, row, column, g->heads);
  case DFLASH_STAGE_ATTN_CONV_IN:
    return convolved(call, in[0], in[1], &l->attention_conv_base, 0, row, column);
  case DFLASH_STAGE_MLP_CONV_IN:
    return convolved(call, in[0], in[1], &l->mlp_conv_base, 0, row, column);
  case DFLASH_STAGE_ATTN_OUT:
    return in[0][at] + convolved(call, in[1], in[2], &l->attention_conv_base, 1, row, column);
  case DFLASH_STAGE_MLP_OUT:
    return in[0][at] + convolved(call, in[1], in[2], &l->mlp_conv_base, 1, row, column);
  case DFLASH_STAGE_ATTN_MIX:
    return attended(call, row, column);
  case DFLASH_STAGE_MLP_ACT:
    return activated(call, row * g->intermediate + column);
  default:
    return projected(call, row, column);
  }
}
