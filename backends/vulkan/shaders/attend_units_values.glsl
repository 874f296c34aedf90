// attend_units.comp: the values of keys by their weights.

// ---- values

// V to f16, as K; a power of two for each of this thread's dimensions, and the factor for the columns of its products.
bool pack_values(out float back[DIMS][2]) {
  bool plain = true;
  EACH(d, DIMS) {
    float most = 0.0;
    EACH(s, KEY_SLICES) most = larger_magnitude(most, vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d]));
    plain = plain && is_plain(most);
  }
  plain = all_agree(plain);
  if (!plain)
    EACH(d, DIMS) {
      uint largest_bits = 0;
      EACH(s, KEY_SLICES)
        largest_bits = max(largest_bits, magnitude_of(vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d])));
      const int exponent = exponent_of(largest_of(largest_bits, 1, 4));
      EACH(s, KEY_SLICES) EACH(i, 4) v[s][i][d] *= power_of_two(exponent);
      const float own = power_of_two(-exponent);
      EACH(c, 2) back[d][c] = from_lane(own, (2 * t_of() + c) * 4);
    }
  EACH(s, KEY_SLICES) EACH(d, DIMS) values[s][d] = column_of(vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d]));
  return plain;
}

// Weights of the bands of a turn, for all subgroups.
void store_weights(uint turn, float weights[BANDS][4]) {
  EACH(i, WEIGHT_BANDS) EACH(r, 2) {
    const uint b = turn * WEIGHT_BANDS + i;
    uint words[MOST_PARTS];
    split_pair(weights[b][2 * r] * WEIGHT_SCALE, weights[b][2 * r + 1] * WEIGHT_SCALE, words);
    EACH(p, PARTS) {
      const uint at = ((this_subgroup() / 2 * WEIGHT_BANDS + i) * PARTS + p) * LANES + this_lane();
      weight_area[at][2 * r + this_subgroup() % 2] = words[p];
    }
  }
}

// Of one band: the i-th of a turn.
void multiply_values(uint i, inout float found_values[DIMS][4]) {
  Products c[DIMS][MOST_ORDERS];
  EACH(d, DIMS) EACH(o, ORDERS) CLEAR(c[d][o]);
  EACH(s, KEY_SLICES) EACH(p, PARTS) { // 32 keys in all
    FragmentA weights;
    const uvec4 words = weight_area[((value_slice(s) * WEIGHT_BANDS + i) * PARTS + p) * LANES + this_lane()];
    SET_A(weights, words);
    EACH(d, DIMS) EACH(r, PARTS - p) {
      FragmentB column;
      const uvec2 column_words = values[s][d].part[r];
      SET_B(column, column_words);
      MULTIPLY_ADD(weights, column, c[d][p + r]);
    }
  }
  EACH(d, DIMS) EACH(n, 4) {
    found_values[d][n] = float(c[d][0][n]);
    if (PARTS > 1) found_values[d][n] = fma(float(c[d][MOST_ORDERS - 1][n]), 1.0 / 2048, found_values[d][n]);
  }
}

void mix_values(float weights[BANDS][4]) {
  float back[DIMS][2];
  const bool plain = pack_values(back);
  EACH(turn, WEIGHT_TURNS) {
    if (turn > 0) barrier();
    store_weights(turn, weights);
    barrier();
    EACH(i, WEIGHT_BANDS) {
      const uint b = turn * WEIGHT_BANDS + i;
      float found_values[DIMS][4];
      multiply_values(i, found_values);
      if (!plain)
        EACH(d, DIMS) EACH(n, 4) found_values[d][n] *= back[d][n % 2];
      EACH(d, DIMS) EACH(n, 4) mixed[b][d][n] = fma(found_values[d][n], 1.0 / WEIGHT_SCALE, mixed[b][d][n]);
    }
  }
}
