/* Attention of a tile of queries to one part of the keys, with the softmax taken as keys come, and the sum of the
 * parts. A workgroup is one kv head, one part, one tile. A step scores 128 keys, subtracts the largest score so far,
 * scales to it what was summed before, and adds the keys' values. The workgroup that is the last to leave its part
 * joins the parts, in an order that does not depend on who was last. Values of keys that a query does not see are never
 * multiplied by 0: they may be NaN. What a query gets follows from head_dim and from where steps begin, not from the
 * tile, nor from how chunks are stored: a block cut to fewer rows gives the same bits. docs/vulkan-attention.md says
 * why it is built so. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_ATTEND
#include "push.h"
#include "numbers.glsl"

layout(local_size_x_id = 3) in; /* THREADS */
layout(constant_id = 0) const uint HEAD_DIM = 128;
layout(constant_id = 1) const uint QUERIES = 32; /* 8, 16 or 32 */
layout(constant_id = 2) const uint BUFFERS = 2;  /* chunks of K or V in shared memory: 1 or 2 */

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
layout(set = 0, binding = 6, std430) coherent buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 7, std430) coherent buffer Mixes2 { vec2 mixes2[]; };
layout(set = 0, binding = 7, std430) coherent buffer Mixes4 { vec4 mixes4[]; };
layout(set = 0, binding = 8, std430) coherent buffer Counters { uint arrived[]; };
layout(set = 0, binding = 9, std430) writeonly buffer Out2 { vec2 y2[]; };
layout(set = 0, binding = 9, std430) writeonly buffer Out4 { vec4 y4[]; };

const uint THREADS = 8 * QUERIES;
const uint PIECES = (HEAD_DIM + 3) / 4; /* of four numbers, in a head */
const uint KEYS = 128;                  /* of a step; a quad of them is four keys that lie 8 apart in a strip of 32 */
const uint STRIP = 32;
const uint QUADS = KEYS / 4;
const uint LEAST_KEYS = 64; /* of a part */
/* Queries g, g + GROUPS, ... go together: eight a thread, that meet the four keys of a quad. */
const uint GROUPS = QUERIES / 8;
/* Chunks in which a step's K and V go through shared memory: four pieces of all keys, whole rows of some keys. */
const uint CHUNK = 4;
const uint PITCH = CHUNK | 1; /* odd: neighbouring rows start in other banks */
const uint KEY_CHUNKS = (PIECES + 4 * CHUNK - 1) / (4 * CHUNK) * 4; /* whole rounds of DEPTH, and of two buffers */
const uint VALUE_QUADS = PIECES > 32 ? 2 : 4;
const uint VALUE_CHUNKS = QUADS / VALUE_QUADS;
const uint CHUNKS = KEY_CHUNKS + VALUE_CHUNKS;
const uint AREA = KEYS * PITCH; /* of a chunk, in vec4 */
/* Chunks whose loads are under way, and what each of them takes of a thread: 8 loads in all. */
const uint DEPTH = GROUPS;
const uint LOADS = 8 / DEPTH;
const uint SIDES = PIECES > 32 ? 1 : 2; /* threads that share the sums of four dimensions; each has quads of its own */
const uint WEIGHT_PITCH = QUADS + 2;    /* threads that write or read scores at a time meet other banks */
const uint JOINED = 5;                  /* parts that become one, in two rounds */
const uint MOST_JOINED = 13;            /* in the second round */
const uint COUNTERS = MOST_JOINED + 1;  /* of a tile: one for the second round, then one for each group of the first */
const uint LOWEST = 0xff800000u;        /* bits of minus infinity */
const uint NEVER = 0xffffffffu;

shared vec4 chunks[BUFFERS * AREA];             /* of K, then of V; half of the scores' sums between */
shared vec4 queries[BUFFERS * QUERIES * PITCH]; /* chunks of q, with those of K */
shared vec4 weights[QUERIES * WEIGHT_PITCH];    /* a quad of keys each: scores, then weights */
shared float partial[THREADS];                  /* what eight threads found for a query */
shared uint begins[QUERIES];                    /* the first key that a query sees */
shared float kept[QUERIES];                     /* what its sums so far are multiplied by */
shared bool is_last;

