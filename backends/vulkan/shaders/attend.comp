/* Attention of a tile of queries to one part of the keys, with the softmax taken as keys come. A workgroup is one kv
 * head, one part, one tile; mix.comp adds the parts up. A step takes 64 keys: all loads of K, V and q are issued before
 * any of them is waited for, straight into the registers that use them. It scores the keys, subtracts the largest score
 * so far, scales to it what was summed before, and adds the keys' values. Values of keys that a query does not see are
 * never multiplied: they may be NaN. What a query gets follows from head_dim and from where steps begin, not from the
 * tile: a block cut to fewer rows gives the same bits. docs/vulkan-attention.md says why it is built so. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_ATTEND
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 256, local_size_x_id = 3) in;
layout(constant_id = 0) const uint HEAD_DIM = 128;
layout(constant_id = 1) const uint QUERIES = 32; /* of a tile: 8, 16 or 32, an eighth of the threads at most */
layout(constant_id = 2) const uint BATCH = 4;    /* queries whose sums lie in shared memory at a time: 1, 2 or 4 */

/* Rows are read in pieces of four numbers where they are aligned so, else of two. */
layout(set = 0, binding = 0, std430) readonly buffer Query2 { vec2 q2[]; };
layout(set = 0, binding = 0, std430) readonly buffer Query4 { vec4 q4[]; };
layout(set = 0, binding = 1, std430) readonly buffer ContextKeys2 { vec2 context_k2[]; };
layout(set = 0, binding = 1, std430) readonly buffer ContextKeys4 { vec4 context_k4[]; };
layout(set = 0, binding = 2, std430) readonly buffer ContextValues2 { vec2 context_v2[]; };
layout(set = 0, binding = 2, std430) readonly buffer ContextValues4 { vec4 context_v4[]; };
layout(set = 0, binding = 3, std430) readonly buffer OwnKeys2 { vec2 own_k2[]; };
layout(set = 0, binding = 3, std430) readonly buffer OwnKeys4 { vec4 own_k4[]; };
layout(set = 0, binding = 4, std430) readonly buffer OwnValues2 { vec2 own_v2[]; };
layout(set = 0, binding = 4, std430) readonly buffer OwnValues4 { vec4 own_v4[]; };
layout(set = 0, binding = 5, std430) readonly buffer Visible { uint visible[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 7, std430) writeonly buffer Mixes { vec2 mixes[]; };

const uint THREADS = gl_WorkGroupSize.x; /* 128 or 256 */
const uint HALVES = HEAD_DIM / 2;        /* pairs of numbers in a head */
const uint PIECES = (HEAD_DIM + 3) / 4;  /* of four numbers */
const uint KEYS = 64;                    /* of a step */
const uint BATCHES = QUERIES / BATCH;
/* A key's dimensions are shared by SLICES threads: slice s has the pieces s, s + SLICES, ... A thread has KEY_TURNS
 * keys. */
const uint SLICES = 8;
const uint SLICE_PIECES = (PIECES + SLICES - 1) / SLICES;
const uint KEY_TURNS = KEYS * SLICES / THREADS;
const uint QUERY_PITCH = SLICES * SLICE_PIECES;
const uint QUERY_TURNS = (QUERIES * QUERY_PITCH + THREADS - 1) / THREADS;
/* Of V, a thread has one piece in every LANES of a row, of GROUP keys that follow each other. */
const uint LANES = 32;
const uint GROUP = 8;
const uint GROUPS = KEYS / GROUP;
const uint VALUE_TURNS = GROUPS * LANES / THREADS;
const uint SLABS = (PIECES + LANES - 1) / LANES;
/* Pairs of a batch's sums that a thread adds up and keeps from step to step. */
const uint PAIRS = 2 * LANES;
const uint OWNED = (BATCH * PAIRS + THREADS - 1) / THREADS;
/* Shared memory that q, sums over slices and sums over groups take one after the other, two buffers of either sum. */
const uint SCORE_PITCH = BATCH * KEYS + 4; /* slices start in other banks */
const uint SCORES = SLICES * SCORE_PITCH / 4;
const uint VALUES = GROUPS * BATCH * LANES;
const uint FIRST = QUERIES * QUERY_PITCH > VALUES ? QUERIES * QUERY_PITCH : VALUES;
const uint SECOND = 2 * SCORES > VALUES ? 2 * SCORES : VALUES;
const uint QUADS = KEYS / 4;
const uint LOWEST = 0xff800000u; /* bits of minus infinity */
const uint NEVER = 0xffffffffu;

shared vec4 area[FIRST + SECOND];
shared vec4 weights[QUERIES * QUADS]; /* of four keys each: scores, then weights */
shared float partial[8 * QUERIES];    /* what eight threads found for a query */
shared uint begins[QUERIES];          /* the first key that a query sees */
shared uint places[QUERIES];          /* of its sums in this part; NEVER: there is no such query */
shared float kept[QUERIES];           /* what its sums so far are multiplied by */

/* Keys first .. limit of the context, counted from its first row, or of the block itself. */
struct Part {
  bool own;
  uint first, limit;
};
Part part;
uint step_first;        /* the step's first key */
uint all_see;           /* from this key on, every query of the tile sees every key */
bool is_first, is_last; /* of the steps that this workgroup takes */
uint rep;               /* heads of a kv head */
uint slice, key_lane;   /* this thread, when keys are scored: a slice of the keys key_lane + i * THREADS / SLICES */
uint lane, group;       /* and when values are added: a piece of the keys of a group */
float largest, total;   /* of query thread / 8: its largest score so far, and a share of its sum of exp */

vec4 k[KEY_TURNS * SLICE_PIECES], v[SLABS * VALUE_TURNS * GROUP];
vec2 mixed[SLABS * BATCHES * OWNED];

/* ---- places ---- */

/* Neighbouring threads have the same slice of two keys: they ask shared memory for the same bytes. */
void find_place() {
  const uint thread = gl_LocalInvocationID.x;
  rep = push.heads / push.kv_heads;
  slice = thread >> 1 & 7u;
  key_lane = thread & 1u | thread >> 3 & ~1u;
  lane = thread % LANES;
  group = thread / LANES;
}

uint queries_in_all() { return push.rows * rep; }

/* The query of the whole block that is the tile's i-th. */
uint query_of(uint i) { return gl_WorkGroupID.z * QUERIES + i; }

/* The row and head of a query, as rows * heads count them. */
uint query_place(uint query) { return query / rep * push.heads + gl_WorkGroupID.x * rep + query % rep; }

uint part_index() { return push.part_first + gl_WorkGroupID.y; }

void find_part() {
  const uint last = push.row_first + push.row_count;
  const uint begin = clamp(visible[1], push.row_first, last), end = clamp(visible[0], begin, last);
  const uint share = (end - begin + push.splits - 1) / push.splits;
  const uint keys = max((share + KEYS - 1) / KEYS, 1u) * KEYS;
  const uint first = min(begin + gl_WorkGroupID.y * keys, end);
  part = Part(false, first, min(first + keys, end));
  if (part_index() + 1 == push.parts) part = Part(true, 0u, push.rows);
}

/* What the tile's queries see; steps that none of them sees are left out. */
void find_steps() {
  const uint low = query_of(0) / rep, high = min(query_of(QUERIES - 1), queries_in_all() - 1) / rep;
  const uint least = part.own ? 0u : visible[1 + low];
  all_see = part.own ? 0u : visible[1 + high];
  step_first = part.first;
  if (least > step_first) step_first += min(least - step_first, part.limit - step_first) / KEYS * KEYS;
  const uint i = gl_LocalInvocationID.x, query = query_of(i), row = query / rep;
  if (i >= QUERIES) return;
  begins[i] = row >= push.rows ? NEVER : part.own ? 0u : visible[1 + row];
  places[i] = row >= push.rows ? NEVER : part_index() * push.rows * push.heads + query_place(query);
}

/* ---- from memory to registers ---- */

/* Pairs of a piece that are there; of others the row's last pair is read. */
uint pair_at(uint row, uint pair) { return row * HALVES + min(pair, HALVES - 1); }

vec4 only_there(vec4 x, uint piece) {
  const vec2 none = vec2(0.0);
  return vec4(2 * piece < HALVES ? x.xy : none, 2 * piece + 1 < HALVES ? x.zw : none);
}

/* Piece of a row of q, K or V, a row of each head counted: zeros behind its end. The loads have no condition. */
#define READ_PIECE(name, x2, x4)                                                                  \
  vec4 name(uint row, uint piece) {                                                               \
    if (HEAD_DIM % (4 * LANES) == 0) return x4[row * PIECES + piece];                             \
    if (HEAD_DIM % 4 == 0) return only_there(x4[row * PIECES + min(piece, PIECES - 1)], piece);   \
    return only_there(vec4(x2[pair_at(row, 2 * piece)], x2[pair_at(row, 2 * piece + 1)]), piece); \
  }
READ_PIECE(query_piece, q2, q4)
READ_PIECE(context_key, context_k2, context_k4)
READ_PIECE(context_value, context_v2, context_v4)
READ_PIECE(own_key, own_k2, own_k4)
READ_PIECE(own_value, own_v2, own_v4)

/* The row of a key, or of the part's last, in what is bound. */
uint key_row(uint key) {
  return (min(key, part.limit - 1) - (part.own ? 0u : push.row_first)) * push.kv_heads + gl_WorkGroupID.x;
}

uint key_of(uint turn) { return step_first + key_lane + turn * (THREADS / SLICES); }

uint value_key(uint turn) { return step_first + (group + turn * (THREADS / LANES)) * GROUP; }

#define LOAD(key_piece, value_piece)                                                     \
  [[unroll]] for (uint turn = 0; turn < KEY_TURNS; turn++)                               \
    [[unroll]] for (uint i = 0; i < SLICE_PIECES; i++)                                   \
      k[turn * SLICE_PIECES + i] = key_piece(key_row(key_of(turn)), slice + i * SLICES); \
  [[unroll]] for (uint slab = 0; slab < SLABS; slab++)                                   \
    [[unroll]] for (uint turn = 0; turn < VALUE_TURNS; turn++)                           \
      [[unroll]] for (uint i = 0; i < GROUP; i++)                                        \
        v[(slab * VALUE_TURNS + turn) * GROUP + i] =                                     \
            value_piece(key_row(value_key(turn) + i), slab * LANES + lane);

/* All of a step under way at once; then q goes to shared memory. Of the step before, all threads have left the buffer
 * that lies there: batches are even in number, and the last one is in the other. */
void load_step() {
  vec4 q[QUERY_TURNS];
  [[unroll]] for (uint i = 0; i < QUERY_TURNS; i++) {
    const uint at = i * THREADS + gl_LocalInvocationID.x, query = min(query_of(at / QUERY_PITCH), queries_in_all() - 1);
    q[i] = query_piece(query_place(query), at % QUERY_PITCH);
  }
  if (part.own) {
    LOAD(own_key, own_value)
  } else {
    LOAD(context_key, context_value)
  }
  [[unroll]] for (uint i = 0; i < QUERY_TURNS; i++) {
    const uint at = i * THREADS + gl_LocalInvocationID.x;
    if (at < QUERIES * QUERY_PITCH) area[at] = q[i];
  }
  barrier();
}

/* ---- scores ---- */

/* `precise`: fused in tiles of every size or in none, so that they agree to the bit. */
float multiply_add(float a, float b, float sum) {
  precise const float result = fma(a, b, sum);
  return result;
}
vec4 multiply_add(float a, vec4 b, vec4 sum) {
  precise const vec4 result = fma(vec4(a), b, sum);
  return result;
}

uint score_buffer(uint batch) { return 4 * (FIRST + batch % 2 * SCORES); }

/* This thread's slice of products, of a batch of queries and its keys. */
void score_slice(uint batch) {
  float found[BATCH * KEY_TURNS];
  [[unroll]] for (uint i = 0; i < BATCH * KEY_TURNS; i++) found[i] = 0.0;
  [[unroll]] for (uint piece = 0; piece < SLICE_PIECES; piece++)
    [[unroll]] for (uint i = 0; i < BATCH; i++) {
      const vec4 q = area[(batch * BATCH + i) * QUERY_PITCH + piece * SLICES + slice];
      [[unroll]] for (uint turn = 0; turn < KEY_TURNS; turn++) {
        const vec4 key = k[turn * SLICE_PIECES + piece];
        float sum = found[i * KEY_TURNS + turn];
        sum = multiply_add(q.x, key.x, sum);
        sum = multiply_add(q.y, key.y, sum);
        sum = multiply_add(q.z, key.z, sum);
        found[i * KEY_TURNS + turn] = multiply_add(q.w, key.w, sum);
      }
    }
  const uint to = score_buffer(batch) + slice * SCORE_PITCH + key_lane;
  [[unroll]] for (uint i = 0; i < BATCH; i++)
    [[unroll]] for (uint turn = 0; turn < KEY_TURNS; turn++) {
      const uint at = to + i * KEYS + turn * (THREADS / SLICES);
      area[at / 4][at % 4] = found[i * KEY_TURNS + turn];
    }
}

void add_slices(uint batch) {
  for (uint i = gl_LocalInvocationID.x; i < BATCH * KEYS; i += THREADS) {
    const uint from = score_buffer(batch) + i, to = batch * BATCH * KEYS + i;
    precise float sum = 0.0;
    [[unroll]] for (uint s = 0; s < SLICES; s++) {
      const uint at = from + s * SCORE_PITCH;
      sum += area[at / 4][at % 4];
    }
    weights[to / 4][to % 4] = sum;
  }
}

void score_keys() {
  [[dont_unroll]] for (uint batch = 0; batch < BATCHES; batch++) {
    score_slice(batch);
    barrier();
    add_slices(batch);
  }
  barrier();
}

/* The larger one; NaN is passed over, and comes back as a weight. */
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

/* The largest of what the query's eight threads have. */
float largest_of_eight(float own) {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < 8 * QUERIES) partial[thread] = own;
  barrier();
  float found = own;
  if (thread < 8 * QUERIES)
    [[unroll]] for (uint i = 0; i < 8; i++) found = max(found, partial[thread & ~7u | i]);
  return found;
}

