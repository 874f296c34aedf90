/* What a file of another engine's values may claim of shapes and rows. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "load/candidate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition) {
  if (!condition) abort();
}

static void check_shape(const uint8_t *data, size_t size) {
  DflashCandidateShape wanted = {0};
  uint64_t shape[4] = {0};
  if (size < 1 + sizeof wanted + sizeof shape) return;
  memcpy(&wanted, data + 1, sizeof wanted);
  memcpy(shape, data + 1 + sizeof wanted, sizeof shape);
  wanted.rows &= INT32_MAX;
  wanted.width = (wanted.width & INT32_MAX) + 1;
  wanted.heads &= 255;
  int64_t rows = dflash_candidate_rows(&wanted, data[0] % 6, shape);
  expect(rows >= -1 && rows <= wanted.rows);
  expect(rows < 0 || (uint64_t)rows == shape[0]);
}

static void check_rows(const uint8_t *data, size_t size) {
  int64_t rows[64], count = 0;
  int64_t all = size > 0 ? data[0] : 0;
  bool seen[256] = {false}, good = true;
  for (size_t at = 1; at < size && count < 64; at++) {
    rows[count] = (int64_t)data[at] - 3;
    bool inside = rows[count] >= 0 && rows[count] < all;
    good = good && inside && !seen[rows[count]];
    if (inside) seen[rows[count]] = true;
    count++;
  }
  expect((dflash_candidate_rows_fault(rows, count, all) == NULL) == good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check_shape(data, size);
  check_rows(data, size);
  return 0;
}
