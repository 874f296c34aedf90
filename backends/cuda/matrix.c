#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored weights are little-endian, and this code reads them in place"
#endif

enum { CODE_BITS = 5, WARPS_OF_A_PROCESSOR = 16 };

static int64_t code_bytes(int64_t cols) { return (cols / CUDA_GROUP * CODE_BITS + 7) / 8; }

uint64_t cuda_stored_bytes(int32_t storage, int64_t rows, int64_t cols) {
  const uint64_t r = (uint64_t)rows, c = (uint64_t)cols;
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return 4 * r * c;
  case DFLASH_STORAGE_F16:
  case DFLASH_STORAGE_BF16:
    return 2 * r * c;
  case DFLASH_STORAGE_Q8_2F:
    return r * c + 2 * (r + c);
  case DFLASH_STORAGE_Q4TP:
    return cols % CUDA_GROUP == 0 ? r * (c / 2 + 4 + (uint64_t)code_bytes(cols)) : 0;
  default:
    return 0;
  }
}

const char *cuda_storage_name(int32_t storage) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return "f32";
  case DFLASH_STORAGE_F16:
    return "f16";
  case DFLASH_STORAGE_BF16:
    return "bf16";
  case DFLASH_STORAGE_Q8_2F:
    return "q8_2f";
  default:
    return "q4tp";
  }
}

void cuda_matrix_place(CudaMatrix *m, int32_t storage, int64_t rows, int64_t cols, uint64_t *total) {
  const uint64_t elements = (uint64_t)rows * (uint64_t)cols;
  *m = (CudaMatrix){.rows = rows, .cols = cols, .storage = storage, .team = 1};
  switch (storage) {
  case DFLASH_STORAGE_F32:
    m->weights = cuda_place(total, 4 * elements);
    break;
  case DFLASH_STORAGE_Q8_2F:
    m->weights = cuda_place(total, elements);
    m->scales = cuda_place(total, 2 * (uint64_t)rows);
    m->columns = cuda_place(total, 2 * (uint64_t)cols);
    break;
  case DFLASH_STORAGE_Q4TP:
    m->weights = cuda_place(total, elements / 2);
    m->scales = cuda_place(total, 8 * (uint64_t)rows);
    m->codes = cuda_place(total, (uint64_t)(rows * code_bytes(cols)));
    break;
  default:
    m->weights = cuda_place(total, 2 * elements);
  }
}

static void move(CudaAddress *place, CudaAddress base, bool there) {
  if (there) *place += base;
}

void cuda_matrix_move(CudaMatrix *m, CudaAddress base) {
  const bool q8 = m->storage == DFLASH_STORAGE_Q8_2F, q4 = m->storage == DFLASH_STORAGE_Q4TP;
  if (m->rows == 0) return;
  move(&m->weights, base, true);
  move(&m->scales, base, q8 || q4);
  move(&m->columns, base, q8);
  move(&m->codes, base, q4);
}

/* Exact; subnormals and infinities included. */
static float decode_f16(const unsigned char *from) {
  uint16_t bits;
  memcpy(&bits, from, sizeof bits);
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  float size = exponent == 0 ? ldexpf((float)fraction, -24) : ldexpf((float)(1024 + fraction), exponent - 25);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -size : size;
}

/* The lowest rung and the factor to the next, 2^lo and 2^step in f64 rounded once. */
static DflashStatus upload_ladders(CudaDevice *device, CudaUpload *upload, const CudaMatrix *m,
                                   const unsigned char *stored, DflashError *error) {
  float *ladders = dflash_alloc((size_t)m->rows, 2 * sizeof *ladders);
  if (!ladders) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for ladders");
  for (int64_t i = 0; i < 2 * m->rows; i++) ladders[i] = (float)exp2((double)decode_f16(stored + 2 * i));
  DflashStatus status = cuda_upload_copy(device, upload, m->scales, ladders, 8 * (uint64_t)m->rows, error);
  free(ladders);
  return status;
}

static DflashStatus upload_q4(CudaDevice *device, CudaUpload *upload, const CudaMatrix *m, const unsigned char *data,
                              DflashError *error) {
  const uint64_t nibbles = (uint64_t)(m->rows * m->cols / 2), codes = (uint64_t)(m->rows * code_bytes(m->cols));
  DflashStatus status = cuda_upload_copy(device, upload, m->weights, data, nibbles, error);
  if (!status) status = upload_ladders(device, upload, m, data + nibbles, error);
  if (!status)
    status = cuda_upload_copy(device, upload, m->codes, data + nibbles + 4 * (uint64_t)m->rows, codes, error);
  return status;
}

DflashStatus cuda_matrix_upload(CudaDevice *device, CudaUpload *upload, const CudaMatrix *m, const void *data,
                                DflashError *error) {
  const unsigned char *bytes = data;
  const uint64_t elements = (uint64_t)(m->rows * m->cols), rows = 2 * (uint64_t)m->rows, cols = 2 * (uint64_t)m->cols;
  if (m->storage == DFLASH_STORAGE_Q4TP) return upload_q4(device, upload, m, data, error);
  if (m->storage != DFLASH_STORAGE_Q8_2F)
    return cuda_upload_copy(device, upload, m->weights, data, cuda_stored_bytes(m->storage, m->rows, m->cols), error);
  DflashStatus status = cuda_upload_copy(device, upload, m->weights, bytes, elements, error);
  if (!status) status = cuda_upload_copy(device, upload, m->scales, bytes + elements, rows, error);
  if (!status) status = cuda_upload_copy(device, upload, m->columns, bytes + elements + rows, cols, error);
  return status;
}

int32_t cuda_matrix_team(const CudaMatrix *m, int32_t processors) {
  const int64_t tiles = (m->rows + CUDA_TILE - 1) / CUDA_TILE, spans = (m->cols + CUDA_SPAN - 1) / CUDA_SPAN;
  int32_t team = 1;
  while (2 * team <= CUDA_WARPS && 2 * team <= spans && tiles * team < (int64_t)WARPS_OF_A_PROCESSOR * processors)
    team *= 2;
  return team;
}

uint64_t cuda_matrix_bytes(const CudaMatrix *m, int64_t rows) {
  const uint64_t cols = (uint64_t)m->cols, r = (uint64_t)rows;
  switch (m->storage) {
  case DFLASH_STORAGE_Q4TP:
    return r * (cols / 2 + 8 + (uint64_t)code_bytes(m->cols));
  default:
    return cuda_stored_bytes(m->storage, rows, m->cols);
  }
}
