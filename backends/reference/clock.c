#include "reference.h"

#include <time.h>

uint64_t reference_clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t reference_clock_resolution(void) {
  uint64_t smallest = 1000000000u, before = reference_clock_now();
  for (int i = 0; i < 100; i++) {
    const uint64_t now = reference_clock_now();
    if (now != before && now - before < smallest) smallest = now - before;
    before = now;
  }
  return smallest;
}
