# Faults of kernels: plant(NAME "HEADER KERNELS..." FILE FROM TO) makes HEADER's kernels with FROM, which stands once in
# kernels/FILE, turned into TO. faults.txt says which golden shows each, and at which stage. Those of HEADER alone are for
# a device: no host runs them.

# ---- norms and rows
plant(norm-barrier "rows.cuh norm" device.cuh
[[scratch[warp_of()] = sum[0];
  sync_block();]]
[[scratch[warp_of()] = sum[0];
  delay();]])
plant(norm-columns "rows.cuh norm" rows.cuh [[i < a.width; i += CUDA_THREADS) squares]]
  [[i < a.width / CUDA_THREADS * CUDA_THREADS; i += CUDA_THREADS) squares]])
plant(conv-taps "rows.cuh conv" rows.cuh [=[base[o * a.hidden] + d]=] [=[base[(a.taps - 1 - o) * a.hidden] + d]=])
plant(conv-side "rows.cuh conv" rows.cuh [[first_tap = (int64_t)a.side * a.taps;]] [[first_tap = 0;]])
plant(act-operands "rows.cuh act" rows.cuh
[=[gate = at<const float>(a.gate)[i];
  at<float>(a.y)[i] = (float)(gate / (1 + exp(-gate)) * at<const float>(a.up)[i]);]=]
[=[gate = at<const float>(a.up)[i];
  at<float>(a.y)[i] = (float)(gate / (1 + exp(-gate)) * at<const float>(a.gate)[i]);]=])
plant(heads-pairs "rows.cuh heads layers_heads" rows.cuh
[=[    y[i] = a.rotate ? lo * cosine - hi * sine : lo;
    y[i + half] =]=]
[=[    y[2 * i] = a.rotate ? lo * cosine - hi * sine : lo;
    y[2 * i + 1] =]=])

# ---- matrices
plant(team-barrier "product.cuh product_q4_few product_q4_many product_q8_few product_q8_many" product.cuh
[=[parts[warp_of()][n] = sums[n];
  sync_block();]=]
[=[parts[warp_of()][n] = sums[n];
  delay();]=])
plant(columns-tail "product.cuh product_f32_few product_f32_many" product.cuh
  [[/ team * CUDA_SPAN, a.matrix.cols);]] [[/ team * CUDA_SPAN, a.matrix.cols / CUDA_SPAN * CUDA_SPAN);]])
plant(rows-tail "product.cuh product_f32_few product_f32_many" product.cuh
  [[(int)min((int64_t)R, a.rows - t.x_row);]] [[(int)min((int64_t)R, a.rows - t.x_row) & ~1;]])
