#include "model/storage_encode.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"

static DflashStatus encode_half(int32_t storage, const float *values, int64_t rows, int64_t cols, unsigned char *out,
                                DflashError *error) {
  int is_f16 = storage == DFLASH_STORAGE_F16;
  uint16_t exponent = is_f16 ? 0x7c00 : 0x7f80;
  for (int64_t i = 0; i < rows * cols; i++) {
    uint16_t bits = is_f16 ? dflash_f16_round(values[i]) : dflash_bf16_round(values[i]);
    if ((bits & exponent) == exponent)
      return dflash_error_set(error, DFLASH_NONFINITE,
                              "row %" PRId64 ", column %" PRId64 ": %g is beyond the largest %s", i / cols, i % cols,
                              (double)values[i], dflash_storage_name(storage));
    dflash_store_u16(out + 2 * i, bits);
  }
  return DFLASH_OK;
}

static DflashStatus check_finite(const float *values, int64_t rows, int64_t cols, DflashError *error) {
  for (int64_t i = 0; i < rows * cols; i++)
    if (!isfinite(values[i]))
      return dflash_error_set(error, DFLASH_NONFINITE, "row %" PRId64 ", column %" PRId64 " is %g; valid: finite",
                              i / cols, i % cols, (double)values[i]);
  return DFLASH_OK;
}

DflashStatus dflash_storage_encode(int32_t storage, const float *values, int64_t rows, int64_t cols, void *out,
                                   DflashError *error) {
  uint64_t bytes;
  DflashStatus status = dflash_storage_bytes(storage, rows, cols, &bytes, error);
  if (status == DFLASH_OK) status = check_finite(values, rows, cols, error);
  if (status != DFLASH_OK) return status;
  switch (storage) {
  case DFLASH_STORAGE_F16:
  case DFLASH_STORAGE_BF16:
    return encode_half(storage, values, rows, cols, out, error);
  case DFLASH_STORAGE_Q8_2F:
    return dflash_encode_q8(values, rows, cols, out, error);
  case DFLASH_STORAGE_Q4TP:
    return dflash_encode_q4tp(values, rows, cols, out, error);
  default:
    memcpy(out, values, (size_t)bytes);
    return DFLASH_OK;
  }
}