/* Keys first .. limit of the context, counted from its first row, or of the block itself. */
struct Part {
  bool own;
  uint first, limit;
};
Part part;
uint step_first; /* the step's first key */
uint all_see;    /* from this key on, every query of the tile sees every key */

/* This thread's place: a group of queries, and one of 64 threads of it. Neighbouring threads differ in either, so that
 * what they read of shared memory is the same for pairs of them. */
uint group, local;
uint rep; /* heads of a kv head */
/* This thread, when keys are scored: quad strip * 8 + lane, and pieces of K of one parity. */
uint strip, lane, parity;
/* Of query thread / 8: its largest score so far, and this thread's share of its sum of exp. */
float largest, total;

vec4 next[8], next_q[DEPTH]; /* loads under way */
/* Pieces to be loaded, of V or of K and q: where they lie, in pairs of numbers, and whether they are there: not past
 * the part and behind a row's end. */
bool of_values, there[LOADS], there_q;
uint from[LOADS], from_q;
/* find_moves */
uint key_row, key_to, key_offset, value_rows[LOADS], value_offsets[LOADS], fetched_q;

vec4 scores[8];        /* of the group's queries and four keys */
vec4 mixed[8];         /* of the group's queries and four dimensions */
vec4 found[4][JOINED]; /* loads of parts to be joined */

/* ---- places ---- */

void find_place() {
  const uint thread = gl_LocalInvocationID.x;
  rep = push.heads / push.kv_heads;
  group = GROUPS == 1 ? 0u : thread >> 1 & 1u;
  local = GROUPS == 1 ? thread : thread & 1u | thread >> 1 & ~1u;
  if (GROUPS == 4) {
    group |= local >> 1 & 2u;
    local = local & 3u | local >> 1 & ~3u;
  }
  lane = local & 1u | (local & 2u) << 1 | (local & 4u) >> 1;
  parity = local >> 3 & 1u;
  strip = local >> 4;
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
  const uint keys = max((share + STRIP - 1) / STRIP * STRIP, LEAST_KEYS);
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
  if (gl_LocalInvocationID.x >= QUERIES) return;
  const uint row = query_of(gl_LocalInvocationID.x) / rep;
  begins[gl_LocalInvocationID.x] = row >= push.rows ? NEVER : part.own ? 0u : visible[1 + row];
}

/* ---- from memory to registers, from registers to shared memory ---- */

/* Row of K or q that the threads at, at + 1, at + 2 and at + 3 fetch. Eight threads take two rows that lie four apart,
 * and so write to all banks. */
uint chunk_row(uint at) { return at >> 2 & ~7u | at & 4u | at >> 3 & 3u; }

/* From one row of K or V to the next, in pairs of numbers. */
uint row_pairs() { return push.kv_heads * (HEAD_DIM / 2); }

/* Where this kv head's row of a key begins. */
uint row_at(uint key) {
  return (part.own ? key : key - push.row_first) * row_pairs() + gl_WorkGroupID.x * (HEAD_DIM / 2);
}

/* What this thread moves of each chunk is found once: its first row of K and where that goes, rows of V counted from
 * the chunk's first key, and offsets of pieces from where the first key's row begins. */
void find_moves() {
  const uint thread = gl_LocalInvocationID.x;
  key_row = chunk_row(thread);
  key_to = key_row * PITCH + thread % CHUNK;
  key_offset = key_row * row_pairs() + 2 * (thread % CHUNK);
  [[unroll]] for (uint i = 0; i < LOADS; i++) {
    const uint at = i * THREADS + thread, row = at / PIECES;
    value_rows[i] = row < 4 * VALUE_QUADS ? row / 4 + 8 * (row % 4) : NEVER;
    value_offsets[i] = (row / 4 + 8 * (row % 4)) * row_pairs() + 2 * (at % PIECES);
  }
  const uint query = query_of(key_row);
  fetched_q = NEVER;
  if (thread < QUERIES * CHUNK && query < queries_in_all())
    fetched_q = query_place(query) * (HEAD_DIM / 2) + 2 * (thread % CHUNK);
}

/* Whether the piece there is whole; else a row ends in its middle. */
bool is_whole(uint at) { return at % (HEAD_DIM / 2) + 1 < HEAD_DIM / 2; }

vec4 query_piece(uint at) {
  if (HEAD_DIM % 4 == 0) return q4[at / 2];
  return vec4(q2[at], is_whole(at) ? q2[at + 1] : vec2(0.0));
}

