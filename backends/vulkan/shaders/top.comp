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
const uint TURNS = 16;                   /* elements of a thread */
const uint ROOM = THREADS * TURNS;
const uint GROUPS = 32;              /* of threads, whose largest keys give the first bound */
const uint GROUP = THREADS / GROUPS; /* neighbours; a power of two */
const uint MOST = 512;               /* elements that are ranked, twice the largest `top` */
const uint ABSENT = NEVER;           /* bits of no number: a NaN, as which no logit comes here */
const uint FIRST_COUNTER = 2u;       /* of rows, in flags */

/* Elements of this thread: logits in quads, their tokens following from the first, or entries. */
uint bits[TURNS], tokens[TURNS];
uint first_token;
uint turns;   /* that hold elements of any thread */
uint largest; /* of their keys */

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
      bits[4 * turn + i] = !inside ? ABSENT : odd ? LOWEST_BITS : loaded[turn][i];
    }
  }
  if (nan) atomicOr(flags[0], 1u);
  first_token = 4 * (first + thread) - row;
  turns = TURNS;
}

/* A thread takes neighbours, so that a group of threads has all entries of few chunks. */
void load_entries(uint first, uint count) {
  turns = (count + THREADS - 1) / THREADS;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
    const uint at = gl_LocalInvocationID.x * turns + turn;
    const uvec2 entry = turn < turns && at < count ? entries[first + at] : uvec2(ABSENT, NEVER);
    bits[turn] = entry.x;
    tokens[turn] = entry.y;
  }
}

uvec2 element_at(bool logits_loaded, uint turn) {
  const uint of_quad = first_token + turn / 4 * 4 * THREADS + turn % 4;
  return uvec2(key_of(bits[turn]), logits_loaded ? of_quad : tokens[turn]);
}

void find_largest() {
  largest = 0u;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    if (turn < turns) largest = max(largest, key_of(bits[turn]));
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
void collect(bool logits_loaded, uvec2 bound, uint round) {
  if (largest < bound.x) return;
  uint count = 0u;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    if (turn < turns && better(element_at(logits_loaded, turn), bound)) count++;
  if (count == 0u) return;
  uint place = atomicAdd(totals[round % 3u], count);
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
    const uvec2 element = element_at(logits_loaded, turn);
    if (turn >= turns || place >= MOST || !better(element, bound)) continue;
    found[place] = element;
    found_bits[place] = bits[turn];
    place++;
  }
}

/* A bound between one that too many elements reach and one that too few do: first keys, then tokens of one key. */
uvec2 between(uvec2 many, uvec2 few) {
  if (many.x < few.x) return uvec2(many.x + (few.x - many.x + 1u) / 2u, NEVER);
  return uvec2(many.x, few.y + (many.y - few.y) / 2u);
}

/* The elements among which the best ones are, in any order; how many there are. */
uint find_few(bool logits_loaded) {
  const uint enough = clamp(2u * push.top, 128u, MOST);
  find_largest();
  find_bounds();
  uvec2 bound = uvec2(first_bound, NEVER), many = bound, few = uvec2(largest_key, 0u);
  for (uint round = 0;; round++) {
    collect(logits_loaded, bound, round);
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
void find_best(bool logits_loaded, uint to, bool done) {
  const uint count = find_few(logits_loaded);
  for (uint i = gl_LocalInvocationID.x; i < count; i += THREADS) {
    uint rank = 0u;
    for (uint other = 0; other < count; other++) rank += uint(better(found[other], found[i]));
    if (rank < push.top) give(to + rank, done, uvec2(found_bits[i], found[i].y));
  }
  for (uint i = count + gl_LocalInvocationID.x; i < push.top; i += THREADS)
    give(to + i, done, uvec2(LOWEST_BITS, NEVER));
}

/* The best of `count` entries. Where they are more than there is room for, the best of each roomful take the place of
 * entries that have been read, until they are not. */
void merge(uint first, uint count, uint to) {
  for (bool done = false; !done;) {
    const uint batches = (count + ROOM - 1u) / ROOM;
    done = batches == 1u;
    for (uint batch = 0; batch < batches; batch++) {
      load_entries(first + batch * ROOM, min(count - batch * ROOM, ROOM));
      find_best(false, done ? to : first + batch * push.top, done);
      memoryBarrierBuffer();
      barrier();
    }
    count = batches * push.top;
  }
}

void main() {
  const uint row = gl_WorkGroupID.y, entries_row = row * push.chunks * push.top;
  load_logits();
  find_best(true, entries_row + gl_WorkGroupID.x * push.top, false);
  if (!comes_last(FIRST_COUNTER + row, push.chunks)) return;
  merge(entries_row, push.chunks * push.top, row * push.top);
}
