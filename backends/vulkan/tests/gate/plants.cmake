# Faults of shaders: plant(NAME KERNEL "SHADER DEFINES ..." FILE FROM TO) is the kernel of kernel.h made with FROM, which
# stands once in shaders/FILE, turned into TO. test_planted.c says which golden shows each, and at which stage.

# ---- norms and rows
plant(norm-barrier NORM "norm" row.glsl
[[  barrier();
  vec4 sum = lanes[0];]]
[[  vec4 sum = lanes[0];]])
plant(norm-columns NORM "norm" row.glsl [[LANES / 4; i++) sum += lanes]] [[LANES / 4 - 1; i++) sum += lanes]])
plant(conv-taps CONV "conv" convolution.glsl
  [[load_base(side_tap * pieces + piece)]] [[load_base((SIDE * TAPS + TAPS - 1 - tap) * pieces + piece)]])
plant(out-side OUT "out" convolution.glsl [[side_tap = SIDE * TAPS + tap]] [[side_tap = tap]])
plant(act-operands ACT "act" act.comp [[g = load_gate(row, piece, pieces), u = load_up(row, piece, pieces)]]
  [[u = load_gate(row, piece, pieces), g = load_up(row, piece, pieces)]])
plant(heads-pairs HEADS "heads" heads.comp
[[        y[to + i] = halves.x;
        y[to + half_dim + i] = halves.y;]]
[[        y[to + 2 * i] = halves.x;
        y[to + 2 * i + 1] = halves.y;]])
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
plant(units-parts UNITS_Q4_AT "units EMULATED WEIGHTS_Q4 ADDRESSES" units.comp
  [=[fma(c[t][SUMS_OF_GROUP - 1][n], 1.0 / 2048, value)]=] [=[fma(c[t][SUMS_OF_GROUP - 1][n], 0.0, value)]=])
plant(units-codes UNITS_Q4_AT "units EMULATED WEIGHTS_Q4 ADDRESSES" units.comp
  [[word >> (16 * half_word + 8 * r) & 31]] [[word >> 16 * half_word & 31]])
plant(units-splits UNITS_F16_AT "units EMULATED WEIGHTS_F16 ADDRESSES" units.comp
  [[if (first + s < push.splits) sum]] [[if (first + s < push.splits - 1) sum]])
plant(units-shares UNITS_Q4_AT "units EMULATED WEIGHTS_Q4 ADDRESSES" units.comp
  [[EACH(s, SHARES - 1)]] [[EACH(s, SHARES - 2)]])
plant(prepare-field PREPARE "prepare" prepare.comp
  [[value = value * columns[inside];]] [[value = value * columns[0];]])
plant(prepare-group PREPARE "prepare" prepare.glsl
  [[most = max(most, group_area[first + i]);]] [[most = group_area[first + i];]])
plant(prepare-halves PREPARE "prepare" prepare.glsl
  [[return roundEven(scaled);]] [[return sign(scaled) * floor(abs(scaled) + 0.5);]])
plant(fragments-group CONV_FRAGMENTS "conv FRAGMENTS" prepare.glsl
  [[most = max(most, group_area[first + i]);]] [[most = group_area[first + i];]])
plant(fragments-barrier ACT_FRAGMENTS "act FRAGMENTS" prepare.glsl
[[  note_largest(0, values);
  barrier();]]
[[  note_largest(0, values);]])
plant(fragments-field ENTER_FRAGMENTS "norm COPY FRAGMENTS" fragments.glsl
  [=[vec2(1.0) : columns[piece]]=] [=[vec2(1.0) : columns[piece / 2]]=])
plant(fragments-row OUT_FRAGMENTS "out FRAGMENTS" out.comp
  [[const uint place = load_place(row - push.row_first);]] [[const uint place = load_place(row);]])
plant(fragments-form OUT_FRAGMENTS "out FRAGMENTS" out.comp
  [[apply_field(HAS_OTHER_FIELD, normed, other_field[k])]] [[apply_field(HAS_FIELD, normed, field[k])]])
plant(fragments-head MIX_FRAGMENTS "mix FRAGMENTS" mix.comp
  [[const uint pair = gl_WorkGroupID.x * halves + first + lane;]] [[const uint pair = first + lane;]])
