#include "attend.h"

/* As shaders/attend.comp lays its shared memory out. */
enum { KEYS = 128, PITCH = 5, WEIGHT_PITCH = KEYS / 4 + 2, MOST_QUERIES = 32, LEAST_QUERIES = 8, LEAST_KEYS = 64 };
enum { QUERY_THREADS = 8 };

/* Bytes of shared memory: chunks of K and of q, 16 bytes for four keys' weights, 10 words a query, a word. 32 queries
 * and 2 buffers: 44292; 32 and 1: 31492; 16 and 2: 32388; 8 and 1: 15556. */
static uint32_t shared_bytes(uint32_t queries, uint32_t buffers) {
  return 16 * (buffers * PITCH * (KEYS + queries) + queries * WEIGHT_PITCH) + 40 * queries + 4;
}

/* As many queries as fit, because each tile reads all keys, but no more than there are. */
static uint32_t choose_queries(const VulkanTraits *traits, int64_t queries) {
  uint32_t most = MOST_QUERIES;
  while (most > LEAST_QUERIES &&
         (most * QUERY_THREADS > traits->max_threads || shared_bytes(most, 1) > traits->shared_bytes))
    most /= 2;
  while (most > LEAST_QUERIES && most / 2 >= queries) most /= 2;
  return most;
}

static int64_t queries_of(const DflashModel *model, int64_t rows) {
  return rows * (model->geometry.heads / model->geometry.kv_heads);
}

void vulkan_attend_constants(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_ATTEND_CONSTANTS]) {
  const VulkanTraits *traits = &model->device.traits;
  constants[0] = (uint32_t)model->geometry.head_dim;
  constants[1] = choose_queries(traits, queries_of(model, rows));
  constants[2] = shared_bytes(constants[1], 2) <= traits->shared_bytes ? 2 : 1;
  constants[3] = constants[1] * QUERY_THREADS;
}

uint32_t vulkan_attend_tiles(const DflashModel *model, int64_t rows) {
  uint32_t constants[VULKAN_ATTEND_CONSTANTS];
  vulkan_attend_constants(model, rows, constants);
  return (uint32_t)((queries_of(model, rows) + constants[1] - 1) / constants[1]);
}

uint32_t vulkan_attend_parts(int64_t rows, uint32_t splits) {
  const int64_t parts = (rows + LEAST_KEYS - 1) / LEAST_KEYS;
  if (parts < 1) return 1;
  return parts < splits ? (uint32_t)parts : splits;
}

int64_t vulkan_attend_counters(const DflashModel *model) {
  const DflashGeometry *g = &model->geometry;
  return (int64_t)vulkan_attend_tiles(model, g->block) * g->kv_heads * VULKAN_ATTEND_COUNTERS;
}
