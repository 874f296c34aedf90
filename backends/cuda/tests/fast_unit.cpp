#include "fast_unit.h"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {
#include <cmocka.h>
}

#include "../kernels/fast/layout.h"

namespace {

/* What a warp reads of a chunk: rows from `row` on, columns from `col` on. */
struct Span {
  const unsigned char *from;
  int row, col;
};

void found(int &place, int value) {
  if (place != -1) fail_msg("found twice");
  place = value;
}
uint32_t word_at(const unsigned char *p) {
  uint32_t word;
  memcpy(&word, p, 4);
  return word;
}
/* Two words a lane, of steps 0 and 1, of 2 and 3, ..; those of an odd last one lie behind, two words a lane. */
const unsigned char *words_of(const unsigned char *from, int lane, int step, int steps) {
  if (steps % 2 == 1 && step == steps - 1) return from + step * 256 + lane * 8;
  return from + step / 2 * 512 + lane * 16 + step % 2 * 8;
}
/* Nibble r of a word is row g + 8 (r & 1) at columns 2 t + 8 (r >> 1) and, 16 bits on, the next one. */
void unpack_q4(FastUnit &u, const Span &p, int groups) {
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 16 * groups; i++) {
      const int r = i % 4, half = i / 4 % 2, step = i / 8, row = p.row + lane / 4 + 8 * (r & 1);
      const int col = p.col + step * 16 + lane % 4 * 2 + 8 * (r >> 1) + half;
      const uint32_t word = word_at(words_of(p.from, lane, step / 2, groups) + step % 2 * 4);
      found(u.weights[(size_t)row * u.cols + col], word >> (4 * r + 16 * half) & 15);
    }
  for (int r = 0; r < 16; r++)
    for (int group = 0; group < groups; group++) {
      const uint32_t word = word_at(p.from + groups * 256 + r % 8 * 8 + r / 8 * 4);
      const uint32_t offset = (group == 4 ? word << 5 : word >> 5 * group) & 0x1f00; /* in a table of rungs */
      found(u.codes[(size_t)((p.row + r) * u.cols + p.col) / 32 + group], offset / 256);
    }
}
/* Bytes 0 and 2 of a word are row g, 1 and 3 row g + 8; the second word is 8 columns on. */
void unpack_q8(FastUnit &u, const Span &p) {
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 8 * FAST_Q8_STEPS; i++) {
      const int byte = i % 4, word = i / 4 % 2, step = i / 8, row = p.row + lane / 4 + 8 * (byte & 1);
      const int col = p.col + step * 16 + lane % 4 * 2 + 8 * word + byte / 2;
      const unsigned char *words = words_of(p.from, lane, step, FAST_Q8_STEPS);
      found(u.weights[(size_t)row * u.cols + col], words[4 * word + byte]);
    }
}

} // namespace

FastUnit::FastUnit(int columns)
    : cols(columns), weights((size_t)64 * columns, -1), codes((size_t)64 * columns / 32, -1) {}

const unsigned char *FastUnit::unpack(int product, const unsigned char *p) {
  const int width = fast_group_columns(product);
  p += fast_ladder_bytes(product);
  for (int chunk = 0, before = 0; chunk < fast_chunks(product); chunk++) {
    const int groups = fast_groups(product, chunk), bytes = fast_is_q8(product) ? 5 * 256 : groups * 256 + 64;
    for (int warp = 0; warp < 16; warp++, p += bytes) {
      const Span span = {p, warp % 4 * 16, warp / 4 * width + before};
      if (fast_is_q8(product))
        unpack_q8(*this, span);
      else
        unpack_q4(*this, span, groups);
    }
    before += fast_is_q8(product) ? 5 * 16 : groups * 32;
  }
  return p;
}
