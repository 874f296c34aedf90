/* Streaming reads. */
#include <unistd.h>

#include "base/error.h"
#include "measure.h"
#include "sequence.h"

enum { REPEATS = 5, CACHE_DEFAULT = 64 << 20, READ_LEAST = 256 << 20, PIECE = 1 << 20 };

static uint64_t last_level_cache(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return (uint64_t)bytes;
#endif
  return CACHE_DEFAULT;
}

typedef struct Reading {
  const DflashKernel *kernel;
  const unsigned char *data;
  uint64_t sums[1024]; /* of each worker: results, so that no read can be left out */
} Reading;

static void read_pieces(void *context, int64_t begin, int64_t end, int worker) {
  Reading *reading = context;
  reading->sums[worker] ^= reading->kernel->read(reading->data + begin * PIECE, (end - begin) * PIECE);
}

/* Four times the last-level cache, filled with the numbers 0 .. n - 1: their exclusive or is 0, n being a multiple
 * of 4. */
static DflashStatus open_buffer(DflashModel *model, DflashError *error) {
  uint64_t bytes = 4 * last_level_cache();
  if (model->buffer.data) return DFLASH_OK;
  if (bytes < READ_LEAST) bytes = READ_LEAST;
  bytes = (bytes + PIECE - 1) / PIECE * PIECE;
  if (!dflash_pages_open(&model->buffer, bytes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a buffer of four caches");
  uint64_t *words = model->buffer.data;
  for (uint64_t i = 0; i < bytes / sizeof *words; i++) words[i] = i;
  return DFLASH_OK;
}

/* Time in nanoseconds; what was read is checked. */
static DflashStatus read_buffer(DflashModel *model, uint64_t *ns, DflashError *error) {
  DflashStatus status = open_buffer(model, error);
  if (status) return status;
  Reading reading = {.kernel = model->options.kernel, .data = model->buffer.data};
  const uint64_t begin = dflash_now_ns();
  dflash_pool_run(model->pool, (int64_t)(model->buffer.bytes / PIECE), 1, read_pieces, &reading);
  const uint64_t end = dflash_now_ns();
  uint64_t sum = 0;
  for (int i = 0; i < model->options.threads; i++) sum ^= reading.sums[i];
  if (sum) return dflash_error_set(error, DFLASH_INTERNAL, "blas: a streaming read gave wrong values");
  *ns = end > begin ? end - begin : 1;
  return DFLASH_OK;
}

DflashStatus dflash_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  uint64_t best = UINT64_MAX, ns = 0;
  for (int i = 0; i < 2 * REPEATS; i++) {
    DflashStatus status = read_buffer(model, &ns, error);
    if (status) return status;
    if (ns < best) best = ns;
  }
  *bytes_per_second = (double)model->buffer.bytes * 1e9 / (double)best;
  return DFLASH_OK;
}

DflashStatus dflash_evict_caches(DflashModel *model, DflashError *error) {
  uint64_t ns;
  return read_buffer(model, &ns, error);
}
