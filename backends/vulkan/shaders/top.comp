/* The best logits of a row, largest first, equal ones by lower token; logits are handled as bits. A workgroup finds the
 * best of a chunk, the last one of a row the best of what all of them found.
 *
 * To find the best, a bound is sought that `top` elements or a few more reach; those are ranked by counting. The largest
 * keys of some groups of elements give a bound that mostly fits at once; where too many elements reach it, because they
 * stand together or are equal, halving finds another. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_TOP
#include "push.h"
#include "best.glsl"
#define LAST_BINDING 3
#include "last.glsl"

layout(local_size_x = 128, local_size_x_id = 0) in;
layout(set = 0, binding = 0, std430) readonly buffer Logits { uint logits[]; };
layout(set = 0, binding = 0, std430) readonly buffer LogitQuads { uvec4 logit_quads[]; };
layout(set = 0, binding = 1, std430) coherent buffer Entries { uvec2 entries[]; }; /* bits, token */
layout(set = 0, binding = 2, std430) writeonly buffer Best { uvec2 best[]; };

const uint THREADS = gl_WorkGroupSize.x; /* a multiple of GROUPS, 128 or more */
const uint TURNS = 16;                   /* logits of a thread */
const uint GROUPS = 32;              /* of threads, whose largest keys give the first bound */
const uint GROUP = THREADS / GROUPS; /* neighbours; a power of two */
const uint MOST = 512;               /* elements that are ranked, twice the largest `top` */
const uint ENTRY_TURNS = MOST > THREADS ? MOST / THREADS : 1; /* entries of a thread, 4 at most */
const uint ROOM = THREADS * ENTRY_TURNS;
const uint ABSENT = NEVER;           /* bits of no number: a NaN, as which no logit comes here */
const uint FIRST_COUNTER = 2u;       /* of rows, in flags */

/* Elements of this thread: logits in quads, their tokens following from the first, or entries. The code that finds the
 * best of them is there once and short: a device reads it anew in each block. */
uint bits[TURNS], keys[TURNS], tokens[4];
uint first_token;
bool of_logits;
uint largest; /* of the keys */

shared uint maxima[THREADS], group_keys[GROUPS];
shared uint first_bound, largest_key;
shared uint totals[3]; /* of rounds, by number */
shared uvec2 found[MOST]; /* key, token */
shared uint found_bits[MOST];

/* Four neighbours of a chunk that begins and ends at multiples of four elements, in the whole of `all` logits. */
uvec4 load_quad(uint quad, uint all) {
  uvec4 quad_bits = uvec4(ABSENT);
  [[unroll]] for (uint i = 0; i < 3; i++)
    if (4 * quad + i < all) quad_bits[i] = logits[4 * quad + i];
  return quad_bits;
}

/* A row need not begin where a quad does: its first chunk takes the end of the row before, too. */
void load_logits() {
  const uint row = gl_WorkGroupID.y * push.width, all = gl_NumWorkGroups.y * push.width, whole = all / 4;
  const uint thread = gl_LocalInvocationID.x, quads = push.chunk / 4, first = row / 4 + gl_WorkGroupID.x * quads;
  uvec4 loaded[TURNS / 4];
  [[unroll]] for (uint turn = 0; turn < TURNS / 4; turn++) {
    const uint at = turn * THREADS + thread;
    loaded[turn] = at < quads && first + at < whole ? logit_quads[first + at] : uvec4(ABSENT);
  }
  bool nan = false;
  [[unroll]] for (uint turn = 0; turn < TURNS / 4; turn++) {
    const uint at = turn * THREADS + thread;
    if (at < quads && first + at == whole) loaded[turn] = load_quad(whole, all);
    [[unroll]] for (uint i = 0; i < 4; i++) {
      const uint token = 4 * (first + at) + i - row; /* of the row before: wraps */
      const bool inside = at < quads && token < push.width, odd = is_nan_bits(loaded[turn][i]);
      nan = nan || inside && odd;
      bits[4 * turn + i] = odd ? LOWEST_BITS : loaded[turn][i];
      keys[4 * turn + i] = inside ? key_of(bits[4 * turn + i]) : 0u;
    }
  }
  if (nan) atomicOr(flags[0], 1u);
  first_token = 4 * (first + thread) - row;
  of_logits = true;
}

/* A thread takes neighbours, so that a group of threads has all entries of few chunks. */
void load_entries(uint first, uint count) {
  of_logits = false;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) keys[turn] = 0u;
  [[unroll]] for (uint turn = 0; turn < ENTRY_TURNS; turn++) {
    const uint at = gl_LocalInvocationID.x * ENTRY_TURNS + turn;
    const uvec2 entry = entries[first + min(at, count - 1u)];
    bits[turn] = entry.x;
    tokens[turn] = entry.y;
    keys[turn] = at < count ? key_of(entry.x) : 0u;
  }
}

uint token_at(uint turn) {
  const uint of_quad = first_token + turn / 4 * 4 * THREADS + turn % 4;
  return of_logits || turn >= ENTRY_TURNS ? of_quad : tokens[min(turn, 3u)];
}

