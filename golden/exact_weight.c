/* Matrices of small integers times powers of two, in every storage. */
#include <string.h>

#include "golden/exact.h"
#include "model/storage.h"

enum { BALANCED = 4, WIDTH_LIMIT = 1024 }; /* a row has about this many terms at most, so that sums keep 24 bits */

enum { ROLE_DENSE, ROLE_SINGLE, ROLE_FC, ROLE_KERNEL };

typedef struct Exact {
  const DflashTensor *tensor;
  unsigned char *data;
  int64_t rows, cols, stride, start;
  int role, unit; /* elements are integers times 2^unit, or larger powers */
  DflashRandom values, scales;
} Exact;

static float power_of_two(int exponent) {
  uint32_t bits = (uint32_t)(exponent + 127) << 23;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* ---- integers ---- */

static int dense_integer(const Exact *x, int64_t row, int64_t col) {
  static const signed char values[8] = {-2, -1, -1, 0, 0, 1, 1, 2};
  uint32_t word = dflash_random_u32(x->values, (uint64_t)(row * x->cols + col));
  if ((uint64_t)(word >> 8) * (uint64_t)x->cols >= (uint64_t)WIDTH_LIMIT << 24) return 0;
  return values[word & 7];
}

/* +-1, 2 or 4 at one column; rows that share a column differ in size as far as four sizes and two signs reach. */
static int single_integer(const Exact *x, int64_t row, int64_t col) {
  if (col != (x->start + row % x->cols * x->stride) % x->cols) return 0;
  int magnitude = 1 << ((row / x->cols + row % x->cols) % 3);
  return dflash_random_u32(x->values, (uint64_t)row) & 1 ? -magnitude : magnitude;
}

/* Row r < 4 copies tap column r, which no other row reads. */
static int fc_integer(const Exact *x, int64_t row, int64_t col) {
  if (row < BALANCED || col < BALANCED) return row == col;
  return dense_integer(x, row, col);
}

/* Rows of the second side read column 0 only, which is the same in every row of a block. */
static int kernel_integer(const Exact *x, int64_t row, int64_t col) {
  if (row < x->rows / 2) return dense_integer(x, row, col);
  if (col > 0) return 0;
  uint32_t word = dflash_random_u32(x->values, (uint64_t)(row * x->cols));
  int magnitude = 8 + (int)(word >> 1) % 24;
  return word & 1 ? -magnitude : magnitude;
}

static int integer_at(const Exact *x, int64_t row, int64_t col) {
  switch (x->role) {
  case ROLE_SINGLE:
    return single_integer(x, row, col);
  case ROLE_FC:
    return fc_integer(x, row, col);
  case ROLE_KERNEL:
    return kernel_integer(x, row, col);
  default:
    return dense_integer(x, row, col);
  }
}

/* Odd rows stand one power higher; the copied rows of fc do not. */
static int row_exponent(const Exact *x, int64_t row) {
  return x->unit + (x->role == ROLE_FC && row < BALANCED ? 0 : (int)(row % 2));
}

/* ---- storages ---- */

static void put_real_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Exact *x = context;
  (void)worker;
  for (int64_t row = begin; row < end; row++)
    for (int64_t col = 0; col < x->cols; col++) {
      float value = (float)integer_at(x, row, col) * power_of_two(row_exponent(x, row));
      uint16_t half = x->tensor->storage == DFLASH_STORAGE_F16 ? dflash_f16_round(value) : dflash_bf16_round(value);
      if (x->tensor->storage == DFLASH_STORAGE_F32)
        memcpy(x->data + 4 * (row * x->cols + col), &value, 4);
      else
        memcpy(x->data + 2 * (row * x->cols + col), &half, 2);
    }
}

static void put_q8_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Exact *x = context;
  (void)worker;
  for (int64_t row = begin; row < end; row++) {
    uint16_t scale = dflash_f16_round(power_of_two(row_exponent(x, row)));
    for (int64_t col = 0; col < x->cols; col++) x->data[row * x->cols + col] = (unsigned char)integer_at(x, row, col);
    memcpy(x->data + x->rows * x->cols + 2 * row, &scale, sizeof scale);
  }
}

static void put_q8_columns(const Exact *x) {
  uint16_t one = dflash_f16_round(1.0f);
  for (int64_t col = 0; col < x->cols; col++)
    memcpy(x->data + x->rows * x->cols + 2 * x->rows + 2 * col, &one, sizeof one);
}