/* A step's weights of query thread / 8: this thread has the quads thread % 8 and 8 more. */
void weigh_keys() {
  const uint thread = gl_LocalInvocationID.x, query = min(thread / 8, QUERIES - 1), at = query * QUADS + thread % 8;
  float own[8], now = largest;
  [[unroll]] for (uint i = 0; i < 8; i++) {
    const uint key = step_first + 4 * (thread % 8 + i / 4 * 8) + i % 4;
    precise const float score = weights[at + i / 4 * 8][i % 4] * push.scale;
    own[i] = key < begins[query] || key >= part.limit ? uintBitsToFloat(LOWEST) : score;
    now = larger(now, own[i]);
  }
  now = largest_of_eight(now);
  /* Without a score above minus infinity nothing is subtracted. */
  const bool none = floatBitsToUint(now) == LOWEST;
  const float shift = none ? 0.0 : now, before = none ? 1.0 : exp_f32(largest - now);
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0; i < 8; i++) {
    own[i] = exp_f32(own[i] - shift);
    sum += own[i];
  }
  total = multiply_add(total, before, sum);
  largest = now;
  if (thread < 8 * QUERIES) {
    weights[at] = vec4(own[0], own[1], own[2], own[3]);
    weights[at + 8] = vec4(own[4], own[5], own[6], own[7]);
    if (thread % 8 == 0) kept[query] = before;
  }
  barrier();
}

