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
enum { UNITS_THREADS = 256, UNITS_QUERIES = 32, UNITS_X_ROWS = 8 };
enum { UNITS_WORDS = 11, UNITS_WEIGHTS = KEYS * 2, UNITS_HALF = 8192 };

/* Of f16, that numbers of q, K and V become. */
static uint32_t units_parts(const DflashModel *model) { return model->profile == DFLASH_PROFILE_F16 ? 1 : 2; }

/* Fragments of queries, or values of half the keys; of 64 keys' weights, in two parts of half the queries; and words a
 * query. */
static uint64_t units_shared(const DflashModel *model) {
  const uint64_t row = (uint64_t)model->geometry.head_dim * units_parts(model) * 2;
  return larger(UNITS_QUERIES * row, UNITS_HALF) + UNITS_QUERIES * (UNITS_WEIGHTS + UNITS_WORDS * sizeof(uint32_t));
}

bool vulkan_attend_on_units(const DflashModel *model) {
  const VulkanTraits *traits = &model->device.traits;
  const int64_t head_dim = model->geometry.head_dim;
  return model->options.attention && model->options.units && model->units_fit && (traits->coop_f16 & UNITS_X_ROWS) &&
         (head_dim == 32 || head_dim == 64 || head_dim == 128) && traits->max_threads >= UNITS_THREADS &&
         traits->shared_bytes >= units_shared(model);
}

int vulkan_attend_kernel(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_MAX_CONSTANTS],
                         uint32_t *count) {
  if (vulkan_attend_on_units(model)) {
    constants[0] = (uint32_t)model->geometry.head_dim;
    constants[1] = units_parts(model);
    constants[2] = (uint32_t)(model->geometry.heads / model->geometry.kv_heads);
    *count = 3;
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