/* Groups stand on rung 0 or 1 of a ladder of octaves. */
static void put_q4_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Exact *x = context;
  int64_t groups = x->cols / 32, code_bytes = (groups * 5 + 7) / 8;
  unsigned char *ladders = x->data + x->rows * groups * 16;
  (void)worker;
  for (int64_t row = begin; row < end; row++) {
    uint16_t ladder[2] = {dflash_f16_round((float)row_exponent(x, row)), dflash_f16_round(1.0f)};
    unsigned char *codes = ladders + 4 * x->rows + row * code_bytes;
    for (int64_t pair = 0; pair < x->cols / 2; pair++)
      x->data[row * groups * 16 + pair] =
          (unsigned char)((integer_at(x, row, 2 * pair) + 8) | (integer_at(x, row, 2 * pair + 1) + 8) << 4);
    memcpy(ladders + 4 * row, ladder, sizeof ladder);
    for (int64_t group = 0; group < groups; group++)
      if (dflash_random_u32(x->scales, (uint64_t)(row * groups + group)) & 1)
        codes[group * 5 / 8] |= (unsigned char)(1u << (group * 5 % 8));
  }
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* A step that reaches every column, and spreads few rows over all of them. */
static int64_t walking_stride(int64_t rows, int64_t cols) {
  int64_t stride = cols / rows > 1 ? cols / rows : 1;
  while (common_divisor(stride, cols) != 1) stride++;
  return stride;
}

static int choose_role(int kind, const DflashWeightEntry *entry) {
  if (kind == DFLASH_EXACT_24BIT) return ROLE_SINGLE;
  if (dflash_draw_ends_with(entry->name, "o_proj.weight")) return ROLE_SINGLE;
  if (dflash_draw_ends_with(entry->name, "down_proj.weight")) return ROLE_SINGLE;
  if (dflash_draw_ends_with(entry->name, "kernel_projection.weight")) return ROLE_KERNEL;
  return strcmp(entry->name, "fc.weight") == 0 ? ROLE_FC : ROLE_DENSE;
}

/* A dense row of n terms deviates by about 2 * sqrt(n) units. */
static int choose_unit(int role, const DflashWeightEntry *entry, int64_t cols) {
  int kernel = dflash_draw_ends_with(entry->name, "kernel_projection.weight");
  int small = kernel || dflash_draw_ends_with(entry->name, "gate_proj.weight"); /* silu of -90 has a denormal value */
  if (role == ROLE_SINGLE) return small ? -3 : -2;
  uint64_t terms = (uint64_t)(cols < WIDTH_LIMIT ? cols : WIDTH_LIMIT);
  int unit = 0;
  for (uint64_t size = dflash_draw_root(4 * terms); size > 1; size >>= 1) unit--;
  return kernel ? unit - 1 : unit;
}

static void put_rows(Exact *x, DflashPool *pool) {
  DflashRangeFn rows = put_real_rows;
  if (x->tensor->storage == DFLASH_STORAGE_Q8_2F) rows = put_q8_rows;
  if (x->tensor->storage == DFLASH_STORAGE_Q4TP) rows = put_q4_rows;
  dflash_pool_run(pool, x->rows, 1 + 16384 / x->cols, rows, x);
  if (x->tensor->storage == DFLASH_STORAGE_Q8_2F) put_q8_columns(x);
}

/* Gains of a half, one or two (of queries and keys one or two), the first of them one; base kernels in quarters. */
static void put_vector(const DflashWeightEntry *entry, DflashRandom values, DflashTensor *tensor) {
  static const signed char quarters[6] = {-3, -2, -1, 1, 2, 3};
  float *data = (float *)(uintptr_t)tensor->data;
  int head = dflash_draw_ends_with(entry->name, "q_norm.weight") || dflash_draw_ends_with(entry->name, "k_norm.weight");
  for (uint64_t i = 0; i < tensor->bytes / 4; i++) {
    if (entry->kind == DFLASH_KIND_BASE)
      data[i] = 0.25f * (float)quarters[dflash_random_below(values, i, 6)];
    else if (head)
      data[i] = 1.0f + (float)dflash_random_below(values, i, 2);
    else
      data[i] = i ? power_of_two((int)dflash_random_below(values, i, 3) - 1) : 1.0f;
  }
}

DflashStatus dflash_exact_weight(int kind, const DflashGeometry *geometry, const DflashWeightEntry *entry,
                                 int32_t storage, uint64_t seed, DflashPool *pool, DflashTensor *tensor,
                                 DflashError *error) {
  int matrix = entry->kind == DFLASH_KIND_MATRIX;
  if (!matrix && kind == DFLASH_EXACT_24BIT)
    return dflash_draw_weight(geometry, entry, storage, seed, 0, pool, tensor, error);
  DflashStatus status = dflash_draw_open(entry, storage, tensor, error);
  if (status != DFLASH_OK) return status;
  Exact x = {.tensor = tensor,
             .data = (unsigned char *)(uintptr_t)tensor->data,
             .rows = dflash_tensor_rows(tensor),
             .cols = dflash_tensor_cols(tensor),
             .role = choose_role(kind, entry),
             .values = dflash_draw_stream(seed, entry->name, "/exact"),
             .scales = dflash_draw_stream(seed, entry->name, "/exact/codes")};
  if (entry->kind == DFLASH_KIND_VECTOR || entry->kind == DFLASH_KIND_BASE) {
    put_vector(entry, x.values, tensor);
    return DFLASH_OK;
  }
  x.unit = choose_unit(x.role, entry, x.cols);
  x.stride = walking_stride(x.rows, x.cols);
  x.start = dflash_random_below(x.scales, UINT64_C(1) << 40, (uint32_t)x.cols);
  put_rows(&x, pool);
  return DFLASH_OK;
}
