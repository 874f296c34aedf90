#include "model/geometry_product.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/geometry.h"
#include "model/stage_table.h"
#include "model/weights_table.h"

/* Appends " name value" for every field that `formula` names; a list counts its entries. */
static void append_fields(const DflashGeometry *geometry, const char *formula, char *text, size_t capacity) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    const char *at = strstr(formula, field->name);
    if (!at || field->kind == DFLASH_FIELD_F64 || (at > formula && at[-1] != ' ')) continue;
    size_t used = strlen(text); /* a list begins with its count, so both kinds begin with an int64_t */
    int64_t value = *(const int64_t *)(const void *)((const char *)geometry + field->offset);
    snprintf(text + used, capacity - used, "%s%s %" PRId64, used ? ", " : "", field->name, value);
  }
}

static DflashStatus refuse(const DflashGeometry *geometry, const char *what, const char *formula, DflashError *error) {
  char fields[256] = "";
  append_fields(geometry, formula, fields, sizeof fields);
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "geometry: %s, 4 bytes times %s, overflows 63 bits with %s; valid: smaller sizes", what,
                          formula, fields);
}

static bool add_bytes(int64_t elements, int64_t copies, int64_t *total) {
  int64_t bytes;
  return dflash_mul_i64(elements, (int64_t)sizeof(float), &bytes) && dflash_mul_i64(bytes, copies, &bytes) &&
         dflash_add_i64(*total, bytes, total);
}

static DflashStatus add_tensor(const DflashGeometry *geometry, const DflashWeightRow *row, int64_t copies,
                               int64_t *total, DflashError *error) {
  int64_t elements = 1, unused = 0;
  char formula[128] = "";
  bool fits = true;
  for (int i = 0; i < 3 && row->sizes[i] != DFLASH_SIZE_NONE; i++) {
    size_t used = strlen(formula);
    snprintf(formula + used, sizeof formula - used, "%s%s", i ? " * " : "", dflash_size_text(row->sizes[i]));
    int64_t size;
    fits = fits && dflash_size_value(geometry, row->sizes[i], &size) && dflash_mul_i64(elements, size, &elements);
  }
  if (!fits || !add_bytes(elements, 1, &unused)) return refuse(geometry, row->name, formula, error);
  if (!add_bytes(elements, copies, total)) return refuse(geometry, "the sum of all weights", "layers", error);
  return DFLASH_OK;
}

static DflashStatus check_tensors(const DflashGeometry *geometry, DflashError *error) {
  int64_t total = 0, layer;
  DflashStatus status = add_tensor(geometry, dflash_weight_head_row(), 1, &total, error);
  for (int64_t i = 0; status == DFLASH_OK && i < DFLASH_MODEL_WEIGHT_COUNT + DFLASH_LAYER_WEIGHT_COUNT; i++) {
    const DflashWeightRow *row = dflash_weight_row(i, &layer);
    status = add_tensor(geometry, row, layer < 0 ? 1 : geometry->layers, &total, error);
  }
  return status;
}

static int width_size(int32_t width) {
  switch (width) {
  case DFLASH_WIDTH_Q:
    return DFLASH_SIZE_Q_WIDTH;
  case DFLASH_WIDTH_KV:
    return DFLASH_SIZE_KV_WIDTH;
  case DFLASH_WIDTH_KERNEL:
    return DFLASH_SIZE_KERNEL_WIDTH;
  case DFLASH_WIDTH_INTERMEDIATE:
    return DFLASH_SIZE_INTERMEDIATE;
  case DFLASH_WIDTH_HEAD:
    return DFLASH_SIZE_VOCAB;
  case DFLASH_WIDTH_RANK:
    return DFLASH_SIZE_RANK;
  case DFLASH_WIDTH_TOP:
    return DFLASH_SIZE_TOP;
  default:
    return DFLASH_SIZE_HIDDEN;
  }
}

/* Widths alone fit: each is a dimension of a tensor that was checked, or at most vocab. */
static DflashStatus add_stage(const DflashGeometry *geometry, int32_t stage, int64_t *total, DflashError *error) {
  const DflashStageRow *row = dflash_stage_row(stage);
  char formula[96];
  snprintf(formula, sizeof formula, "block * %s", dflash_size_text(width_size(row->width)));
  int64_t width, elements, unused = 0;
  bool fits = dflash_size_value(geometry, width_size(row->width), &width) &&
              dflash_mul_i64(geometry->block, width, &elements) && add_bytes(elements, 1, &unused);
  if (!fits) return refuse(geometry, row->name, formula, error);
  if (!add_bytes(elements, dflash_stage_layers(geometry, stage), total))
    return refuse(geometry, "the sum of all stages", "layers", error);
  return DFLASH_OK;
}

DflashStatus dflash_geometry_products(const DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = check_tensors(geometry, error);
  int64_t total = 0;
  for (int32_t stage = 0; status == DFLASH_OK && stage < DFLASH_STAGE_COUNT; stage++)
    status = add_stage(geometry, stage, &total, error);
  return status;
}
