// attend_units.comp: queries, keys and values from memory, and as f16.

// ---- from memory to registers

// The row of a key, or of the part's last, in what is bound.
uint key_row(uint key) {
  return (min(key, part.limit - 1) - (part.own ? 0u : push.row_first)) * push.kv_heads + gl_WorkGroupID.x;
}

// A key whose scores this thread holds in its fragment's column, and one whose values it holds.
uint score_key() { return step_first + this_subgroup() * 8 + g_of(); }

uint value_slice(uint slice) { return this_subgroup() / ROW_GROUPS * KEY_SLICES + slice; }

uint value_key(uint slice, uint i) { return step_first + value_slice(slice) * 16 + i / 2 * 8 + 2 * t_of() + i % 2; }

// The piece of V of this thread; past the last one another.
uint value_piece() { return this_subgroup() % ROW_GROUPS * 8 + g_of(); }

void load_queries() {
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = min(query_of(at / PIECES), queries_in_all() - 1);
    q[i] = q_rows[query_place(query) * PIECES + at % PIECES];
  }
}

#define LOAD(keys, values)                                                    \
  EACH(s, SLICES) k[s] = keys[key_row(score_key()) * PIECES + 4 * s + t_of()]; \
  EACH(s, KEY_SLICES)                                                         \
    EACH(i, 4) v[s][i] = values[key_row(value_key(s, i)) * PIECES + min(value_piece(), PIECES - 1)];

bool is_seen(uint key) { return key >= least_seen && key < part.limit; }

void load_keys() {
  if (part.own) {
    LOAD(own_k, own_v)
  } else {
    LOAD(context_k, context_v)
  }
  if (step_first >= least_seen && part.limit - step_first >= KEYS) return;
  EACH(s, SLICES)
    if (!is_seen(score_key())) k[s] = vec4(0);
  EACH(s, KEY_SLICES) EACH(i, 4)
    if (!is_seen(value_key(s, i))) v[s][i] = vec4(0);
}

// ---- to f16

// Of neighbouring threads, `count` of them, `step` apart, the largest; bits order as magnitudes do, NaN above all.
uint magnitude_of(vec4 x) {
  const uvec4 bits = floatBitsToUint(x) & ~SIGN_BIT;
  return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

uint largest_of(uint own, uint step, uint count) {
  for (uint lane = step; lane < step * count; lane *= 2)
    own = max(own, floatBitsToUint(from_lane(uintBitsToFloat(own), this_lane() ^ lane)));
  return own;
}

// The exponent of the power of two that makes such a magnitude 2^13 to 2^14.
int exponent_of(uint bits) { return min(126 + MOST_EXPONENT - int(bits >> 23), 126); }

// Numbers of which the largest is such are f16 as they are: what is lost of the small ones is 2^-27 of it in two parts,
// 2^-16 in one. A NaN may be passed over.
float larger_magnitude(float most, vec4 x) {
  const vec4 a = abs(x);
  return max(most, max(max(a.x, a.y), max(a.z, a.w)));
}

bool is_plain(float most) { return most <= 32768.0 && (most >= 1.0 / 512 || most == 0.0); }

// A pair's words, of each part one. Where there are two, the first is rounded to 11 bits before it becomes f16, so that
// what it leaves does not depend on how the device would round.
void split_pair(float a, float b, out uint words[MOST_PARTS]) {
  const vec2 x = vec2(a, b);
  const uvec2 rounded = floatBitsToUint(x) + 0x1000 & 0xffffe000;
  words[0] = pack_pair(PARTS > 1 ? uintBitsToFloat(rounded) : x);
  precise const vec2 left = x - uintBitsToFloat(rounded);
  words[MOST_PARTS - 1] = PARTS > 1 ? pack_pair(left * 2048.0) : words[0];
}

// Dimensions 4 t .. 4 t + 3 of a slice stand in columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9.
void store_queries() {
  float most[QUERY_TURNS];
  bool plain = true;
  EACH(i, QUERY_TURNS) {
    most[i] = larger_magnitude(0.0, q[i]);
    plain = plain && is_plain(most[i]);
  }
  plain = all_agree(plain);
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = at / PIECES, piece = at % PIECES;
    const uint row = query % 16, lane = row % 8 * 4 + piece % 4, word = row / 8 * 2;
    vec4 scaled = q[i];
    float back = push.scale;
    if (!plain) {
      const int exponent = exponent_of(largest_of(magnitude_of(q[i]), 1, PIECES));
      scaled *= power_of_two(exponent);
      back *= power_of_two(-exponent);
    }
    uint low[MOST_PARTS], high[MOST_PARTS];
    split_pair(scaled.x, scaled.y, low);
    split_pair(scaled.z, scaled.w, high);
    EACH(p, PARTS) {
      const uint to = ((query / 16 * SLICES + piece / 4) * PARTS + p) * LANES + lane;
      q_area[to][word] = low[p];
      q_area[to][word + 1] = high[p];
    }
    if (piece == 0) q_back[query] = back;
  }
}