vec4 context_key(uint at) {
  if (HEAD_DIM % 4 == 0) return context_k4[at / 2];
  return vec4(context_k2[at], is_whole(at) ? context_k2[at + 1] : vec2(0.0));
}

vec4 context_value(uint at) {
  if (HEAD_DIM % 4 == 0) return context_v4[at / 2];
  return vec4(context_v2[at], is_whole(at) ? context_v2[at + 1] : vec2(0.0));
}

vec4 own_key(uint at) {
  if (HEAD_DIM % 4 == 0) return own_k4[at / 2];
  return vec4(own_k2[at], is_whole(at) ? own_k2[at + 1] : vec2(0.0));
}

vec4 own_value(uint at) {
  if (HEAD_DIM % 4 == 0) return own_v4[at / 2];
  return vec4(own_v2[at], is_whole(at) ? own_v2[at + 1] : vec2(0.0));
}

/* Where this thread's pieces of chunk n of the step lie; chunks after its last are of the next step. */
void find_loads(uint n) {
  const uint chunk = n < CHUNKS ? n : n - CHUNKS;
  uint key = n < CHUNKS ? step_first : step_first + KEYS;
  of_values = chunk >= KEY_CHUNKS;
  if (of_values) {
    const uint quad = (chunk - KEY_CHUNKS) * VALUE_QUADS;
    key += quad / 8 * STRIP + quad % 8;
    const uint left = part.limit > key ? part.limit - key : 0u;
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
      there[i] = value_rows[i] < left;
      from[i] = row_at(key) + value_offsets[i];
    }
  } else {
    const uint left = part.limit > key ? part.limit - key : 0u, piece = chunk * CHUNK + gl_LocalInvocationID.x % CHUNK;
    const bool inside = PIECES % (4 * CHUNK) == 0 || piece < PIECES;
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
      there[i] = key_row + i * (THREADS / CHUNK) < left && inside;
      from[i] = row_at(key + i * (THREADS / CHUNK)) + key_offset + 2 * chunk * CHUNK;
    }
    there_q = fetched_q != NEVER && inside;
    from_q = fetched_q + 2 * chunk * CHUNK;
  }
}

/* Starts those loads, zeros where there is nothing. No branch lies between them. */
void load(uint slot) {
  const uint to = slot * LOADS;
  [[unroll]] for (uint i = 0; i < LOADS; i++) next[to + i] = vec4(0.0);
  if (part.own) {
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
      if (!of_values && there[i]) next[to + i] = own_key(from[i]);
      if (of_values && there[i]) next[to + i] = own_value(from[i]);
    }
  } else if (of_values) {
    [[unroll]] for (uint i = 0; i < LOADS; i++)
      if (there[i]) next[to + i] = context_value(from[i]);
  } else {
    [[unroll]] for (uint i = 0; i < LOADS; i++)
      if (there[i]) next[to + i] = context_key(from[i]);
  }
  if (of_values) return;
  next_q[slot] = vec4(0.0);
  if (there_q) next_q[slot] = query_piece(from_q);
}

uint buffer_of(uint n) { return BUFFERS == 2 ? n & 1u : 0u; }

void store(uint slot, uint n, bool keys) {
  const uint thread = gl_LocalInvocationID.x, to = buffer_of(n) * AREA;
  if (keys) {
    [[unroll]] for (uint i = 0; i < LOADS; i++)
      chunks[to + key_to + i * (THREADS / CHUNK * PITCH)] = next[slot * LOADS + i];
    if (thread < QUERIES * CHUNK) queries[buffer_of(n) * QUERIES * PITCH + key_to] = next_q[slot];
  } else {
    [[unroll]] for (uint i = 0; i < LOADS; i++) chunks[to + thread + i * THREADS] = next[slot * LOADS + i];
  }
}

/* Chunk n goes to shared memory, and the one that takes its registers under way. After the step's last chunk that is
 * the next step's first. */
void advance(uint n) {
  find_loads(n + DEPTH);
  const bool keys = n < KEY_CHUNKS || n == CHUNKS;
  [[unroll]] for (uint slot = 0; slot < DEPTH; slot++)
    if (n % DEPTH == slot) {
      store(slot, n, keys);
      load(slot);
    }
}

/* ---- scores ---- */

