#include <inttypes.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"

DflashStatus fault_check_ranges(const char *call, const FaultRange *ranges, size_t count, DflashError *error) {
  for (const FaultRange *range = ranges; range < ranges + count; range++)
    if (range->value < range->low || range->value > range->high)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                              "faulty: %s: %s is %" PRId64 ", valid is %" PRId64 " to %" PRId64, call, range->name,
                              range->value, range->low, range->high);
  return DFLASH_OK;
}

DflashStatus fault_check_pointer(const char *name, const void *pointer, DflashError *error) {
  if (pointer != NULL) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s is NULL", name);
}

static uint32_t struct_size(const void *pointer) {
  uint32_t size;
  memcpy(&size, pointer, sizeof size);
  return size;
}

DflashStatus fault_check_struct(const char *name, const void *pointer, size_t needed, DflashError *error) {
  const DflashStatus status = fault_check_pointer(name, pointer, error);
  if (status != DFLASH_OK || struct_size(pointer) >= needed) return status;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s: struct_size is %u, at least %zu is needed", name,
                          struct_size(pointer), needed);
}

DflashStatus fault_check_stage(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error) {
  const FaultRange known = {"stage", stage, 0, DFLASH_STAGE_COUNT - 1};
  const DflashStatus status = fault_check_ranges("stage", &known, 1, error);
  if (status != DFLASH_OK) return status;
  const FaultRange range = {"layer", layer, 0, dflash_stage_layers(&model->geometry, stage) - 1};
  return fault_check_ranges(dflash_stage_row(stage)->name, &range, 1, error);
}

DflashStatus fault_answer(const char *name, void *answer, const void *value, size_t bytes, DflashError *error) {
  const DflashStatus status = fault_check_struct(name, answer, sizeof(uint32_t), error);
  if (status != DFLASH_OK) return status;
  const size_t room = struct_size(answer) < bytes ? struct_size(answer) : bytes;
  if (room > sizeof(uint32_t))
    memcpy((char *)answer + sizeof(uint32_t), (const char *)value + sizeof(uint32_t), room - sizeof(uint32_t));
  return DFLASH_OK;
}
