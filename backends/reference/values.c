#include "reference.h"

#include <stdlib.h>

#include "base/memory.h"

bool reference_values_open(Values *values, const DflashGeometry *geometry, const Sizes *sizes, bool every_layer) {
  int64_t total = 0;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const int64_t copies = every_layer ? reference_stage_layers(geometry, stage) : 1;
    int64_t one, all;
    if (!dflash_mul_i64(reference_stage_rows(sizes, stage), reference_stage_width(geometry, sizes, stage), &one) ||
        !dflash_mul_i64(one, copies, &all))
      return false;
    values->offset[stage] = total;
    values->layer_stride[stage] = copies > 1 ? one : 0;
    if (!dflash_add_i64(total, all, &total)) return false;
  }
  values->count = total;
  values->data = dflash_alloc(total > 0 ? (size_t)total : 1, sizeof(float));
  return values->data != NULL;
}

void reference_values_close(Values *values) {
  free(values->data);
  *values = (Values){0};
}

float *reference_values_at(const Values *values, int32_t stage, int64_t layer) {
  return values->data + values->offset[stage] + layer * values->layer_stride[stage];
}