/* `precise`: fused in tiles of every size or in none, so that they agree to the bit. */
vec4 multiply_add(float a, vec4 b, vec4 sum) {
  precise const vec4 result = fma(vec4(a), b, sum);
  return result;
}

/* Adds what pieces of this thread's parity of chunk n give to the scores. */
void score_chunk(uint n) {
  const uint key_at = buffer_of(n) * AREA + (strip * STRIP + lane) * PITCH + parity;
  const uint query_at = buffer_of(n) * QUERIES * PITCH + group * PITCH + parity;
  [[unroll]] for (uint piece = 0; piece < CHUNK; piece += 2) {
    const vec4 k0 = chunks[key_at + piece], k1 = chunks[key_at + 8 * PITCH + piece];
    const vec4 k2 = chunks[key_at + 16 * PITCH + piece], k3 = chunks[key_at + 24 * PITCH + piece];
    [[unroll]] for (uint i = 0; i < 8; i++) {
      const vec4 query = queries[query_at + i * GROUPS * PITCH + piece];
      scores[i] = multiply_add(query.x, vec4(k0.x, k1.x, k2.x, k3.x), scores[i]);
      scores[i] = multiply_add(query.y, vec4(k0.y, k1.y, k2.y, k3.y), scores[i]);
      scores[i] = multiply_add(query.z, vec4(k0.z, k1.z, k2.z, k3.z), scores[i]);
      scores[i] = multiply_add(query.w, vec4(k0.w, k1.w, k2.w, k3.w), scores[i]);
    }
  }
}

void score_keys() {
  const bool needed = step_first + strip * STRIP < part.limit;
  [[unroll]] for (uint i = 0; i < 8; i++) scores[i] = vec4(0.0);
  [[dont_unroll]] for (uint n = 0; n < KEY_CHUNKS; n++) {
    barrier();
    if (BUFFERS == 2 && n + 1 < KEY_CHUNKS) advance(n + 1);
    if (needed && n * CHUNK < PIECES) score_chunk(n);
    if (BUFFERS == 1) barrier();
    if (BUFFERS == 1 && n + 1 < KEY_CHUNKS) advance(n + 1);
  }
}

/* Sums over odd pieces go to where the chunks were; those over even ones to where the weights will be. Where one buffer
 * has no room for that, they are added up there, one after the other. */
void put_scores() {
  const uint at = group * WEIGHT_PITCH + strip * 8 + lane;
  barrier();
  [[unroll]] for (uint i = 0; i < 8; i++) {
    if (parity == 0)
      weights[at + i * GROUPS * WEIGHT_PITCH] = scores[i];
    else if (BUFFERS == 2)
      chunks[at + i * GROUPS * WEIGHT_PITCH] = scores[i];
  }
  barrier();
  if (BUFFERS == 2) return;
  [[unroll]] for (uint i = 0; i < 8; i++) {
    precise const vec4 sum = weights[at + i * GROUPS * WEIGHT_PITCH] + scores[i];
    if (parity == 1) weights[at + i * GROUPS * WEIGHT_PITCH] = sum;
  }
  barrier();
}

/* The larger one; NaN is passed over, and comes back as a weight. */
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

/* The largest of what the query's eight threads have. */
float largest_of_eight(float own) {
  const uint thread = gl_LocalInvocationID.x;
  partial[thread] = own;
  barrier();
  float found = partial[thread & ~7u];
  [[unroll]] for (uint i = 1; i < 8; i++) found = max(found, partial[thread & ~7u | i]);
  return found;
}

/* The sum of what the query's eight threads left. */
float sum_of_eight(uint query) {
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0; i < 8; i++) sum += partial[8 * query + i];
  return sum;
}

