/* The fast kernel as a plain program on the host: weights are read from the stream, item by item, in the order in which
 * the warps take them; each value goes where the kernel puts it. It tests what surrounds the kernel: the packed
 * weights, the arguments, the stages' places, the spans. */
#include "fast_model.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../../kernels/fast/arguments.h"
#include "emulated.h"

namespace {

enum { H = FAST_HIDDEN, I = FAST_INTERMEDIATE, HD = FAST_HEAD_DIM, KV = FAST_KV_HEADS, R = FAST_ROWS };
typedef std::vector<float> Values; /* [8][width] */

template <class T> T *at(CudaAddress address) { return reinterpret_cast<T *>(address); }

template <class T> T load(const unsigned char *from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

/* Where each warp is in its stream. */
struct Reader {
  const FastBlock &b;
  std::vector<const unsigned char *> warps;
  explicit Reader(const FastBlock &block) : b(block) {
    for (int i = 0; i < FAST_BLOCKS * FAST_WARPS; i++)
      warps.push_back(at<unsigned char>(b.stream) + at<uint64_t>(b.stream_first)[i]);
  }
};

/* A product's vectors, the same in every cluster. */
std::vector<Values> take_vectors(Reader &r, int product) {
  std::vector<Values> vectors((size_t)fast_vectors(product), Values(H));
  for (int i = 0; i < FAST_BLOCKS * FAST_WARPS; i++) {
    const int block = i / FAST_WARPS, first = fast_first_column(product, block) + i % FAST_WARPS * FAST_SLICE;
    for (Values &v : vectors) {
      if (block < 2) memcpy(&v[(size_t)first], r.warps[(size_t)i], FAST_VECTOR_BYTES);
      if (memcmp(&v[(size_t)first], r.warps[(size_t)i], FAST_VECTOR_BYTES) != 0) abort();
      r.warps[(size_t)i] += FAST_VECTOR_BYTES;
    }
  }
  return vectors;
}

/* y += w * x for all eight rows; x is [column][8]. */
void add(float *y, float w, const float *x) {
  for (int n = 0; n < R; n++) y[n] += w * x[n];
}

/* Sums of a tile, [16][8]. */
void q8_item(const unsigned char *item, int first, const Values &x, float (*sums)[R]) {
  for (int lane = 0; lane < 32; lane++)
    for (int k = 0; k < 10; k++)
      for (int byte = 0; byte < 8; byte++) {
        const int w = item[k / 2 * 512 + lane * 16 + k % 2 * 8 + byte] - 128, row = lane / 4 + 8 * (byte & 1);
        const float scale = load<float>(item + FAST_Q8_BYTES + 4 * row);
        add(sums[row], (float)w * scale, &x[(size_t)(first + k * 16 + lane % 4 * 4 + byte / 2) * R]);
      }
}
/* Rungs of a tile's rows, [16][32]. */
void fill_rungs(const float *ladders, float (*rungs)[32]) {
  for (int row = 0; row < FAST_TILE; row++) {
    rungs[row][0] = ladders[2 * row];
    for (int i = 1; i < 32; i++) rungs[row][i] = rungs[row][i - 1] * ladders[2 * row + 1];
  }
}
void q4_item(const unsigned char *item, int first, int groups, const float (*rungs)[32], const Values &x,
             float (*sums)[R]) {
  for (int lane = 0; lane < 32; lane++)
    for (int group = 0; group < groups; group++) {
      const bool paired = group / 2 * 2 + 1 < groups;
      const unsigned char *words = item + group / 2 * 512 + (paired ? lane * 16 + group % 2 * 8 : lane * 8);
      for (int half = 0; half < 2; half++) {
        const int row = lane / 4 + 8 * half;
        const unsigned char *pair = item + groups * FAST_GROUP_BYTES + row % 8 * 16 + half * 4;
        const uint32_t codes = load<uint32_t>(pair + group / 5 * 8);
        const uint32_t code = ((group % 5 == 4 ? codes << 5 : codes >> 5 * (group % 5)) & 0x7c0) / 64;
        float part[R] = {};
        for (int i = 0; i < 8; i++) {
          const int shift = 8 * (i % 4 / 2) + 4 * half + 16 * (i % 2);
          const int w = (int)(load<uint32_t>(words + i / 4 * 4) >> shift & 15) - 8;
          add(part, (float)w, &x[(size_t)(first + group * 32 + i / 4 * 16 + lane % 4 * 4 + i % 4) * R]);
        }
        add(sums[row], rungs[row][code], part);
      }
    }
}

/* x and y are [8][columns], [8][16 * tiles]. */
Values multiply(Reader &r, int layer, int product, const Values &x, int head_rows) {
  const size_t cols = x.size() / R, rows = (size_t)fast_tile_count(product, head_rows) * FAST_TILE;
  Values turned(x.size()), y(rows * R);
  for (size_t n = 0; n < R; n++)
    for (size_t c = 0; c < cols; c++) turned[c * R + n] = x[n * cols + c];
  for (int i = 0; i < FAST_BLOCKS * FAST_WARPS; i++) {
    const int block = i / FAST_WARPS, warp = i % FAST_WARPS, base = fast_first_column(product, block);
    const FastRange tiles = fast_tiles(product, head_rows, block / 2);
    const int bytes = fast_item_bytes(product, warp);
    for (int tile = tiles.from; tile < tiles.to; tile++) {
      float sums[FAST_TILE][R] = {}, rungs[FAST_TILE][32];
      if (!fast_is_q8(product))
        fill_rungs(at<float>(r.b.ladders) + 2 * (layer * FAST_LAYER_LADDERS + fast_first_ladder(product) + tile * 16),
                   rungs);
      for (int item = 0; item < fast_items_a_tile(product); item++, r.warps[(size_t)i] += bytes)
        if (fast_is_q8(product))
          q8_item(r.warps[(size_t)i], base + warp * FAST_SLICE + item * 160, turned, sums);
        else
          q4_item(r.warps[(size_t)i], base + fast_first_group(product, warp) * 32, fast_groups(product, warp), rungs,
                  turned, sums);
      for (size_t n = 0; n < R; n++)
        for (size_t row = 0; row < FAST_TILE; row++) y[n * rows + (size_t)tile * FAST_TILE + row] += sums[row][n];
    }
  }
  return y;
}

/* ---- rows ---- */

Values from_device(CudaAddress address, size_t width) {
  Values v(R * width);
  memcpy(v.data(), at<float>(address), v.size() * sizeof(float));
  return v;
}
void to_device(CudaAddress address, const Values &v) { memcpy(at<float>(address), v.data(), v.size() * sizeof(float)); }
/* The call's rows, columns first <= c < first + width, where they are asked for. */
void put(const FastBlock &b, CudaAddress to, const Values &v, size_t first, size_t width) {
  for (size_t n = 0; to != 0 && n < (size_t)b.rows; n++)
    memcpy(at<float>(to) + n * width, &v[n * (v.size() / R) + first], width * sizeof(float));
}
void put(const FastBlock &b, CudaAddress to, const Values &v) { put(b, to, v, 0, v.size() / R); }

void scale_row(float *x, const float *w, size_t width, float eps) {
  double sum = 0;
  for (size_t i = 0; i < width; i++) sum += (double)x[i] * x[i];
  const double inverse = 1 / sqrt(sum / (double)width + (double)eps);
  for (size_t i = 0; i < width; i++) x[i] = (float)((double)x[i] * inverse) * w[i];
}
Values norm(const FastBlock &b, CudaAddress h, const Values &w) {
  Values x = from_device(h, H);
  for (size_t n = 0; n < R; n++) scale_row(&x[n * H], w.data(), H, b.eps);
  return x;
}
Values times(Values x, const Values &field) {
  for (size_t i = 0; i < x.size(); i++) x[i] *= field[i % H];
  return x;
}
Values convolve(const Values &x, CudaAddress d, int side, const float *own, const float *before) {
  Values y(x.size());
  for (size_t n = 0; n < R; n++)
    for (size_t i = 0; i < H; i++) {
      const float *taps = at<float>(d) + n * FAST_KERNEL_ROWS + (size_t)side * 2 * FAST_GROUPS + i / FAST_CONV_GROUP;
      y[n * H + i] = (own[i] + taps[0]) * x[n * H + i];
      if (n > 0) y[n * H + i] += (before[i] + taps[FAST_GROUPS]) * x[(n - 1) * H + i];
    }
  return y;
}
/* The residual stream after the second convolution of a half. */
void add_half(CudaAddress h, CudaAddress to, const Values &x, CudaAddress d, CudaAddress base) {
  const float *w = at<float>(base) + 2 * H;
  Values y = convolve(x, d, 1, w, w + H), before = from_device(h, H);
  for (size_t i = 0; i < y.size(); i++) y[i] += before[i];
  to_device(to, y);
}

/* ---- attention ---- */

void rotate(const FastBlock &b, float *x, long long position) {
  for (int i = 0; i < HD / 2; i++) {
    const float angle = (float)position * at<float>(b.inv_freq)[i];
    const float c = (float)cos((double)angle), s = (float)sin((double)angle), low = x[i], high = x[i + HD / 2];
    x[i] = low * c - high * s, x[i + HD / 2] = high * c + low * s;
  }
}
Values heads(const FastBlock &b, const FastLayer &w, const Values &qkv, size_t first, size_t count,
             CudaAddress weight) {
  Values y(R * count * HD);
  for (size_t n = 0; n < R; n++)
    for (size_t a = 0; a < count; a++) {
      float *x = &y[(n * count + a) * HD];
      memcpy(x, &qkv[n * FAST_QKV_ROWS + first + a * HD], HD * sizeof(float));
      scale_row(x, at<float>(weight), HD, b.eps);
      if (w.rope) rotate(b, x, *at<long long>(b.position) + (long long)n);
    }
  return y;
}
struct Attention {
  const FastBlock &b;
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

void attention_half(Reader &r, int l) {
  const FastBlock &b = r.b;
  const FastLayer &w = b.layer[l];
  std::vector<Values> v = take_vectors(r, FAST_ATTN_KERNEL);
  Values x = norm(b, b.h[2 * l], v[0]);
  put(b, b.norm_out[2 * l], x);
  to_device(b.d[2 * l], multiply(r, l, FAST_ATTN_KERNEL, times(x, v[1]), 0));
  v = take_vectors(r, FAST_QKV);
  x = convolve(norm(b, b.h[2 * l], v[0]), b.d[2 * l], 0, v[1].data(), v[2].data());
  put(b, b.conv_out[2 * l], x);
  const Values qkv = multiply(r, l, FAST_QKV, x, 0);
  to_device(b.qkv[l], qkv);
  put(b, b.q_proj_out[l], qkv, 0, FAST_QUERY_ROWS);
  put(b, b.k_proj_out[l], qkv, FAST_QUERY_ROWS, FAST_KV_ROWS);
  put(b, b.v_proj_out[l], qkv, FAST_QUERY_ROWS + FAST_KV_ROWS, FAST_KV_ROWS);
  const Values q = heads(b, w, qkv, 0, FAST_HEADS, w.q_norm), k = heads(b, w, qkv, FAST_QUERY_ROWS, KV, w.k_norm);
  put(b, b.q_out[l], q);
  put(b, b.k_out[l], k);
  Values mix(R * FAST_QUERY_ROWS);
  const Attention t = {b, at<CudaVisible>(b.visible)[l], q, k, qkv};
  for (size_t n = 0; n < R; n++)
    for (size_t head = 0; head < FAST_HEADS; head++) attend(t, n, head, &mix[(n * FAST_HEADS + head) * HD]);
  to_device(b.mix[l], mix);
  const Values o = multiply(r, l, FAST_O, mix, 0);
  put(b, b.o_out[l], o);
  add_half(b.h[2 * l], b.h[2 * l + 1], o, b.d[2 * l], w.base_a);
}

void mlp_half(Reader &r, int l) {
  const FastBlock &b = r.b;
  std::vector<Values> v = take_vectors(r, FAST_MLP_KERNEL);
  Values x = norm(b, b.h[2 * l + 1], v[0]);
  put(b, b.norm_out[2 * l + 1], x);
  to_device(b.d[2 * l + 1], multiply(r, l, FAST_MLP_KERNEL, times(x, v[1]), 0));
  v = take_vectors(r, FAST_GATE_UP);
  x = convolve(norm(b, b.h[2 * l + 1], v[0]), b.d[2 * l + 1], 0, v[1].data(), v[2].data());
  put(b, b.conv_out[2 * l + 1], x);
  const Values both = multiply(r, l, FAST_GATE_UP, x, 0);
  Values gate(R * I), up(R * I), act(R * I);
  for (size_t n = 0; n < R; n++)
    for (size_t i = 0; i < I; i++) {
      const float *pair = &both[n * 2 * I + i / 16 * 32 + i % 16];
      gate[n * I + i] = pair[0], up[n * I + i] = pair[16];
      act[n * I + i] = (float)((double)pair[0] / (1 + exp(-(double)pair[0]))) * pair[16];
    }
  put(b, b.gate_out[l], gate);
  put(b, b.up_out[l], up);
  to_device(b.act[l], act);
  const Values down = multiply(r, l, FAST_DOWN, act, 0);
  put(b, b.down_out[l], down);
  add_half(b.h[2 * l + 1], b.h[2 * l + 2], down, b.d[2 * l + 1], b.layer[l].base_m);
}

void last(Reader &r) {
  const FastBlock &b = r.b;
  for (const int product : {FAST_SELECTOR, FAST_HEAD}) {
    const std::vector<Values> v = take_vectors(r, product);
    const Values x = norm(b, b.h[2 * b.layers], v[0]);
    put(b, b.norm_out[2 * b.layers], x);
    const Values y = multiply(r, b.layers, product, times(x, v[1]), b.head_rows);
    const size_t width = product == FAST_HEAD ? (size_t)b.head_rows : (size_t)FAST_RANK;
    const CudaAddress to = product == FAST_HEAD ? b.logits : b.hidden;
    for (size_t n = 1; n <= (size_t)b.n_draft; n++)
      memcpy(at<float>(to) + (n - 1) * width, &y[n * (y.size() / R)], width * sizeof(float));
  }
}

} // namespace

void emulated_fast_block(const void *arguments) {
  FastBlock b;
  memcpy(&b, arguments, sizeof b);
  if (*at<uint32_t>(b.barrier) != 0) abort();
  Reader reader(b);
  int stamps = 0;
  const auto stamp = [&] {
    if (b.stamps != 0) at<uint64_t>(b.stamps)[stamps++] = emulated_clock();
  };
  stamp(), stamp();
  for (int l = 0; l < b.layers; l++) {
    attention_half(reader, l);
    for (int i = 0; i < 5; i++) stamp();
    mlp_half(reader, l);
    for (int i = 0; i < 4; i++) stamp();
  }
  last(reader);
  stamp();
  *at<uint32_t>(b.barrier) = 1;
}
