#include "matrix.h"

#include "base/memory.h"

int32_t dflash_matrix_form(int32_t storage, bool stored) {
  if (!stored) return FORM_F32;
  switch (storage) {
  case DFLASH_STORAGE_F16:
    return FORM_F16;
  case DFLASH_STORAGE_BF16:
    return FORM_BF16;
  case DFLASH_STORAGE_Q8_2F:
    return FORM_Q8;
  case DFLASH_STORAGE_Q4TP:
    return FORM_Q4;
  default:
    return FORM_F32;
  }
}

const char *dflash_matrix_form_name(int32_t form) {
  static const char *const names[FORM_COUNT] = {"f32", "f16", "bf16", "q8", "q4", "q4 opened"};
  return names[form];
}

int64_t dflash_matrix_panel_bytes(int32_t form, int64_t cols) {
  switch (form) {
  case FORM_F32:
    return cols * PANEL * 4;
  case FORM_Q8:
    return cols * PANEL;
  case FORM_Q4:
    return cols * PANEL / 2;
  default:
    return cols * PANEL * 2;
  }
}

static int64_t scale_bytes(int32_t form, int64_t cols) {
  if (form == FORM_Q8) return PANEL * 4;
  return form == FORM_Q4 ? cols / Q4_GROUP * PANEL * 4 : 0;
}

bool dflash_matrix_bytes(int32_t form, int64_t rows, int64_t cols, uint64_t *bytes) {
  int64_t total;
  if (cols > INT64_MAX / (PANEL * 16) || rows > INT64_MAX - PANEL) return false;
  if (!dflash_mul_i64((rows + PANEL - 1) / PANEL, dflash_matrix_panel_bytes(form, cols) + scale_bytes(form, cols),
                      &total))
    return false;
  if (form == FORM_Q8 && !dflash_add_i64(total, cols * 4, &total)) return false;
  *bytes = (uint64_t)total;
  return true;
}
