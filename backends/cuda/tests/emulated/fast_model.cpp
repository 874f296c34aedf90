/* The fast kernel as a plain program on the host: weights are read from the stream, chunk by chunk, in the order in
 * which the blocks of threads take them; each value goes where the kernel puts it. It tests what surrounds the kernel:
 * the packed weights, the arguments, the stages' places, the spans. */
#include "fast_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "emulated.h"
#include "fast_stream.h"

namespace {

enum { H = FAST_HIDDEN, I = FAST_INTERMEDIATE, HD = FAST_HEAD_DIM, KV = FAST_KV_HEADS };
typedef FastValues Values; /* [rows of the kernel][width] */
/* A block and the kernel that it is for. */
struct Call : FastBlock {
  size_t all; /* rows of its values */
};

template <class T> T *at(CudaAddress address) { return reinterpret_cast<T *>(address); }

/* ---- rows ---- */

Values from_device(const Call &b, CudaAddress address, size_t width) {
  Values v(b.all * width);
  memcpy(v.data(), at<float>(address), v.size() * sizeof(float));
  return v;
}
void to_device(CudaAddress address, const Values &v) { memcpy(at<float>(address), v.data(), v.size() * sizeof(float)); }
/* The call's rows, columns first <= c < first + width, where they are asked for. */
void put(const Call &b, CudaAddress to, const Values &v, size_t first, size_t width) {
  for (size_t n = 0; to != 0 && n < (size_t)b.rows; n++)
    memcpy(at<float>(to) + n * width, &v[n * (v.size() / b.all) + first], width * sizeof(float));
}
void put(const Call &b, CudaAddress to, const Values &v) { put(b, to, v, 0, v.size() / b.all); }

void scale_row(float *x, const float *w, size_t width, float eps) {
  double sum = 0;
  for (size_t i = 0; i < width; i++) sum += (double)x[i] * x[i];
  const double inverse = 1 / sqrt(sum / (double)width + (double)eps);
  for (size_t i = 0; i < width; i++) x[i] = (float)((double)x[i] * inverse) * w[i];
}
Values norm(const Call &b, CudaAddress h, const Values &w) {
  Values x = from_device(b, h, H);
  for (size_t n = 0; n < b.all; n++) scale_row(&x[n * H], w.data(), H, b.eps);
  return x;
}
Values times(Values x, const Values &field) {
  for (size_t i = 0; i < x.size(); i++) x[i] *= field[i % H];
  return x;
}
/* The sum of what the clusters of each part of the columns have, [rows][width]. */
Values sum_of_parts(const Values &parts, size_t count) {
  Values sum(parts.size() / count);
  for (size_t i = 0; i < parts.size(); i++) sum[i % sum.size()] += parts[i];
  return sum;
}
/* A kernel projection's values, from where its halves lie. */
Values kernel_values(const Call &b) {
  const float *halves = at<float>(b.d);
  return sum_of_parts(Values(halves, halves + FAST_KERNEL_HALVES * b.all * FAST_KERNEL_ROWS), FAST_KERNEL_HALVES);
}
Values convolve(const Values &x, const Values &d, int side, const float *own, const float *before) {
  Values y(x.size());
  for (size_t n = 0; n < x.size() / H; n++)
    for (size_t i = 0; i < H; i++) {
      const float *taps = &d[n * FAST_KERNEL_ROWS + (size_t)side * 2 * FAST_GROUPS + i / FAST_CONV_GROUP];
      y[n * H + i] = (own[i] + taps[0]) * x[n * H + i];
      if (n > 0) y[n * H + i] += (before[i] + taps[FAST_GROUPS]) * x[(n - 1) * H + i];
    }
  return y;
}
/* The residual stream after the second convolution of a half of a layer. */
void add_half(const Call &b, int half, const Values &x) {
  const float *w = at<float>(half % 2 ? b.layer[half / 2].base_m : b.layer[half / 2].base_a) + 2 * H;
  Values y = convolve(x, kernel_values(b), 1, w, w + H), before = from_device(b, b.h[half], H);
  for (size_t i = 0; i < y.size(); i++) y[i] += before[i];
  to_device(b.h[half + 1], y);
}

/* ---- attention ---- */

void rotate(const Call &b, float *x, long long position) {
  for (int i = 0; i < HD / 2; i++) {
    const float angle = (float)position * at<float>(b.inv_freq)[i];
    const float c = (float)cos((double)angle), s = (float)sin((double)angle), low = x[i], high = x[i + HD / 2];
    x[i] = low * c - high * s, x[i + HD / 2] = high * c + low * s;
  }
}
Values heads(const Call &b, const FastLayer &w, const Values &qkv, size_t first, size_t count, CudaAddress weight) {
  Values y(b.all * count * HD);
  for (size_t n = 0; n < b.all; n++)
    for (size_t a = 0; a < count; a++) {
      float *x = &y[(n * count + a) * HD];
      memcpy(x, &qkv[n * FAST_QKV_ROWS + first + a * HD], HD * sizeof(float));
      scale_row(x, at<float>(weight), HD, b.eps);
      if (w.rope) rotate(b, x, *at<long long>(b.position) + (long long)n);
    }
  return y;
}
struct Attention {
  const Call &b;
  const CudaVisible &seen;
  const Values &q, &k, &qkv;
};
/* A query over the context that it sees and the block. */
void attend(const Attention &t, size_t n, size_t head, float *mix) {
  const size_t kv = head / (FAST_HEADS / KV);
  const int64_t from = std::max(t.seen.first, t.seen.from + (int64_t)n);
  std::vector<const float *> keys, values;
  for (int64_t j = from; j < t.seen.end; j++) {
    keys.push_back(at<float>(t.seen.k) + ((size_t)j * KV + kv) * HD);
    values.push_back(at<float>(t.seen.v) + ((size_t)j * KV + kv) * HD);
  }
  for (size_t j = 0; j < (size_t)t.b.rows; j++) {
    keys.push_back(&t.k[(j * KV + kv) * HD]);
    values.push_back(&t.qkv[j * FAST_QKV_ROWS + FAST_QUERY_ROWS + FAST_KV_ROWS + kv * HD]);
  }
  std::vector<double> p(keys.size()), y(HD);
  double most = -INFINITY, total = 0;
  for (size_t j = 0; j < keys.size(); j++) {
    for (int i = 0; i < HD; i++) p[j] += (double)t.q[(n * FAST_HEADS + head) * HD + (size_t)i] * keys[j][i];
    most = std::max(most, p[j] *= (double)t.b.scale);
  }
  for (size_t j = 0; j < keys.size(); j++) {
    total += p[j] = exp(p[j] - most);
    for (int i = 0; i < HD; i++) y[(size_t)i] += p[j] * (double)values[j][i];
  }
  for (int i = 0; i < HD; i++) mix[i] = (float)(y[(size_t)i] / total);
}

/* ---- a block ---- */

/* Up to the convolution, which it returns. */
Values begin_half(const Call &b, FastStream &stream, int half) {
  const int product = half % 2 ? FAST_MLP_KERNEL : FAST_ATTN_KERNEL;
  std::vector<Values> v = stream.vectors(product);
  Values x = norm(b, b.h[half], v[0]);
  put(b, b.norm_out[half], x);
  to_device(b.d, stream.multiply(product, times(x, v[1])));
  put(b, b.d_out[half], kernel_values(b));
  v = stream.vectors(half % 2 ? FAST_GATE_UP : FAST_QKV);
  x = convolve(norm(b, b.h[half], v[0]), kernel_values(b), 0, v[1].data(), v[2].data());
  put(b, b.conv_out[half], x);
  return x;
}

void attention_half(const Call &b, FastStream &stream, int l) {
  const FastLayer &w = b.layer[l];
  const Values halves = stream.multiply(FAST_QKV, begin_half(b, stream, 2 * l)),
               qkv = sum_of_parts(halves, FAST_QKV_HALVES);
  to_device(b.qkv[l], halves);
  put(b, b.q_proj_out[l], qkv, 0, FAST_QUERY_ROWS);
  put(b, b.k_proj_out[l], qkv, FAST_QUERY_ROWS, FAST_KV_ROWS);
  put(b, b.v_proj_out[l], qkv, FAST_QUERY_ROWS + FAST_KV_ROWS, FAST_KV_ROWS);
  const Values q = heads(b, w, qkv, 0, FAST_HEADS, w.q_norm), k = heads(b, w, qkv, FAST_QUERY_ROWS, KV, w.k_norm);
  put(b, b.q_out[l], q);
  put(b, b.k_out[l], k);
  Values mix(b.all * FAST_QUERY_ROWS);
  const Attention t = {b, at<CudaVisible>(b.visible)[l], q, k, qkv};
  for (size_t n = 0; n < b.all; n++)
    for (size_t head = 0; head < FAST_HEADS; head++) attend(t, n, head, &mix[(n * FAST_HEADS + head) * HD]);
  to_device(b.mix[l], mix);
  const Values o = stream.multiply(FAST_O, mix);
  put(b, b.o_out[l], o);
  add_half(b, 2 * l, o);
}

void mlp_half(const Call &b, FastStream &stream, int l) {
  const Values both = stream.multiply(FAST_GATE_UP, begin_half(b, stream, 2 * l + 1));
  Values gate(b.all * I), up(b.all * I), act(b.all * I);
  for (size_t n = 0; n < b.all; n++)
    for (size_t i = 0; i < I; i++) { /* 16 rows of gate and the same of up in turn */
      const float *pair = &both[n * 2 * I + i / FAST_TILE * 2 * FAST_TILE + i % FAST_TILE];
      gate[n * I + i] = pair[0], up[n * I + i] = pair[FAST_TILE];
      act[n * I + i] = (float)((double)pair[0] / (1 + exp(-(double)pair[0]))) * pair[FAST_TILE];
    }
  put(b, b.gate_out[l], gate);
  put(b, b.up_out[l], up);
  to_device(b.act[l], act);
  const Values quarters = stream.multiply(FAST_DOWN, act), down = sum_of_parts(quarters, FAST_DOWN_QUARTERS);
  to_device(b.down, quarters);
  put(b, b.down_out[l], down);
  add_half(b, 2 * l + 1, down);
}

/* Selector and head; of a shortlist each block reads the start of its part. */
void last(const Call &b, FastStream &stream) {
  for (const int product : {FAST_SELECTOR, FAST_HEAD}) {
    const std::vector<Values> v = stream.vectors(product);
    const Values x = norm(b, b.h[2 * b.layers], v[0]);
    if (product == FAST_HEAD) put(b, b.norm_out[2 * b.layers], x);
    const Values y = stream.multiply(product, times(x, v[1]));
    const size_t width = product == FAST_HEAD ? (size_t)b.head_rows : (size_t)FAST_RANK;
    const CudaAddress to = product == FAST_HEAD ? b.logits : b.hidden;
    for (size_t n = 1; n <= (size_t)b.n_draft; n++)
      memcpy(at<float>(to) + (n - 1) * width, &y[n * (y.size() / b.all)], width * sizeof(float));
  }
}

void run_block(const void *arguments, int rows) {
  Call b;
  memcpy(static_cast<FastBlock *>(&b), arguments, sizeof(FastBlock));
  b.all = (size_t)rows;
  if (*at<uint32_t>(b.barrier) != 0) abort();
  FastStream stream(b, rows);
  int stamps = 0;
  const auto stamp = [&] {
    if (b.stamps != 0) at<uint64_t>(b.stamps)[stamps++] = emulated_clock();
  };
  stamp(), stamp();
  for (int l = 0; l < b.layers; l++) {
    attention_half(b, stream, l);
    for (int i = 0; i < 5; i++) stamp();
    mlp_half(b, stream, l);
    for (int i = 0; i < 4; i++) stamp();
  }
  last(b, stream);
  stamp();
  *at<uint32_t>(b.barrier) = 1;
}

} // namespace

void emulated_fast_block(const void *arguments) { run_block(arguments, FAST_ROWS); }
void emulated_fast_block_tall(const void *arguments) { run_block(arguments, FAST_TALL_ROWS); }
