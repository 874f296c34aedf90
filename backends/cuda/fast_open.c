/* The weights of the fast path: packed by the device, from where they are stored on it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model.h"

uint64_t cuda_fast_vector_bytes(int layers) {
  return (FAST_LAYER_PRODUCTS * (uint64_t)layers + 2) * FAST_VECTORS_BYTES;
}
int64_t cuda_fast_table_words(int layers) { return (FAST_LAYER_PRODUCTS * (int64_t)layers + 3) * FAST_BLOCKS; }

/* Row 0: where each block's stream begins; row 1 + i: where its part of product i does. Returns the stream's bytes. */
static uint64_t fill_table(int layers, int head_rows, uint64_t *table) {
  uint64_t total = 0;
  int layer, product;
  for (int block = 0; block < FAST_BLOCKS; block++) {
    table[block] = total;
    for (int i = 0; (product = fast_product(i, layers, &layer)) >= 0; i++) {
      table[(1 + i) * FAST_BLOCKS + block] = total;
      total += fast_block_bytes(product, head_rows, block);
    }
  }
  return total;
}

static DflashStatus upload_table(CudaDevice *device, CudaAddress to, const uint64_t *table, uint64_t bytes,
                                 DflashError *error) {
  CudaUpload copies;
  DflashStatus status = cuda_upload_open(device, &copies, error);
  if (status) return status;
  status = cuda_upload_copy(device, &copies, to, table, bytes, error);
  if (!status) status = cuda_upload_end(device, &copies, error);
  cuda_upload_close(device, &copies);
  return status;
}

/* ---- packing ---- */

static FastPackArgs layer_arguments(const CudaLayer *l, int product) {
  const CudaAddress attn = l->attn_base, mlp = l->mlp_base, next = FAST_HIDDEN * sizeof(float);
  switch (product) {
  case FAST_ATTN_KERNEL:
    return (FastPackArgs){.matrices = {l->attn_kernel}, .vectors = {l->input_norm, l->attn_kernel.columns}};
  case FAST_QKV:
    return (FastPackArgs){.matrices = {l->q, l->k, l->v}, .vectors = {l->input_norm, attn, attn + next}};
  case FAST_O:
    return (FastPackArgs){.matrices = {l->o}};
  case FAST_MLP_KERNEL:
    return (FastPackArgs){.matrices = {l->mlp_kernel}, .vectors = {l->post_norm, l->mlp_kernel.columns}};
  case FAST_GATE_UP:
    return (FastPackArgs){.matrices = {l->gate, l->up}, .vectors = {l->post_norm, mlp, mlp + next}};
  default:
    return (FastPackArgs){.matrices = {l->down}};
  }
}

static FastPackArgs arguments_of(const DflashModel *m, int i, int product, int layer) {
  const CudaMatrix *last = product == FAST_HEAD ? &m->head : &m->selector;
  FastPackArgs a = {.matrices = {*last}, .vectors = {m->norm, last->columns}};
  if (layer < m->geometry.layers) a = layer_arguments(&m->layers[layer], product);
  a.stream = m->fast.stream;
  a.vectors_to = m->fast.vectors + (uint64_t)i * FAST_VECTORS_BYTES;
  a.product = product;
  a.head_rows = m->fast.head_rows;
  return a;
}

static DflashStatus pack(DflashModel *m, CUfunction function, DflashError *error) {
  CudaDevice *device = &m->device;
  DflashStatus status = DFLASH_OK;
  int layer, product;
  for (int i = 0; !status && (product = fast_product(i, (int)m->geometry.layers, &layer)) >= 0; i++) {
    FastPackArgs a = arguments_of(m, i, product, layer);
    void *list[] = {&a};
    a.first = m->fast.first + (uint64_t)(1 + i) * FAST_BLOCKS * sizeof(uint64_t);
    status = CUDA_CALL(device, "packing weights", error, launch, function, FAST_BLOCKS, FAST_PACK_SHARES, 1,
                       CUDA_THREADS, 1, 1, 0, device->stream, list, NULL);
  }
  return status ? status : cuda_wait(device, "packing weights", error);
}