/* A step's weights of query thread / 8: this thread has the quads thread % 8 of each strip. */
void weigh_keys() {
  const uint query = gl_LocalInvocationID.x / 8, at = query * WEIGHT_PITCH + gl_LocalInvocationID.x % 8;
  const uint key = step_first + gl_LocalInvocationID.x % 8, begin = begins[query];
  vec4 own[4];
  float now = largest;
  [[unroll]] for (uint i = 0; i < 4; i++) {
    own[i] = vec4(uintBitsToFloat(LOWEST));
    if (step_first + i * STRIP >= part.limit) continue;
    precise vec4 products = weights[at + 8 * i];
    if (BUFFERS == 2) products += chunks[at + 8 * i];
    precise const vec4 scaled = products * push.scale;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint k = key + i * STRIP + 8 * j;
      if (k < begin || k >= part.limit) continue;
      own[i][j] = scaled[j];
      now = larger(now, scaled[j]);
    }
  }
  now = largest_of_eight(now); /* the chunks are free again */
  advance(KEY_CHUNKS);
  /* Without a score above minus infinity nothing is subtracted. */
  const bool none = floatBitsToUint(now) == LOWEST;
  const float shift = none ? 0.0 : now, before = none ? 1.0 : exp_f32(largest - now);
  precise vec4 sum = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    vec4 weight = vec4(0.0);
    if (step_first + i * STRIP < part.limit)
      [[unroll]] for (uint j = 0; j < 4; j++) weight[j] = exp_f32(own[i][j] - shift);
    weights[at + 8 * i] = weight;
    sum += weight;
  }
  precise const float step = (sum.x + sum.z) + (sum.y + sum.w), added = fma(total, before, step);
  total = added;
  largest = now;
  if (gl_LocalInvocationID.x % 8 == 0) kept[query] = before;
}

/* ---- values ---- */

void scale_mixed() {
  [[unroll]] for (uint i = 0; i < 8; i++) {
    precise const vec4 scaled = mixed[i] * kept[group + i * GROUPS];
    mixed[i] = scaled;
  }
}

/* Adds the weighted values of a quad: those that the query sees. */
void mix_seen(uint quad, vec4 v0, vec4 v1, vec4 v2, vec4 v3) {
  const uint key = step_first + quad / 8 * STRIP + quad % 8;
  [[unroll]] for (uint i = 0; i < 8; i++) {
    const vec4 weight = weights[(group + i * GROUPS) * WEIGHT_PITCH + quad];
    const uint begin = begins[group + i * GROUPS];
    if (key >= begin) mixed[i] = multiply_add(weight.x, v0, mixed[i]);
    if (key + 8 >= begin) mixed[i] = multiply_add(weight.y, v1, mixed[i]);
    if (key + 16 >= begin) mixed[i] = multiply_add(weight.z, v2, mixed[i]);
    if (key + 24 >= begin) mixed[i] = multiply_add(weight.w, v3, mixed[i]);
  }
}

/* The same where every query sees all of them, or values that are 0. */
void mix_all(uint quad, vec4 v0, vec4 v1, vec4 v2, vec4 v3) {
  [[unroll]] for (uint i = 0; i < 8; i++) {
    const vec4 weight = weights[(group + i * GROUPS) * WEIGHT_PITCH + quad];
    mixed[i] = multiply_add(weight.x, v0, mixed[i]);
    mixed[i] = multiply_add(weight.y, v1, mixed[i]);
    mixed[i] = multiply_add(weight.z, v2, mixed[i]);
    mixed[i] = multiply_add(weight.w, v3, mixed[i]);
  }
}

void mix_chunk(uint n) {
  const uint side = local / PIECES;
  const bool all = step_first >= all_see;
  if (local >= SIDES * PIECES) return;
  [[unroll]] for (uint i = 0; i < VALUE_QUADS; i += SIDES) {
    const uint quad = (n - KEY_CHUNKS) * VALUE_QUADS + i + side;
    const uint at = buffer_of(n) * AREA + 4 * (i + side) * PIECES + local % PIECES;
    const vec4 v0 = chunks[at], v1 = chunks[at + PIECES], v2 = chunks[at + 2 * PIECES], v3 = chunks[at + 3 * PIECES];
    if (all)
      mix_all(quad, v0, v1, v2, v3);
    else
      mix_seen(quad, v0, v1, v2, v3);
  }
}

void mix_values() {
  const bool last_step = part.limit - step_first <= KEYS;
  const uint strips = min((part.limit - step_first + STRIP - 1) / STRIP, KEYS / STRIP);
  const uint end = KEY_CHUNKS + strips * (VALUE_CHUNKS * STRIP / KEYS);
  [[dont_unroll]] for (uint n = KEY_CHUNKS; n < end; n++) {
    const bool more = n + 1 < end || !last_step;
    barrier();
    if (n == KEY_CHUNKS) scale_mixed();
    if (BUFFERS == 2 && more) advance(n + 1);
    mix_chunk(n);
    if (BUFFERS == 1) barrier();
    if (BUFFERS == 1 && more) advance(n + 1);
  }
}