plant(units-apart UNITS_F16_AT "units EMULATED WEIGHTS_F16 ADDRESSES" units.comp
  [[gl_WorkGroupID.z * push.split_stride]] [[(push.splits - 1 - gl_WorkGroupID.z / 2) * push.split_stride]])
plant(conv-sums CONV_FRAGMENTS "conv FRAGMENTS" sums.glsl [[split_ < splits;]] [[split_ < splits - 1;]])
plant(conv-share CONV_FRAGMENTS "conv FRAGMENTS" conv.comp [[if (at < end) d[]] [[if (at < end && at > 0) d[]])
plant(act-sums ACT_FRAGMENTS "act FRAGMENTS" sums.glsl [[split_ < splits;]] [[split_ < splits - 1;]])
plant(out-sums OUT_FRAGMENTS "out FRAGMENTS" sums.glsl [[split_ < splits;]] [[split_ < splits - 1;]])
plant(heads-sums HEADS_SUMS "heads SUMS" heads.comp [[add_v(row, head - heads);]] [[add_v(row, 0);]])

# ---- attention
plant(score-barrier ATTEND "attend" attend.comp
[[    score_slice(batch);
    barrier();]]
[[    score_slice(batch);]])
plant(value-barrier ATTEND "attend" attend.comp
[[      barrier();
      add_groups]]
[[      add_groups]])
plant(kv-head ATTEND "attend" attend.comp
  [[gl_WorkGroupID.x * rep + query % rep;]] [[query % rep * push.kv_heads + gl_WorkGroupID.x;]])
plant(window-row ATTEND "attend" attend.comp [[: visible[1 + row];]] [[: visible[1];]])
plant(rescale ATTEND "attend" attend.comp [[none ? 1.0 : exp_f32(largest - now);]] [[1.0;]])
plant(units-window ATTEND_UNITS "attend_units EMULATED" attend_units_scores.glsl
  [[begin = begins[tile_query(b, r)],]] [[begin = begins[0],]])
plant(units-rescale ATTEND_UNITS "attend_units EMULATED" attend_units_scores.glsl
  [[none ? 1.0 : weight_of(largest[b][r] - now[b][r]);]] [[1.0;]])
plant(units-second ATTEND_UNITS "attend_units EMULATED" attend_units_load.glsl
  [[pack_pair(left * 2048.0)]] [[pack_pair(left * 0.0)]])
plant(units-halves ATTEND_UNITS "attend_units EMULATED" attend_units.comp
  [[EACH(i, 4) mixed[b][d][i] += more[i];]] [[EACH(i, 2) mixed[b][d][i] += more[i];]])
plant(empty-part MIX "mix" mix.comp
  [[[thread % 4] = weight * own.y;]] [[[thread % 4] = own.y == 0.0 ? 1.0 : weight * own.y;]])
plant(part-lost MIX "mix" mix.comp [[if (group + i * GROUPS <= last) sum]] [[if (group + i * GROUPS < last) sum]])

# ---- tokens
plant(equal-lost TOP "top" top.comp
[[    keys[turn] = at < count ? key_of(entry.x) : 0u;]]
[[    keys[turn] = at < count ? key_of(entry.x) : 0u;
    for (uint i = 0; i < push.top; i++)
      if (entry.y >= push.chunk && entry.x == entries[first + i].x) keys[turn] = 0u;]])
plant(ties-higher TOP "top" top.comp [[better(found[other], found[i])]]
  [[found[other].x == found[i].x ? found[other].y > found[i].y : better(found[other], found[i])]])
plant(last-row TOP "top" top.comp [[comes_last(FIRST_COUNTER + row,]] [[comes_last(FIRST_COUNTER,]])
plant(gather-row GATHER "gather" gather.comp [[(row - 1u) * push.top]] [[row * push.top]])
plant(before-row PAIRS "pairs" pairs.comp [=[best[(row - 1u) * push.top + p]]=] [=[best[row * push.top + p]]=])
plant(rank-tail PAIRS "pairs" pairs.comp
  [[column < push.rank; column += LANES]] [[column < push.rank / PIECE * PIECE; column += LANES]])
plant(pairs-row PAIRS "pairs" pairs.comp
  [[pairs[((first + row) * push.top]] [[pairs[((first + row > 1u ? first + row - 1u : first + row) * push.top]])
