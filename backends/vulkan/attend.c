#include "attend.h"

/* As shaders/attend.comp lays its shared memory out. */
enum { KEYS = 64, SLICES = 8, GROUPS = 8, LANES = 32, QUERY_THREADS = 8 };
enum { MOST_QUERIES = 32, LEAST_QUERIES = 8, MOST_BATCH = 4, MOST_THREADS = 256, LEAST_THREADS = 128 };
enum { MOST_SHARED = 49152 }; /* of a workgroup: others run beside it */

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Bytes of shared memory: two areas of pieces of 16 bytes, four keys' weights, and 11 words a query. With head_dim 128:
 * 32 queries and batches of 4: 42624; 32 and 1: 30336; 16 and 2: 21440; 8 and 1: 10848. */
static uint64_t shared_bytes(int64_t head_dim, uint32_t queries, uint32_t batch) {
  const uint64_t pieces = ((uint64_t)head_dim + 3) / 4, pitch = (pieces + SLICES - 1) / SLICES * SLICES;
  const uint64_t values = (uint64_t)GROUPS * batch * LANES, scores = (uint64_t)2 * SLICES * (batch * KEYS + 4) / 4;
  const uint64_t area = larger(queries * pitch, values) + larger(scores, values);
  return 16 * (area + queries * KEYS / 4) + 44 * queries;
}

static bool fits(const DflashModel *model, uint32_t queries, uint32_t batch) {
  const uint64_t has = model->device.traits.shared_bytes,
                 bytes = shared_bytes(model->geometry.head_dim, queries, batch);
  return bytes <= has && bytes <= MOST_SHARED;
}

static uint32_t choose_threads(const VulkanTraits *traits) {
  return traits->max_threads >= MOST_THREADS ? MOST_THREADS : LEAST_THREADS;
}

/* As many queries as fit, because each tile reads all keys, but no more than there are. */
static uint32_t choose_queries(const DflashModel *model, int64_t queries) {
  const uint32_t threads = choose_threads(&model->device.traits);
  uint32_t most = MOST_QUERIES;
  while (most > LEAST_QUERIES && (most * QUERY_THREADS > threads || !fits(model, most, 1))) most /= 2;
  while (most > LEAST_QUERIES && most / 2 >= queries) most /= 2;
  return most;
}

static uint32_t choose_batch(const DflashModel *model, uint32_t queries) {
  uint32_t batch = MOST_BATCH;
  while (batch > 1 && !fits(model, queries, batch)) batch /= 2;
  return batch;
}

static int64_t queries_of(const DflashModel *model, int64_t rows) {
  return rows * (model->geometry.heads / model->geometry.kv_heads);
}

/* What attend_units.comp takes, and heads that it knows. */
enum { UNITS_QUERIES = 32, UNITS_X_ROWS = 8, UNITS_PARTS = 1, UNITS_WORDS = 5 };

/* Fragments of queries and of 64 keys' weights, and words a query. */
static uint64_t units_shared(int64_t head_dim) {
  return UNITS_QUERIES * ((uint64_t)(head_dim + KEYS) * UNITS_PARTS * 2 + (UNITS_WORDS + 2) * sizeof(uint32_t));
}

bool vulkan_attend_on_units(const DflashModel *model) {
  const VulkanTraits *traits = &model->device.traits;
  const int64_t head_dim = model->geometry.head_dim;
  return model->profile == DFLASH_PROFILE_F16 && model->options.units && model->units_fit &&
         (traits->coop_f16 & UNITS_X_ROWS) && (head_dim == 32 || head_dim == 64 || head_dim == 128) &&
         traits->shared_bytes >= units_shared(head_dim);
}

int vulkan_attend_kernel(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_MAX_CONSTANTS],
                         uint32_t *count) {
  if (vulkan_attend_on_units(model)) {
    constants[0] = (uint32_t)model->geometry.head_dim;
    constants[1] = UNITS_PARTS;
    *count = 2;
    return VULKAN_KERNEL_ATTEND_UNITS;
  }
  vulkan_attend_constants(model, rows, constants);
  *count = VULKAN_ATTEND_CONSTANTS;
  return VULKAN_KERNEL_ATTEND;
}

void vulkan_attend_constants(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_ATTEND_CONSTANTS]) {
  constants[0] = (uint32_t)model->geometry.head_dim;
  constants[1] = choose_queries(model, queries_of(model, rows));
  constants[2] = choose_batch(model, constants[1]);
  constants[3] = choose_threads(&model->device.traits);
}

uint32_t vulkan_mix_threads(const VulkanTraits *traits) { return choose_threads(traits); }

uint32_t vulkan_attend_tiles(const DflashModel *model, int64_t rows) {
  const uint32_t queries =
      vulkan_attend_on_units(model) ? UNITS_QUERIES : choose_queries(model, queries_of(model, rows));
  return (uint32_t)((queries_of(model, rows) + queries - 1) / queries);
}

uint32_t vulkan_attend_parts(int64_t rows, uint32_t splits) {
  const int64_t parts = (rows + KEYS - 1) / KEYS;
  if (parts < 1) return 1;
  return parts < splits ? (uint32_t)parts : splits;
}
