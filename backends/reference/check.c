#include "reference.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

DflashStatus reference_check_ranges(const char *call, const Range *ranges, size_t count, DflashError *error) {
  for (const Range *range = ranges; range < ranges + count; range++)
    if (range->value < range->low || range->value > range->high)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                              "reference: %s: %s is %" PRId64 ", valid is %" PRId64 " to %" PRId64, call, range->name,
                              range->value, range->low, range->high);
  return DFLASH_OK;
}

DflashStatus reference_check_pointer(const char *name, const void *pointer, DflashError *error) {
  if (pointer != NULL) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s is NULL", name);
}

static uint32_t struct_size(const void *pointer) {
  uint32_t size;
  memcpy(&size, pointer, sizeof size);
  return size;
}

DflashStatus reference_check_struct(const char *name, const void *pointer, size_t needed, DflashError *error) {
  DflashStatus status = reference_check_pointer(name, pointer, error);
  if (status != DFLASH_OK || struct_size(pointer) >= needed) return status;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s: struct_size is %u, at least %zu is needed",
                          name, struct_size(pointer), needed);
}

DflashStatus reference_answer(const char *name, void *answer, const void *value, size_t bytes, DflashError *error) {
  DflashStatus status = reference_check_struct(name, answer, sizeof(uint32_t), error);
  if (status != DFLASH_OK) return status;
  const size_t room = struct_size(answer) < bytes ? struct_size(answer) : bytes;
  memcpy((char *)answer + sizeof(uint32_t), (const char *)value + sizeof(uint32_t), room - sizeof(uint32_t));
  return DFLASH_OK;
}
