// Scales of q4tp: rung c of a row's ladder, t[0] = pair.x, t[c] = t[c - 1] * pair.y, every product rounded to f32.
layout(set = 0, binding = 1) readonly buffer Scales { vec2 pairs[]; };
layout(set = 0, binding = 2) readonly buffer Codes { uint codes[]; };

const uint RUNGS = 32, LADDER_STRIDE = 33; // odd against bank conflicts

shared float ladders[TEAMS * MAX_W * LADDER_STRIDE];

float scales[MAX_W];    // of the thread's pieces; a piece is a group of 32 columns
uint next_codes[MAX_W]; // of the next step

// The first TEAMS * W threads climb a ladder each. A barrier must follow.
void make_ladders() {
  if (gl_LocalInvocationIndex >= TEAMS * W) return;
  const uint row = weight_row(0, gl_LocalInvocationIndex);
  const vec2 pair = row < push.out_rows ? pairs[row] : vec2(0);
  precise float rung = pair.x;
  for (uint c = 0; c < RUNGS; c++) {
    ladders[gl_LocalInvocationIndex * LADDER_STRIDE + c] = rung;
    rung = rung * pair.y;
  }
}

// 5 bits a group, the first in the lowest bits; a code may straddle two words.
uint code_at(uint row, uint group) {
  const uint bit = group * 5, at = row * push.code_pitch + bit / 32, shift = bit % 32;
  const uint low = codes[at] >> shift;
  return (shift > 27 ? low | codes[at + 1] << (32 - shift) : low) & 31;
}

void load_next_codes(uint group, uint count) {
  [[unroll]] for (uint i = 0; i < W; i++) {
    const uint row = weight_row(team, i);
    next_codes[i] = row < push.out_rows && group < count ? code_at(row, group) : 0;
  }
}

void look_up_scales() {
  [[unroll]] for (uint i = 0; i < W; i++) scales[i] = ladders[(team * W + i) * LADDER_STRIDE + next_codes[i]];
}
