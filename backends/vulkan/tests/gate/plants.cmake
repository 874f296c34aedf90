# Faults of shaders: plant(NAME KERNEL "SHADER DEFINES ..." FILE FROM TO) is the kernel of kernel.h made with FROM, which
# stands once in shaders/FILE, turned into TO. test_planted.c says which golden shows each, and at which stage.

# ---- norms and rows
plant(norm-barrier NORM "norm" row.glsl
[[  thread_sums[thread] = value;
  barrier();]]
[[  thread_sums[thread] = value;]])
plant(norm-columns NORM "norm" row.glsl [[SIDE; i++) sum += column_sums]] [[SIDE - 1; i++) sum += column_sums]])
plant(conv-taps CONV "conv" conv.comp
  [[base[channel] +]] [[base[(push.taps - 1 - tap) * push.width + i] +]])
plant(out-side OUT "out" out.comp [[side_tap = push.taps + tap]] [[side_tap = tap]])
plant(act-operands ACT "act" act.comp [[silu_times(gate[i], up[i])]] [[silu_times(up[i], gate[i])]])
plant(heads-pairs HEADS "heads" heads.comp
[[    y[to + i] = low;
    y[to + half_dim + i] = high;]]
[[    y[to + 2 * i] = low;
    y[to + 2 * i + 1] = high;]])
plant(rotation-turns ROTATION "rotation" rotation.comp [[cosine_sine(angle)]]
  [[cosine_sine(angle - 6.28318531 * floor(angle * 0.159154943))]])

# ---- matrices
plant(tile-barrier MATRIX_F32 "matrix WEIGHTS_F32" matrix.comp
[[      load_tile(step, pass);
      barrier();]]
[[      load_tile(step, pass);]])
plant(team-barrier MATRIX_Q8 "matrix WEIGHTS_Q8" product.glsl
[[  barrier();
  if (gl_LocalInvocationIndex >= TEAMS *]]
[[  if (gl_LocalInvocationIndex >= TEAMS *]])
plant(columns-tail MATRIX_F32 "matrix WEIGHTS_F32" matrix.comp
  [[steps = (count + TEAM - 1) / TEAM;]] [[steps = count / TEAM;]])
plant(rows-tail MATRIX_F32 "matrix WEIGHTS_F32" product.glsl
  [[if (first + r < push.rows)]] [[if (first + r < push.rows / PASS * PASS)]])
plant(out-rows-tail MATRIX_F16 "matrix WEIGHTS_F16" product.glsl
  [[if (row >= push.out_rows) return;]] [[if (row >= push.out_rows / TEAMS * TEAMS) return;]])
plant(field-tail MATRIX_Q8 "matrix WEIGHTS_Q8" matrix.comp
  [[if (col + c < push.cols) quad[c] *= columns[col + c];]]
  [[if (col + c < push.cols / 64 * 64) quad[c] *= columns[col + c];]])
plant(next-group MATRIX_Q4 "matrix WEIGHTS_Q4" ladder.glsl [[bit = group * 5]] [[bit = (group ^ 1) * 5]])
plant(next-rung MATRIX_Q4 "matrix WEIGHTS_Q4" ladder.glsl [=[+ next_codes[i]];]=] [=[+ min(next_codes[i] + 1, 31)];]=])
plant(rung-i8 MATRIX_I8 "matrix_i8" ladder.glsl [=[+ next_codes[i]];]=] [=[+ min(next_codes[i] + 1, 31)];]=])
plant(x-16-bits MATRIX_Q4 "matrix WEIGHTS_Q4" matrix.comp
  [[quad = x_quads[at / 4];]] [[quad = uintBitsToFloat(floatBitsToUint(x_quads[at / 4]) & 0xffffff00);]])
plant(x-22-bits MATRIX_Q4 "matrix WEIGHTS_Q4" matrix.comp
  [[quad = x_quads[at / 4];]] [[quad = uintBitsToFloat(floatBitsToUint(x_quads[at / 4]) & 0xfffffffc);]])
plant(half-away QUANTISE "quantise" quantise.comp
  [[roundEven(scaled)]] [[(sign(scaled) * floor(abs(scaled) + 0.5))]])
plant(quantise-barrier QUANTISE "quantise" quantise.comp
[[  area[gl_LocalInvocationIndex] = magnitude;
  barrier();]]
[[  area[gl_LocalInvocationIndex] = magnitude;]])
plant(half-scale HALF_Q4 "matrix WEIGHTS_Q4 HALF" half.glsl
  [[power_of_two(first - k));]] [[power_of_two(first - k + 1));]])
plant(half-bits HALF_Q8 "matrix WEIGHTS_Q8 HALF" half.glsl
  [[(bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000]] [[bits & 0xffff0000]])

# ---- matrices on matrix units, which are emulated
plant(units-parts COOP_Q4 "coop EMULATED WEIGHTS_Q4" coop.comp [[fma(value, 1.0 / 2048,]] [[fma(value, 0.0,]])

# ---- attention
plant(score-barrier ATTEND "attend" attend.comp
[[    score_keys();
    barrier();]]
[[    score_keys();]])
plant(kv-head ATTEND "attend" attend.comp
  [[gl_WorkGroupID.x * rep + query % rep;]] [[query % rep * push.kv_heads + gl_WorkGroupID.x;]])
plant(window-row ATTEND "attend" attend.comp [[: visible[1 + row];]] [[: visible[1];]])
plant(rescale ATTEND "attend" attend.comp [[none ? 1.0 : exp_f32(largest - now);]] [[1.0;]])
plant(empty-part MIX "mix" mix.comp
  [[totals[thread] =]] [[totals[thread] = sum.y == 0.0 ? 1.0 :]])

# ---- tokens
plant(equal-lost TOP_MERGE "top_merge" top_merge.comp
[[    if (best != NOTHING && best == own) {]]
[[    if (best.x == own.x && best.y / 4096 != own.y / 4096) offers[gl_LocalInvocationID.x] = own = NOTHING;
    if (best != NOTHING && best == own) {]])
plant(ties-higher TOP "top" best.glsl [[a.x == b.x && a.y < b.y]] [[a.x == b.x && a.y > b.y && b.x != 0u]])
plant(gather-row GATHER "gather" gather.comp [[(row - 1u) * push.top]] [[row * push.top]])
plant(rank-tail PAIRS "pairs" pairs.comp [[i < push.rank; i += LANES]] [[i < push.rank / LANES * LANES; i += LANES]])
plant(pairs-row CHOOSE "choose" choose.comp
  [[pairs[(row * push.top + before)]] [[pairs[((row > 1u ? row - 1u : row) * push.top + before)]])
