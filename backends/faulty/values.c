#include <stdlib.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

/* Elements of one layer's value; 0 when the run has none. */
static int64_t elements_of(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage) {
  const bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  if (context != (sizes->rows == 0)) return 0;
  return dflash_stage_rows(geometry, sizes, stage) * dflash_stage_width(geometry, sizes, stage);
}

DflashStatus fault_values_reserve(FaultValues *values, const DflashGeometry *geometry, const DflashRunSizes *sizes,
                                  DflashError *error) {
  int64_t total = 0;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++)
    total += dflash_stage_layers(geometry, stage) * elements_of(geometry, sizes, stage);
  if (total <= values->count) return DFLASH_OK;
  float *data = dflash_alloc((size_t)total, sizeof *data);
  if (data == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for %lld values of stages",
                            (long long)total);
  free(values->data);
  *values = (FaultValues){.data = data, .count = total};
  return DFLASH_OK;
}

void fault_values_place(FaultValues *values, const DflashGeometry *geometry, const DflashRunSizes *sizes) {
  int64_t total = 0;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const int64_t elements = elements_of(geometry, sizes, stage);
    values->offset[stage] = elements > 0 ? total : -1;
    values->elements[stage] = elements;
    total += dflash_stage_layers(geometry, stage) * elements;
  }
}

float *fault_value(const FaultValues *values, int32_t stage, int64_t layer) {
  if (values->data == NULL || values->elements[stage] == 0) return NULL;
  return values->data + values->offset[stage] + layer * values->elements[stage];
}