void find_largest() {
  largest = keys[0];
  [[unroll]] for (uint turn = 1; turn < TURNS; turn++) largest = max(largest, keys[turn]);
}

/* The largest key, and one that `top` groups and so as many elements reach, or the lowest where it is not known. */
void find_bounds() {
  const uint thread = gl_LocalInvocationID.x;
  maxima[thread] = largest;
  if (thread == 0u) {
    first_bound = LOWEST_KEY;
    totals[0] = 0u;
  }
  barrier();
  if (thread < GROUPS) {
    uint key = 0u;
    for (uint i = 0; i < GROUP; i++) key = max(key, maxima[thread * GROUP + (thread + i) % GROUP]); /* in all banks */
    group_keys[thread] = key;
  }
  barrier();
  if (thread < GROUPS) {
    const uint key = group_keys[thread];
    uint rank = 0u;
    for (uint i = 0; i < GROUPS; i++) rank += uint(better(uvec2(group_keys[i], i), uvec2(key, thread)));
    if (rank == 0u) largest_key = key;
    if (rank == push.top - 1u) first_bound = max(key, LOWEST_KEY);
  }
  barrier();
}

/* Keeps the elements that reach the bound: of larger keys, or of the same and a lower token. Those that find no room
 * are counted alone. */
void collect(uvec2 bound, uint round) {
  uint reach = 0u;
  if (largest < bound.x) return;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    if (better(uvec2(keys[turn], token_at(turn)), bound)) reach |= 1u << turn;
  while (reach != 0u) {
    const uint own = uint(findLSB(reach)), place = atomicAdd(totals[round % 3u], 1u);
    uint own_bits = bits[0], token = token_at(0);
    reach &= reach - 1u;
    [[unroll]] for (uint turn = 1; turn < TURNS; turn++) {
      own_bits = own == turn ? bits[turn] : own_bits;
      token = own == turn ? token_at(turn) : token;
    }
    if (place < MOST) {
      found[place] = uvec2(key_of(own_bits), token);
      found_bits[place] = own_bits;
    }
  }
}

/* A bound between one that too many elements reach and one that too few do: first keys, then tokens of one key. */
uvec2 between(uvec2 many, uvec2 few) {
  if (many.x < few.x) return uvec2(many.x + (few.x - many.x + 1u) / 2u, NEVER);
  return uvec2(many.x, few.y + (many.y - few.y) / 2u);
}

/* The elements among which the best ones are, in any order; how many there are. */
uint find_few() {
  const uint enough = clamp(2u * push.top, 128u, MOST);
  find_largest();
  find_bounds();
  uvec2 bound = uvec2(first_bound, NEVER), many = bound, few = uvec2(largest_key, 0u);
  for (uint round = 0;; round++) {
    collect(bound, round);
    if (gl_LocalInvocationID.x == 0u) totals[(round + 1u) % 3u] = 0u;
    barrier();
    const uint count = totals[round % 3u];
    if (count <= enough && (count >= push.top || round == 0u)) return count;
    if (count > enough)
      many = bound;
    else
      few = bound.y == NEVER ? uvec2(bound.x - 1u, 0u) : bound;
    bound = between(many, few);
  }
}

void give(uint to, bool done, uvec2 entry) {
  if (done)
    best[to] = entry;
  else
    entries[to] = entry;
}

/* Puts the best elements in their order from `to` on, and then what is none. */
void find_best(uint to, bool done) {
  const uint count = find_few();
  for (uint i = gl_LocalInvocationID.x; i < count; i += THREADS) {
    uint rank = 0u;
    for (uint other = 0; other < count; other++) rank += uint(better(found[other], found[i]));
    if (rank < push.top) give(to + rank, done, uvec2(found_bits[i], found[i].y));
  }
  for (uint i = count + gl_LocalInvocationID.x; i < push.top; i += THREADS)
    give(to + i, done, uvec2(LOWEST_BITS, NEVER));
}

uint batches_of(uint count) { return (count + ROOM - 1u) / ROOM; }

/* The best of this workgroup's logits, and in the last workgroup those of all entries. Where these are more than there is
 * room for, the best of each roomful take the place of entries that have been read, until they are not. */
void main() {
  const uint row = gl_WorkGroupID.y, first = row * push.chunks * push.top;
  uint count = push.chunks * push.top, batch = 0u, to = first + gl_WorkGroupID.x * push.top;
  bool done = false;
  load_logits();
  [[dont_unroll]] for (;;) {
    find_best(to, done);
    if (done) return;
    if (of_logits) {
      if (!comes_last(FIRST_COUNTER + row, push.chunks)) return;
    } else {
      memoryBarrierBuffer();
      barrier();
      if (++batch == batches_of(count)) {
        count = batches_of(count) * push.top;
        batch = 0u;
      }
    }
    done = batches_of(count) == 1u;
    to = done ? row * push.top : first + batch * push.top;
    load_entries(first + batch * ROOM, min(count - batch * ROOM, ROOM));
  }
}
