/* What a tensor from a file must satisfy before anything reads its values. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage_layout.h"

/* Elements between two looks at the outcome: the loops stay free of branches, and so fast as memory gives. */
enum { CHUNK = 4096 };

static bool has_nonfinite_u16(const unsigned char *data, int64_t count, uint16_t exponent) {
  unsigned bad = 0;
  for (int64_t i = 0; i < count; i++) bad |= (unsigned)((dflash_load_u16(data + 2 * i) & exponent) == exponent);
  return bad != 0;
}

static bool has_nonfinite_f32(const unsigned char *data, int64_t count) {
  unsigned bad = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, data + 4 * i, sizeof bits);
    bad |= (unsigned)((bits & 0x7f800000u) == 0x7f800000u);
  }
  return bad != 0;
}

static bool has_nonfinite(int32_t storage, const unsigned char *data, int64_t count) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return has_nonfinite_f32(data, count);
  case DFLASH_STORAGE_BF16:
    return has_nonfinite_u16(data, count, 0x7f80);
  default:
    return has_nonfinite_u16(data, count, 0x7c00);
  }
}

/* Index of the first element that is not finite, -1 when all are. */
static int64_t find_nonfinite(int32_t storage, const unsigned char *data, int64_t count) {
  int64_t width = storage == DFLASH_STORAGE_F32 ? 4 : 2;
  for (int64_t begin = 0; begin < count; begin += CHUNK) {
    int64_t length = count - begin < CHUNK ? count - begin : CHUNK;
    if (!has_nonfinite(storage, data + begin * width, length)) continue;
    int64_t at = begin;
    while (!has_nonfinite(storage, data + at * width, 1)) at++;
    return at;
  }
  return -1;
}

static DflashStatus refuse(const char *name, const char *what, int64_t row, int64_t index, double value,
                           DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: row %" PRId64 ", %s %" PRId64 " is %g; valid: finite", name,
                          row, what, index, value);
}

static DflashStatus check_dense(const DflashTensor *tensor, const char *name, DflashError *error) {
  int64_t cols = dflash_tensor_cols(tensor);
  int64_t at = find_nonfinite(tensor->storage, tensor->data, dflash_tensor_rows(tensor) * cols);
  if (at < 0) return DFLASH_OK;
  return refuse(name, "column", at / cols, at % cols, dflash_tensor_at(tensor, at / cols, at % cols), error);
}

static DflashStatus check_q8(const DflashTensor *tensor, const char *name, DflashError *error) {
  int64_t rows = dflash_tensor_rows(tensor), cols = dflash_tensor_cols(tensor);
  DflashQ8 view = dflash_q8_view(tensor->data, rows, cols);
  int64_t row = find_nonfinite(DFLASH_STORAGE_F16, view.rows, rows);
  int64_t col = find_nonfinite(DFLASH_STORAGE_F16, view.fields, cols);
  if (row >= 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: scale of row %" PRId64 " is %g; valid: finite", name, row,
                            (double)dflash_f16_decode(dflash_load_u16(view.rows + 2 * row)));
  if (col >= 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: field of column %" PRId64 " is %g; valid: finite", name,
                            col, (double)dflash_f16_decode(dflash_load_u16(view.fields + 2 * col)));
  return DFLASH_OK;
}

/* Rungs grow or shrink from first to last, so finite ends mean a finite ladder. */
static DflashStatus check_q4tp_row(const DflashQ4tp *view, int64_t row, const char *name, DflashError *error) {
  const unsigned char *ladder = view->ladders + row * 4;
  double lo = (double)dflash_f16_decode(dflash_load_u16(ladder));
  double step = (double)dflash_f16_decode(dflash_load_u16(ladder + 2));
  if (!isfinite(lo) || !isfinite(step))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: row %" PRId64 " has lo %g and step %g; valid: both finite",
                            name, row, lo, step);
  float rungs[DFLASH_Q4TP_RUNGS];
  dflash_q4tp_row_ladder(view, row, rungs);
  if (isfinite(rungs[0]) && isfinite(rungs[DFLASH_Q4TP_RUNGS - 1])) return DFLASH_OK;
  int64_t rung = 0;
  while (isfinite(rungs[rung])) rung++;
  return refuse(name, "rung", row, rung, (double)rungs[rung], error);
}

static DflashStatus check_q4tp(const DflashTensor *tensor, const char *name, DflashError *error) {
  DflashQ4tp view = dflash_q4tp_view(tensor->data, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor));
  DflashStatus status = DFLASH_OK;
  for (int64_t row = 0; status == DFLASH_OK && row < view.rows; row++) status = check_q4tp_row(&view, row, name, error);
  return status;
}

static DflashStatus check_form(const DflashTensor *tensor, const char *name, DflashError *error) {
  if (tensor->rank < 1 || tensor->rank > 3)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: rank is %" PRId32 "; valid: 1 to 3", name, tensor->rank);
  int64_t rows = 1;
  for (int32_t i = 0; i < tensor->rank; i++) {
    bool fits = i + 1 == tensor->rank || dflash_mul_i64(rows, tensor->shape[i], &rows);
    if (tensor->shape[i] < 1 || !fits)
      return dflash_error_set(error, DFLASH_INVALID_DATA,
                              "%s: dimension %" PRId32 " is %" PRId64 "; valid: at least 1, with a product below 2^63",
                              name, i, tensor->shape[i]);
  }
  uint64_t bytes;
  DflashStatus status = dflash_storage_bytes(tensor->storage, rows, dflash_tensor_cols(tensor), &bytes, error);
  if (status != DFLASH_OK) return dflash_error_prefix(error, "%s", name), status;
  if (tensor->bytes != bytes || !tensor->data)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %" PRIu64 " bytes%s; expected %" PRIu64, name,
                            tensor->bytes, tensor->data ? "" : " at no address", bytes),
           DFLASH_INVALID_DATA;
  return DFLASH_OK;
}

DflashStatus dflash_tensor_check(const DflashTensor *tensor, const char *name, DflashError *error) {
  DflashStatus status = check_form(tensor, name, error);
  if (status != DFLASH_OK) return status;
  switch (tensor->storage) {
  case DFLASH_STORAGE_Q8_2F:
    return check_q8(tensor, name, error);
  case DFLASH_STORAGE_Q4TP:
    return check_q4tp(tensor, name, error);
  default:
    return check_dense(tensor, name, error);
  }
}