/* ---- values ---- */

uint value_buffer(uint turn) { return turn % 2 * FIRST; }

/* What a group of keys gives to a query. Where not every query sees every key, or none does, only what is seen. */
vec4 weigh_group(uint query, uint first, uint at, uint key, bool all) {
  const vec4 before = weights[query * QUADS + first], after = weights[query * QUADS + first + 1];
  const uint begin = begins[query];
  vec4 sum = vec4(0.0);
  [[unroll]] for (uint i = 0; i < GROUP; i++) {
    const vec4 more = multiply_add(i < 4 ? before[i] : after[i - 4], v[at + i], sum);
    if (all || key + i >= begin && key + i < part.limit) sum = more;
  }
  return sum;
}

void mix_group(uint slab, uint batch, uint to, bool all) {
  [[unroll]] for (uint turn = 0; turn < VALUE_TURNS; turn++)
    [[unroll]] for (uint i = 0; i < BATCH; i++) {
      const uint in_step = group + turn * (THREADS / LANES);
      area[to + (in_step * BATCH + i) * LANES + lane] =
          weigh_group(batch * BATCH + i, 2 * in_step, (slab * VALUE_TURNS + turn) * GROUP, value_key(turn), all);
    }
}

/* The groups' sums, added to what the steps before found. */
void add_groups(uint slab, uint batch, uint from) {
  [[unroll]] for (uint turn = 0; turn < OWNED; turn++) {
    const uint at = turn * THREADS + gl_LocalInvocationID.x, i = at / PAIRS, pair = at % PAIRS;
    const uint query = batch * BATCH + i, to = (slab * BATCHES + batch) * OWNED + turn, place = slab * PAIRS + pair;
    if (at >= BATCH * PAIRS) continue;
    precise vec2 sum = vec2(0.0);
    [[unroll]] for (uint g = 0; g < GROUPS; g++) {
      const vec4 more = area[from + (g * BATCH + i) * LANES + pair / 2];
      sum += pair % 2 == 0 ? more.xy : more.zw;
    }
    if (!is_first) {
      precise const vec2 scaled = fma(mixed[to], vec2(kept[query]), sum);
      sum = scaled;
    }
    if (!is_last)
      mixed[to] = sum;
    else if (place < HALVES && places[query] != NEVER)
      mixes[places[query] * HALVES + place] = sum;
  }
}