/* Memory for everything, and the table in it. */
static DflashStatus open_memory(DflashModel *m, DflashError *error) {
  CudaFast *fast = &m->fast;
  const int layers = (int)m->geometry.layers;
  const uint64_t words = (uint64_t)cuda_fast_table_words(layers);
  uint64_t *table = dflash_alloc((size_t)words, sizeof *table), total = 0;
  if (!table) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for a table");
  const uint64_t stream = fill_table(layers, fast->head_rows, table);
  DflashStatus status =
      cuda_buffer_open(&m->device, cuda_fast_bytes(&m->geometry), "packed weights", &fast->memory, error);
  fast->stream = fast->memory.at + cuda_place(&total, stream);
  fast->first = fast->memory.at + cuda_place(&total, words * sizeof *table);
  fast->vectors = fast->memory.at + cuda_place(&total, cuda_fast_vector_bytes(layers));
  if (!status) status = upload_table(&m->device, fast->first, table, words * sizeof *table, error);
  free(table);
  return status;
}

/* ---- what only an open device tells ---- */

/* All clusters must run at once: they wait for each other. */
static bool clusters_fit(DflashModel *m, CUfunction function) {
  const CUlaunchConfig config = {FAST_BLOCKS, 1, 1, FAST_THREADS, 1, 1, FAST_SHARED_BYTES, m->device.stream, NULL, 0};
  int clusters = 0;
  char *why = m->fast.why;
  CUresult result =
      m->device.driver.function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, FAST_SHARED_BYTES);
  if (!m->device.driver.active_clusters) {
    snprintf(why, sizeof m->fast.why, "the driver does not tell how many clusters run at once");
    return false;
  }
  if (result == CUDA_SUCCESS) result = m->device.driver.active_clusters(&clusters, function, &config);
  if (result == CUDA_SUCCESS && clusters >= FAST_CLUSTERS) return true;
  snprintf(why, sizeof m->fast.why, "%d of its %d clusters run at once (result %d)", clusters, FAST_CLUSTERS, result);
  return false;
}

/* What a profile's kernels are called; tall: where there is none, longer blocks take the plain path. */
typedef struct Names {
  const char *block, *multiply, *tall, *tall_multiply;
} Names;
static const Names exact = {"dflash_block", "dflash_fast_multiply", NULL, NULL};
static const Names f16 = {"dflash_block_f16", "dflash_fast_multiply_f16", "dflash_block_f16_tall",
                          "dflash_fast_multiply_f16_tall"};

/* A model of short blocks has no use for the tall kernel. */
static DflashStatus find_tall(DflashModel *m, const Names *names, DflashError *error) {
  CUfunction kernel = NULL, multiply = NULL;
  DflashStatus status = DFLASH_OK;
  if (!names->tall || m->geometry.block <= FAST_ROWS) return DFLASH_OK;
  status = cuda_device_function(&m->device, names->tall, &kernel, error);
  if (!status) status = cuda_device_function(&m->device, names->tall_multiply, &multiply, error);
  if (status || !kernel || !clusters_fit(m, kernel)) return status;
  m->fast.tall = kernel;
  m->fast.multiply = multiply;
  return DFLASH_OK;
}

static DflashStatus find(DflashModel *m, CUfunction *kernel, CUfunction *packer, DflashError *error) {
  const Names *names = m->profile == DFLASH_PROFILE_F16 ? &f16 : &exact;
  DflashStatus status = cuda_device_function(&m->device, names->block, kernel, error);
  if (!status) status = cuda_device_function(&m->device, "dflash_fast_pack", packer, error);
  if (!status) status = cuda_device_function(&m->device, names->multiply, &m->fast.multiply, error);
  if (status || (*kernel && *packer)) return status;
  *kernel = NULL;
  snprintf(m->fast.why, sizeof m->fast.why, "this build has no code of it for the device");
  return DFLASH_OK;
}

DflashStatus cuda_fast_open(DflashModel *m, const DflashModelDesc *desc, DflashError *error) {
  CUfunction kernel = NULL, packer = NULL;
  DflashStatus status = DFLASH_OK;
  if (cuda_fast_fits(desc, &m->options, &m->device.traits, m->fast.why, sizeof m->fast.why))
    status = find(m, &kernel, &packer, error);
  if (!status && kernel && !clusters_fit(m, kernel)) kernel = NULL;
  if (!status && kernel) status = find_tall(m, m->profile == DFLASH_PROFILE_F16 ? &f16 : &exact, error);
  if (!status && !kernel && m->options.path == CUDA_PATH_FAST)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "cuda: path=fast: %s", m->fast.why);
  if (status || !kernel) return status;
  m->fast.head_rows = (int32_t)m->head.rows;
  status = open_memory(m, error);
  if (!status) status = pack(m, packer, error);
  if (!status) m->fast.kernel = kernel;
  return status;
}