plant(out-rows-tail "product.cuh product_f32_few product_f32_many product_f16_few product_f16_many" product.cuh
  [[if (row >= a.out_rows ||]] [[if (row >= a.out_rows / CUDA_TILE * CUDA_TILE ||]])
plant(next-group "product.cuh product_q4_few product_q4_many" product.cuh
  [[bit = group * 5;]] [[bit = (group ^ 1) * 5;]])
plant(x-22-bits "product.cuh product_q4_few product_q4_many product_q8_few product_q8_many" product.cuh
[[    load_f32(x + r * a.matrix.cols, v);]]
[[    load_f32(x + r * a.matrix.cols, v);
    for (int n = 0; n < CUDA_LANE_COLUMNS; n++) v[n] = __uint_as_float(__float_as_uint(v[n]) & 0xfffffffcu);]])
plant(exponent-row "product.cuh product_f32_few product_f32_many product_q8_few product_q8_many" product.cuh
  [=[(a.exponents)[t.x_row + r]]=] [=[(a.exponents)[t.x_row]]=])
plant(steps-group "product_i8.cuh product_i8_few product_i8_many" product_i8.cuh
  [=[(a.steps)[place];]=] [=[(a.steps)[place & ~(int64_t)1];]=])
plant(half-away "prepare.cuh quantise" prepare.cuh
  [[__float2int_rn(__fmul_rn(x[i], inverse))]]
  [[(int)(__fmul_rn(x[i], inverse) + copysignf(0.5f, x[i]))]])

# ---- products of many rows
plant(tiled-barrier "tiled/product.cuh tiled_q4 tiled_q8" tiled/product.cuh
[[    sync_block(); /* what others copied]]
[[    delay(); /* what others copied]])
plant(tiled-scale "tiled/product.cuh tiled_q4" tiled/product.cuh [=[scales[16 * m + 8 * (i / 2)]]=] [=[scales[16 * m]]=])
plant(tiled-range "tiled/sum.cuh tiled_sum" tiled/sum.cuh
  [[split < s.splits; split++]] [[split < s.splits - (s.splits > 1); split++]])
plant(tiled-tail "tiled/product.cuh tiled_q4 tiled_q8 tiled_q4_f16 tiled_q8_f16" tiled/product.cuh
  [[step < r.end; step++]] [[step < r.end - 1; step++]])
plant(tiled-exponent "tiled/sum.cuh tiled_sum" tiled/sum.cuh [=[(a.exponents)[row]]=] [=[(a.exponents)[row & ~1]]=])
plant(tiled-part "tiled/parts.cuh tiled_parts" tiled/parts.cuh
  [=[parts[2] = __float_as_uint(rest - __uint_as_float(middle));]=] [=[parts[2] = 0;]=])

# ---- attention
plant(keys-barrier "attend.cuh attend" attend.cuh
[[count, stride, tile);
  sync_block();]]
[[count, stride, tile);
  delay();]])
plant(values-barrier "attend.cuh attend" attend.cuh
[[count, a.head_dim, tile);
  sync_block();]]
[[count, a.head_dim, tile);
  delay();]])
plant(kv-head "attend.cuh attend" attend.cuh
  [[*row * a.heads + blockIdx.x * rep + query % rep;]] [[*row * a.heads + query % rep * a.kv_heads + blockIdx.x;]])
plant(window-row "attend.cuh attend" attend.cuh [[>= keys.from + states[i].row;]] [[>= keys.from;]])
plant(rescale "attend.cuh attend" attend.cuh
  [[state.largest == largest ? 1 : expf(state.largest - largest);]] [[1;]])
plant(stale-values "attend.cuh attend" attend.cuh
  [[load_rows(a, keys.v, first, count]] [[load_rows(a, keys.v, keys.begin, count]])
plant(cut-rows "attend.cuh attend" attend.cuh
  [[at<const float>(a.v), 0, a.rows, INT64_MIN / 2}]] [[at<const float>(a.v), 0, CUDA_FEW_ROWS, INT64_MIN / 2}]])
plant(part-lost "attend.cuh mix" attend.cuh
[[    float mix = 0;
    for (int part = 0; part < a.parts; part++) {]]
[[    float mix = 0;
    for (int part = 0; part < a.parts - 1; part++) {]])

# ---- tokens
plant(offers-barrier "select.cuh top_few" choose.cuh
[[int thread, int top, uint64_t *found) {
  sync_block();]]
[[int thread, int top, uint64_t *found) {
  delay();]])
plant(lists-lost "select.cuh scores" select.cuh [[thread < count ? list[0] : 0]] [[thread < count / 2 ? list[0] : 0]])
plant(before-row "select.cuh scores" select.cuh [[token_of(ahead[before]);]] [[token_of(best[before]);]])
plant(rank-tail "select.cuh scores" select.cuh [[i < a.rank; i += 32]] [[i < a.rank / 32 * 32; i += 32]])
plant(walk-first "select.cuh scores" select.cuh
  [[w.pairs + (first + before) * a.top]] [[w.pairs + first * a.top]])
plant(walk-early "select.cuh scores" select.cuh [[== gridDim.x - 1;]] [[== 0;]])

# ---- what a device and its tools must tell
plant(far-write "rows.cuh" rows.cuh [=[at<float>(a.y)[i] = (float)(gate]=] [=[at<float>(a.y + (1ull << 45))[i] = (float)(gate]=])
plant(next-key "attend.cuh" attend.cuh [=[from[((begin + row) * a.kv_heads]=] [=[from[((begin + row + 1) * a.kv_heads]=])
plant(some-wait "rows.cuh" rows.cuh
[[  if (i >= a.count) return;]]
[[  if (i >= a.count) return;
  if (threadIdx.x % 2) __syncthreads();]])
