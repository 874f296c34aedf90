#include "model/geometry.h"

#include <math.h>
#include <stddef.h>

#define NUMBER(name) \
  { #name, DFLASH_FIELD_I64, offsetof(DflashGeometry, name), 0 }
#define REAL(name) \
  { #name, DFLASH_FIELD_F64, offsetof(DflashGeometry, name), 0 }
#define LIST(name, may_be_absent) \
  { #name, DFLASH_FIELD_LIST, offsetof(DflashGeometry, name), may_be_absent }

static const DflashField fields[] = {
    NUMBER(hidden),      NUMBER(intermediate),  NUMBER(layers),       NUMBER(heads),      NUMBER(kv_heads),
    NUMBER(head_dim),    NUMBER(vocab),         NUMBER(block),        NUMBER(mask_token), NUMBER(conv_group),
    NUMBER(conv_kernel), NUMBER(selector_rank), NUMBER(selector_top), LIST(taps, 0),      NUMBER(target_layers),
    NUMBER(window),      LIST(windows, 1),      LIST(no_rope, 1),     REAL(rope_theta),   REAL(eps),
};

size_t dflash_geometry_field_count(void) { return sizeof fields / sizeof *fields; }

const DflashField *dflash_geometry_field(size_t index) {
  return index < dflash_geometry_field_count() ? &fields[index] : NULL;
}

static int lists_equal(const DflashList *a, const DflashList *b) {
  if (a->count != b->count) return 0;
  for (int64_t i = 0; i < a->count; i++)
    if (a->at[i] != b->at[i]) return 0;
  return 1;
}

static int fields_equal(const DflashField *field, const DflashGeometry *a, const DflashGeometry *b) {
  const void *left = (const char *)a + field->offset, *right = (const char *)b + field->offset;
  switch (field->kind) {
  case DFLASH_FIELD_I64:
    return *(const int64_t *)left == *(const int64_t *)right;
  case DFLASH_FIELD_F64:
    return *(const double *)left == *(const double *)right;
  default:
    return lists_equal(left, right);
  }
}

int dflash_geometry_equal(const DflashGeometry *a, const DflashGeometry *b) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++)
    if (!fields_equal(&fields[i], a, b)) return 0;
  return 1;
}

void dflash_geometry_inv_freq(const DflashGeometry *geometry, float *inv_freq) {
  double head_dim = (double)geometry->head_dim;
  for (int64_t i = 0; i < geometry->head_dim / 2; i++)
    inv_freq[i] = (float)pow(geometry->rope_theta, -2.0 * (double)i / head_dim);
}