void take_steps() {
  if (step_first >= part.limit) return;
  [[unroll]] for (uint slot = 0; slot < DEPTH; slot++) {
    find_loads(slot);
    load(slot);
  }
  advance(0);
  [[dont_unroll]] for (; step_first < part.limit; step_first += KEYS) {
    score_keys();
    put_scores();
    weigh_keys();
    mix_values();
  }
}

/* ---- a part's sums ---- */

void write_piece(uint row, uint piece, vec4 value) {
  const uint at = row * (HEAD_DIM / 2) + 2 * piece;
  if (HEAD_DIM % 4 == 0) {
    mixes4[at / 2] = value;
    return;
  }
  mixes2[at] = value.xy;
  if (is_whole(at)) mixes2[at + 1] = value.zw;
}

/* Both sides' sums: each side hands half of its queries over. */
void join_sides() {
  const uint side = local / PIECES;
  if (SIDES == 1) return;
  barrier();
  [[unroll]] for (uint i = 0; i < 4; i++)
    weights[(i * GROUPS + group) * 64 + local] = side == 0 ? mixed[4 + i] : mixed[i];
  barrier();
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const vec4 other = weights[(i * GROUPS + group) * 64 + (local + PIECES) % (2 * PIECES)];
    precise const vec4 sum = (side == 0 ? mixed[i] : mixed[4 + i]) + other;
    mixed[i] = sum;
  }
}

void write_part() {
  const uint thread = gl_LocalInvocationID.x, row = part_index() * push.rows * push.heads, side = local / PIECES;
  partial[thread] = total;
  join_sides();
  barrier();
  if (thread % 8 == 0 && query_of(thread / 8) < queries_in_all())
    sums[row + query_place(query_of(thread / 8))] = vec2(largest, sum_of_eight(thread / 8));
  if (local >= SIDES * PIECES) return;
  [[unroll]] for (uint i = 0; i < 8 / SIDES; i++) {
    const uint query = query_of(group + (side * 4 + i) * GROUPS);
    if (query < queries_in_all()) write_piece(row + query_place(query), local % PIECES, mixed[i]);
  }
}

/* ---- the sum of the parts ---- */

/* Whether this workgroup is the last of `count` that come here; then the counter is ready for the next block, and what
 * the others wrote can be read. */
bool comes_last(uint counter, uint count) {
  const uint at = (gl_WorkGroupID.z * push.kv_heads + gl_WorkGroupID.x) * COUNTERS + counter;
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationID.x == 0) {
    is_last = atomicAdd(arrived[at], 1u) + 1 == count;
    if (is_last) arrived[at] = 0;
  }
  barrier();
  if (is_last) memoryBarrierBuffer();
  return is_last;
}

/* Parts first, first + stride, ..., `count` of them. */
struct Joint {
  uint first, stride, count;
};

uint part_row(Joint joint, uint i) { return (joint.first + i * joint.stride) * push.rows * push.heads; }

/* Weights of the parts, for query thread / 8; the result is its largest score. Where all scores of all parts are minus
 * infinity, weights of the last round are NaN. */
float weigh_parts(Joint joint, bool last_round) {
  const uint query = gl_LocalInvocationID.x / 8, lane = gl_LocalInvocationID.x % 8;
  const bool there = query_of(query) < queries_in_all();
  vec2 each[2];
  [[unroll]] for (uint i = 0; i < 2; i++) {
    each[i] = vec2(uintBitsToFloat(LOWEST), 0.0);
    if (there && lane + 8 * i < joint.count)
      each[i] = sums[part_row(joint, lane + 8 * i) + query_place(query_of(query))];
  }
  const float top = largest_of_eight(max(each[0].x, each[1].x));
  const float shift = !last_round && floatBitsToUint(top) == LOWEST ? 0.0 : top;
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0; i < 2; i++) {
    if (lane + 8 * i >= joint.count) continue;
    const float weight = exp_f32(each[i].x - shift);
    weights[query * WEIGHT_PITCH + lane + 8 * i].x = weight;
    sum = fma(weight, each[i].y, sum);
  }
  barrier();
  partial[gl_LocalInvocationID.x] = sum;
  barrier();
  return top;
}

