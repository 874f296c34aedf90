/* The roofline of this host with the threads that a block uses, and the optional calls beside it. */
#include "reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

enum { REPEATS = 5, LANES = 16, LINE = 64, GRAIN = 1 << 16 };

/* Four times the last-level cache, or of 64 MiB where the system does not tell. */
static size_t stream_bytes(void) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return 4 * (cache > 0 ? (size_t)cache : (size_t)64 << 20);
}

typedef struct Stream {
  const uint32_t *words;
  uint64_t *sums; /* one a worker, a cache line apart */
} Stream;

/* Sums lines of 16 words in independent lanes: the reads are not held up by the additions. */
static void read_lines(void *context, int64_t begin, int64_t end, int worker) {
  const Stream *stream = context;
  uint32_t lanes[LANES] = {0};
  for (int64_t line = begin; line < end; line++)
    for (int lane = 0; lane < LANES; lane++) lanes[lane] += stream->words[line * LANES + lane];
  for (int lane = 0; lane < LANES; lane++) stream->sums[worker * (LINE / 8)] += lanes[lane];
}

/* The buffer is made at the first use and stays with the model: --cold asks for it before every sample. */
static DflashStatus open_stream(DflashModel *model, DflashError *error) {
  if (model->stream != NULL) return DFLASH_OK;
  const size_t bytes = stream_bytes();
  model->stream = malloc(bytes);
  if (model->stream == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for a stream of %zu bytes", bytes);
  model->stream_bytes = bytes;
  memset(model->stream, 1, bytes); /* pages that were never written may all be one page of zeros */
  return DFLASH_OK;
}

/* Reads the buffer once; fails when the sum shows that it was not read. */
static DflashStatus read_stream(DflashModel *model, uint64_t *ns, DflashError *error) {
  uint64_t *sums = dflash_alloc((size_t)model->options.threads, LINE);
  if (sums == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for sums");
  Stream stream = {model->stream, sums};
  const uint64_t start = reference_clock_now();
  dflash_pool_run(model->pool, (int64_t)(model->stream_bytes / LINE), GRAIN, read_lines, &stream);
  *ns = reference_clock_now() - start;
  uint64_t sum = 0;
  for (int worker = 0; worker < model->options.threads; worker++) sum += sums[worker * (LINE / 8)];
  free(sums);
  return sum != 0 ? DFLASH_OK : dflash_error_set(error, DFLASH_INTERNAL, "reference: the streaming read read nothing");
}

DflashStatus reference_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  DflashStatus status = reference_check_pointer("measure_read: model", model, error);
  if (status == DFLASH_OK) status = reference_check_pointer("measure_read: answer", bytes_per_second, error);
  if (status == DFLASH_OK) status = open_stream(model, error);
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; status == DFLASH_OK && i < REPEATS; i++) {
    uint64_t ns = 0;
    status = read_stream(model, &ns, error);
    if (ns < best_ns) best_ns = ns;
  }
  if (status == DFLASH_OK) *bytes_per_second = (double)model->stream_bytes * 1e9 / (double)(best_ns > 0 ? best_ns : 1);
  return status;
}

DflashStatus reference_evict_caches(DflashModel *model, DflashError *error) {
  uint64_t ns;
  DflashStatus status = reference_check_pointer("evict_caches: model", model, error);
  if (status == DFLASH_OK) status = open_stream(model, error);
  return status == DFLASH_OK ? read_stream(model, &ns, error) : status;
}

/* A full block's worth of rows against a square f32 matrix as wide as the model's widest. */
DflashStatus reference_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  enum { ROWS = 16, OUT = 2048 };
  DflashStatus status = reference_check_pointer("measure_matrix: model", model, error);
  if (status == DFLASH_OK) status = reference_check_pointer("measure_matrix: answer", operations_per_second, error);
  if (status != DFLASH_OK) return status;
  const int64_t cols = model->widest;
  float *weights = dflash_alloc((size_t)cols, OUT * sizeof(float));
  float *x = dflash_alloc((size_t)cols, ROWS * sizeof(float));
  float *out = dflash_alloc(ROWS, OUT * sizeof(float));
  uint64_t best_ns = UINT64_MAX;
  if (weights == NULL || x == NULL || out == NULL) {
    status =
        dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for a matrix of %d x %" PRId64, OUT, cols);
    goto done;
  }
  const DflashTensor matrix = {.storage = DFLASH_STORAGE_F32, .rank = 2, .shape = {OUT, cols}, .data = weights};
  Product product = {model, &matrix, x, 0, ROWS, OUT, out};
  for (int i = 0; i < REPEATS; i++) {
    const uint64_t start = reference_clock_now();
    reference_matrix_apply(&product);
    const uint64_t ns = reference_clock_now() - start;
    if (ns < best_ns) best_ns = ns;
  }
  *operations_per_second = 2.0 * ROWS * OUT * (double)cols * 1e9 / (double)(best_ns > 0 ? best_ns : 1);
done:
  free(out);
  free(x);
  free(weights);
  return status;
}
