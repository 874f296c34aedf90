/* Structs that cross the boundary may be shorter or longer than this build's. */
#ifndef DFLASH_CUDA_ABI_H
#define DFLASH_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

static inline DflashStatus cuda_check_pointer(const void *given, const char *what, DflashError *error) {
  if (given) return DFLASH_OK;
  (void)dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s is NULL", what);
  return DFLASH_INVALID_ARGUMENT;
}

/* A caller's struct, which begins with its struct_size: DFLASH_INVALID_ARGUMENT, naming it, where it is NULL or does
 * not hold the `needed` bytes that are read or written. */
static inline DflashStatus cuda_check_struct(const void *given, size_t needed, const char *what, DflashError *error) {
  uint32_t size;
  if (!given) return cuda_check_pointer(given, what, error);
  memcpy(&size, given, sizeof size);
  if (size >= needed) return DFLASH_OK;
  (void)dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: struct_size is %u, at least %zu is needed", what,
                         size, needed);
  return DFLASH_INVALID_ARGUMENT;
}

/* Fills a caller's struct as far as its struct_size, the first member, says that it reaches; that member stays. */
static inline void cuda_answer(void *to, const void *from, size_t from_size) {
  uint32_t size;
  memcpy(&size, to, sizeof size);
  if (size > from_size) size = (uint32_t)from_size;
  if (size > sizeof size) memcpy((char *)to + sizeof size, (const char *)from + sizeof size, size - sizeof size);
}

#endif
