// What the matrix kernels share. A workgroup is TEAMS teams of TEAM threads; a team takes W rows of w, a thread one piece
// (16 bytes of a row) a step: piece `step * TEAM + lane`. Sums of a team's threads are added at the end, in a fixed order.
// Neither ROWS nor W nor PASS nor the number of rows changes the order of a sum.
#define PUSH_MATRIX
#include "push.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint ROWS = 8; // rows of x a workgroup takes: 8 or 16
layout(constant_id = 1) const uint W = 1;    // rows of w a team takes: 1, 2 or 4
// Rows of x whose values lie in shared memory, or whose sums are added, at a time: 8, or 4 where there is little of it,
// with W 1 or 2, and in int8 with ROWS 8.
layout(constant_id = 2) const uint PASS = 8;

const uint TEAM = 16, TEAMS = 8;
const uint MAX_ROWS = 16, MAX_W = 4; // arrays are that long: a loop to ROWS or W ends at the constant given
const uint MAX_PASS = 8;

layout(set = 0, binding = 0) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 5) writeonly buffer Output { float y[]; };

const uint QUAD_SUMS = PASS / 4 * W; // of a thread, four sums each
const uint SUM_STRIDE = QUAD_SUMS | 1; // odd against bank conflicts

// A tile of x, or sums, as bits; large enough for either: 18 or 9 KiB.
shared uvec4 area[144 * PASS];

uint lane, team;             // the thread's place
float sums[MAX_W][MAX_ROWS]; // of the thread's pieces
// Of this step and the next: loads are under way while a step is computed.
uvec4 pieces[MAX_W], next_pieces[MAX_W];

void find_place() {
  lane = gl_LocalInvocationIndex % TEAM;
  team = gl_LocalInvocationIndex / TEAM;
}

uint first_row() { return gl_WorkGroupID.y * ROWS; }

// The i-th row of w of a team; may lie past the last.
uint weight_row(uint of_team, uint i) { return (gl_WorkGroupID.x * TEAMS + of_team) * W + i; }

void clear_sums() {
  [[unroll]] for (uint i = 0; i < W; i++)
    [[unroll]] for (uint r = 0; r < ROWS; r++) sums[i][r] = 0;
}

// The thread's piece of each row, of `count`; zeros past the end.
void load_next_pieces(uint piece, uint count) {
  [[unroll]] for (uint i = 0; i < W; i++) {
    const uint row = weight_row(team, i);
    next_pieces[i] = row < push.out_rows && piece < count ? weights[row * push.pitch + piece] : uvec4(0);
  }
}

// The sum of a team's threads: lanes t, t + 4, t + 8 and t + 12 in turn, then the four in pairs.
vec4 team_sum(uint of_team, uint index) {
  precise vec4 part[4] = vec4[](vec4(0), vec4(0), vec4(0), vec4(0));
  for (uint t = 0; t < TEAM; t += 4)
    [[unroll]] for (uint k = 0; k < 4; k++)
      part[k] += uintBitsToFloat(area[(of_team * TEAM + t + k) * SUM_STRIDE + index]);
  precise const vec4 sum = (part[0] + part[1]) + (part[2] + part[3]);
  return sum;
}

// What becomes of a finished sum; each kernel has its own.
float finish(float sum, uint row);

// Adds the sums of rows PASS * pass .. of x over the team and writes them. All threads come here.
void write_pass(uint pass) {
  barrier();
  [[unroll]] for (uint i = 0; i < W; i++)
    [[unroll]] for (uint h = 0; h < PASS / 4; h++) {
      const uint r = pass * PASS + h * 4;
      area[gl_LocalInvocationIndex * SUM_STRIDE + i * (PASS / 4) + h] =
          floatBitsToUint(vec4(sums[i][r], sums[i][r + 1], sums[i][r + 2], sums[i][r + 3]));
    }
  barrier();
  if (gl_LocalInvocationIndex >= TEAMS * QUAD_SUMS) return;
  const uint of_team = gl_LocalInvocationIndex / QUAD_SUMS, index = gl_LocalInvocationIndex % QUAD_SUMS;
  const vec4 sum = team_sum(of_team, index);
  const uint row = weight_row(of_team, index / (PASS / 4)), first = first_row() + pass * PASS + index % (PASS / 4) * 4;
  if (row >= push.out_rows) return;
  for (uint r = 0; r < 4; r++)
    if (first + r < push.rows)
      y[(push.y_first + first + r) * push.y_stride + push.out_first + row] = finish(sum[r], row);
}

void write_sums() {
  [[unroll]] for (uint pass = 0; pass < ROWS / PASS; pass++) write_pass(pass);
}
