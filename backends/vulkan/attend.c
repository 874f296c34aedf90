#include "attend.h"

/* As shaders/attend.comp lays its shared memory out. */
enum { THREADS = 128, MAX_QUERIES = 32, MAX_KEYS = 32, MAX_LOADS = 4, MAX_TURNS = 8, SHARED_BYTES = 32768 };

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Bytes of shared memory: queries and keys in rows of an odd number of 16 bytes, a score (queries, keys / 2 pairs, an
 * odd number a row) and three words a query. Head_dim 128 with 32 queries and 16 keys a step: 28032. */
static uint32_t shared_bytes(uint32_t pieces, uint32_t queries, uint32_t keys) {
  return 16 * (pieces | 1) * (queries + keys) + 8 * (keys / 2 | 1) * queries + 12 * queries;
}

/* Keys depend on head_dim alone: they decide the order of the sums. */
static uint32_t keys_of(uint32_t pieces) { return smaller(MAX_KEYS, MAX_LOADS * THREADS / pieces / 4 * 4); }

/* The most queries that fit into shared memory and registers. */
static uint32_t most_queries(uint32_t pieces, uint32_t keys, uint64_t bytes) {
  uint32_t queries = smaller(MAX_QUERIES, MAX_TURNS * (THREADS / pieces)) / 4 * 4;
  while (queries > 4 && shared_bytes(pieces, queries, keys) > bytes) queries -= 4;
  return queries;
}

void vulkan_attend_constants(const DflashModel *model, int64_t rows, uint32_t constants[3]) {
  const DflashGeometry *g = &model->geometry;
  const uint64_t shared = model->device.traits.shared_bytes;
  const uint32_t pieces = ((uint32_t)g->head_dim + 3) / 4, keys = keys_of(pieces);
  const uint32_t most = most_queries(pieces, keys, shared < SHARED_BYTES ? shared : SHARED_BYTES);
  const int64_t queries = rows * (g->heads / g->kv_heads), tiles = (queries + most - 1) / most;
  constants[0] = (uint32_t)g->head_dim;
  constants[1] = (uint32_t)((queries + tiles - 1) / tiles + 3) / 4 * 4;
  constants[2] = keys;
}