vec4 read_piece(uint row, uint piece) {
  const uint at = row * (HEAD_DIM / 2) + 2 * piece;
  if (HEAD_DIM % 4 == 0) return mixes4[at / 2];
  return vec4(mixes2[at], is_whole(at) ? mixes2[at + 1] : vec2(0.0));
}

/* mixed / total; infinite values stay so. */
float mean(float mixed, float total) { return is_finite(mixed) ? quotient(mixed, total) : mixed * total; }

void write_mean(uint row, uint piece, vec4 value, float total) {
  const uint at = row * (HEAD_DIM / 2) + 2 * piece;
  const vec4 y = vec4(mean(value.x, total), mean(value.y, total), mean(value.z, total), mean(value.w, total));
  if (HEAD_DIM % 4 == 0) {
    y4[at / 2] = y;
    return;
  }
  y2[at] = y.xy;
  if (is_whole(at)) y2[at + 1] = y.zw;
}

/* Elements first, first + THREADS, ..., four a thread, of parts base, base + 1, ...: all under way together. */
void fetch_parts(Joint joint, uint first, uint base) {
  [[unroll]] for (uint e = 0; e < 4; e++) {
    const uint element = first + e * THREADS, query = query_of(element / PIECES), place = query_place(query);
    if (element >= QUERIES * PIECES || query >= queries_in_all()) continue;
    [[unroll]] for (uint i = 0; i < JOINED; i++)
      if (base + i < joint.count) found[e][i] = read_piece(part_row(joint, base + i) + place, element % PIECES);
  }
}

void add_parts(Joint joint, uint first, uint base, inout vec4 sum[4]) {
  [[unroll]] for (uint e = 0; e < 4; e++) {
    const uint query = min((first + e * THREADS) / PIECES, QUERIES - 1);
    [[unroll]] for (uint i = 0; i < JOINED; i++)
      if (base + i < joint.count)
        sum[e] = multiply_add(weights[query * WEIGHT_PITCH + base + i].x, found[e][i], sum[e]);
  }
}

void write_joint(Joint joint, uint first, bool last_round, vec4 sum[4]) {
  [[unroll]] for (uint e = 0; e < 4; e++) {
    const uint element = first + e * THREADS, query = query_of(element / PIECES), place = query_place(query);
    if (element >= QUERIES * PIECES || query >= queries_in_all()) continue;
    if (last_round)
      write_mean(place, element % PIECES, sum[e], sum_of_eight(element / PIECES));
    else
      write_piece(part_row(joint, 0) + place, element % PIECES, sum[e]);
  }
}

/* Writes the parts' sum in place of the first, or in the last round the answer. The first loads do not wait for the
 * weights. */
void join_parts(Joint joint, bool last_round) {
  const uint thread = gl_LocalInvocationID.x, query = query_of(thread / 8);
  float top;
  [[dont_unroll]] for (uint first = 0; first < QUERIES * PIECES; first += 4 * THREADS) {
    vec4 sum[4] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    [[dont_unroll]] for (uint base = 0; base < joint.count; base += JOINED) {
      fetch_parts(joint, first + thread, base);
      if (first + base == 0) top = weigh_parts(joint, last_round);
      add_parts(joint, first + thread, base, sum);
    }
    write_joint(joint, first + thread, last_round, sum);
  }
  if (!last_round && thread % 8 == 0 && query < queries_in_all())
    sums[part_row(joint, 0) + query_place(query)] = vec2(top, sum_of_eight(thread / 8));
}

/* In the first round the last of JOINED neighbours joins them, in the second the last of those. */
void join() {
  const uint joints = (push.parts + JOINED - 1) / JOINED, joint = part_index() / JOINED;
  Joint parts = Joint(joint * JOINED, 1u, min(JOINED, push.parts - joint * JOINED));
  bool last_round = joints == 1;
  for (uint counter = 1 + joint; comes_last(counter, parts.count); counter = 0) {
    join_parts(parts, last_round);
    if (last_round) break;
    parts = Joint(0u, JOINED, joints);
    last_round = true;
  }
}

void main() {
  find_place();
  find_part();
  find_steps();
  find_moves();
  largest = uintBitsToFloat(LOWEST);
  total = 0.0;
  [[unroll]] for (uint i = 0; i < 8; i++) mixed[i] = vec4(0.0);
  take_steps();
  write_part();
  join();
}