void mix_values() {
  const bool all = step_first >= all_see && part.limit - step_first >= KEYS;
  [[unroll]] for (uint slab = 0; slab < SLABS; slab++)
    [[dont_unroll]] for (uint batch = 0; batch < BATCHES; batch++) {
      const uint sums_at = value_buffer(slab * BATCHES + batch);
      if (all)
        mix_group(slab, batch, sums_at, true);
      else
        mix_group(slab, batch, sums_at, false);
      barrier();
      add_groups(slab, batch, sums_at);
    }
}

/* ---- a part ---- */

/* A part of which nothing is seen. */
void write_empty() {
  const uint thread = gl_LocalInvocationID.x;
  barrier();
  for (uint at = thread; at < QUERIES * HALVES; at += THREADS)
    if (places[at / HALVES] != NEVER) mixes[places[at / HALVES] * HALVES + at % HALVES] = vec2(0.0);
  if (thread < QUERIES && places[thread] != NEVER) sums[places[thread]] = vec2(uintBitsToFloat(LOWEST), 0.0);
}

void write_sums() {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < 8 * QUERIES) partial[thread] = total;
  barrier();
  if (thread >= 8 * QUERIES || thread % 8 != 0 || places[thread / 8] == NEVER) return;
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0; i < 8; i++) sum += partial[thread + i];
  sums[places[thread / 8]] = vec2(largest, sum);
}

void main() {
  find_place();
  find_part();
  find_steps();
  if (step_first >= part.limit) {
    write_empty();
    return;
  }
  largest = uintBitsToFloat(LOWEST);
  total = 0.0;
  is_first = true;
  [[dont_unroll]] for (; step_first < part.limit; step_first += KEYS) {
    is_last = part.limit - step_first <= KEYS;
    load_step();
    score_keys();
    weigh_keys();
    mix_values();
    is_first = false;
  }
  write_sums();
}
