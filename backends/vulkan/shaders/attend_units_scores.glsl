// attend_units.comp: products, scores of keys, and their softmax.

// ---- products

// Sums of products of parts: of both first ones, and of one of them, which are 2^11 times as large. That of two second
// ones is 2^-24 of the first and less: it is left out.
const uint ORDERS = PARTS, MOST_ORDERS = MOST_PARTS;

// One fragment of columns, of all parts, as words.
struct Column {
  uvec2 part[MOST_PARTS];
};

Column column_of(vec4 x) {
  Column column;
  uint low[MOST_PARTS], high[MOST_PARTS];
  split_pair(x.x, x.y, low);
  split_pair(x.z, x.w, high);
  EACH(p, PARTS) column.part[p] = uvec2(low[p], high[p]);
  return column;
}

Column keys[SLICES], values[KEY_SLICES][DIMS];

// ---- scores

uint tile_query(uint band, uint half_band) { return band * 16 + half_band * 8 + g_of(); }

// K to f16; of keys that do not fit what their scores are multiplied by afterwards, of this thread's in its products.
bool pack_keys(out float back[2]) {
  float most = 0.0;
  EACH(s, SLICES) most = larger_magnitude(most, k[s]);
  const bool plain = all_agree(is_plain(most));
  if (!plain) {
    uint largest_bits = 0;
    EACH(s, SLICES) largest_bits = max(largest_bits, magnitude_of(k[s]));
    const int exponent = exponent_of(largest_of(largest_bits, 1, 4));
    EACH(s, SLICES) k[s] *= power_of_two(exponent);
    const float own = power_of_two(-exponent);
    EACH(c, 2) back[c] = from_lane(own, (2 * t_of() + c) * 4);
  }
  EACH(s, SLICES) keys[s] = column_of(k[s]);
  return plain;
}

// Of this subgroup's keys: [band][2 r + c], of query r and key c.
void multiply_keys(inout float scores[BANDS][4]) {
  Products c[BANDS][MOST_ORDERS];
  EACH(b, BANDS) EACH(o, ORDERS) CLEAR(c[b][o]);
  EACH(s, SLICES) {
    EACH(b, BANDS) EACH(p, PARTS) {
      FragmentA a;
      const uvec4 words = q_area[((b * SLICES + s) * PARTS + p) * LANES + this_lane()];
      SET_A(a, words);
      EACH(r, PARTS - p) {
        FragmentB column;
        const uvec2 column_words = keys[s].part[r];
        SET_B(column, column_words);
        MULTIPLY_ADD(a, column, c[b][p + r]);
      }
    }
    if (PARTS > 1 && s % 2 == 1 || s == SLICES - 1) // 32 columns, or all
      EACH(b, BANDS) {
        EACH(i, 4) scores[b][i] += float(c[b][0][i]);
        CLEAR(c[b][0]);
      }
  }
  if (PARTS > 1)
    EACH(b, BANDS) EACH(i, 4) scores[b][i] = fma(float(c[b][MOST_ORDERS - 1][i]), 1.0 / 2048, scores[b][i]);
}

void score_keys(out float scores[BANDS][4]) {
  float back[2];
  EACH(b, BANDS) EACH(i, 4) scores[b][i] = 0.0;
  const bool plain = pack_keys(back);
  multiply_keys(scores);
  if (!plain)
    EACH(b, BANDS) EACH(i, 4) scores[b][i] *= back[i % 2];
  EACH(b, BANDS) EACH(r, 2) {
    const float factor = q_back[tile_query(b, r)];
    EACH(c, 2) {
      precise const float score = scores[b][2 * r + c] * factor;
      scores[b][2 * r + c] = score;
    }
  }
  if (step_first >= all_see && part.limit - step_first >= KEYS) return;
  EACH(b, BANDS) EACH(r, 2) {
    const uint begin = begins[tile_query(b, r)], first = step_first + this_subgroup() * 8 + 2 * t_of();
    EACH(c, 2)
      if (first + c < begin || first + c >= part.limit) scores[b][2 * r + c] = uintBitsToFloat(LOWEST);
  }
}

// The larger one; NaN is passed over, and comes back as a weight.
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

void put_found(uint query, float value) { found[query * 2 + this_subgroup() / 4][this_subgroup() % 4] = value; }

// The largest score so far of each of this thread's queries: of four threads, then of all subgroups.
void find_largest(float scores[BANDS][4], out float now[BANDS][2]) {
  EACH(b, BANDS) EACH(r, 2) {
    float own = larger(uintBitsToFloat(LOWEST), scores[b][2 * r]);
    own = larger(own, scores[b][2 * r + 1]);
    own = max(own, from_lane(own, this_lane() ^ 1));
    own = max(own, from_lane(own, this_lane() ^ 2));
    if (t_of() == 0) put_found(tile_query(b, r), own);
  }
  barrier();
  EACH(b, BANDS) EACH(r, 2) {
    const vec4 most = max(found[tile_query(b, r) * 2], found[tile_query(b, r) * 2 + 1]);
    now[b][r] = max(largest[b][r], max(max(most.x, most.y), max(most.z, most.w)));
  }
}

// e^x of x at most 0. With one part of f16 the device's own will do, which Vulkan promises to 3 + 2 |x| units of the last
// place: a 20th of f16's step at most where it is not 0.
float weight_of(float x) {
  if (PARTS > 1) return exp_f32(x);
  return x < -100.0 ? 0.0 : exp(x);
}

// Scores become weights; what was summed before is scaled to the new largest score.
void weigh_keys(inout float scores[BANDS][4]) {
  float now[BANDS][2], before[BANDS][2];
  find_largest(scores, now);
  EACH(b, BANDS) EACH(r, 2) {
    // Without a score above minus infinity nothing is subtracted.
    const bool none = floatBitsToUint(now[b][r]) == LOWEST;
    const float shift = none ? 0.0 : now[b][r];
    before[b][r] = none ? 1.0 : weight_of(largest[b][r] - now[b][r]);
    precise float sum = total[b][r] * before[b][r];
    EACH(i, 2) {
      const float weight = weight_of(scores[b][2 * r + i] - shift);
      scores[b][2 * r + i] = weight;
      sum += weight;
    }
    total[b][r] = sum;
    largest[b][r] = now[b][r];
    EACH(d, DIMS) EACH(i, 2) mixed[b][d][2 * r + i] *= before[b][r];
  }
}
