#include "draw.h"

#include <stdlib.h>

#include "fixture.h"

void *test_memory(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  assert_non_null(memory);
  return memory;
}

float test_draw(DflashRandom random, uint64_t index) {
  return (float)dflash_random_u32(random, index) * 0x1p-31f - 1.0f;
}
