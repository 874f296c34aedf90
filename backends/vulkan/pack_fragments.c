/* Weights for matrix units, as units.h lays them out. A piece of a tile is 16 rows of 32 bytes in every storage, and so
 * many bytes in fragments. */
#include "pack.h"

#include <string.h>

#include "units.h"

enum {
  LANES = 32,
  ROWS = 16,
  HELD = 4, /* pairs of columns that a thread holds of a fragment */
  ROW_BYTES = 32,
  PIECE_BYTES = ROWS * ROW_BYTES,
  PIECE_WORDS = PIECE_BYTES / 4,
  GROUP = 32,
  CODE_BITS = 5
};

/* The byte of a piece, as it is gathered, at which a thread's pair of columns stands; of a piece's first fragment. */
typedef struct Pairs {
  uint32_t at[LANES][HELD];
} Pairs;

VulkanForm vulkan_units_form(int32_t storage, int64_t cols) {
  const uint64_t pieces = (uint64_t)vulkan_units_pieces(storage, cols);
  const bool codes = storage == DFLASH_STORAGE_Q4TP;
  return (VulkanForm){.rows = ROWS,
                      .weight_bytes = pieces * ROW_BYTES,
                      .scale_bytes = vulkan_form(storage, cols).scale_bytes,
                      .code_bytes = codes ? pieces * sizeof(uint16_t) : 0};
}

static void find_pairs(int32_t storage, Pairs *pairs) {
  const uint32_t pair_bytes = 2 * ROW_BYTES / (uint32_t)vulkan_units_piece(storage);
  for (uint32_t i = 0; i < LANES; i++)
    for (uint32_t n = 0; n < HELD; n++) {
      const VulkanPlace place = vulkan_units_w(i, 2 * n);
      pairs->at[i][n] = place.row * ROW_BYTES + place.col / 2 * pair_bytes;
    }
}

/* Two elements a byte, of even nibbles the low one and of odd ones the high one. */
static void pack_q4(const unsigned char *piece, const Pairs *pairs, uint32_t *words) {
  for (int i = 0; i < LANES; i++) {
    const uint32_t *at = pairs->at[i];
    for (int f = 0; f < 4; f++) {
      const unsigned char *fragment = piece + 8 * f;
      const uint32_t even = fragment[at[0]] | (uint32_t)fragment[at[2]] << 8;
      const uint32_t odd = fragment[at[1]] | (uint32_t)fragment[at[3]] << 8;
      const uint32_t first = (even & 0x0f0f) | (odd & 0x0f0f) << 4, second = (even >> 4 & 0x0f0f) | (odd & 0xf0f0);
      *words++ = (first | second << 16) ^ 0x88888888;
    }
  }
}

static uint32_t bytes_of(const unsigned char *first, const unsigned char *second) {
  return first[0] | (uint32_t)second[0] << 8 | (uint32_t)first[1] << 16 | (uint32_t)second[1] << 24;
}

static void pack_q8(const unsigned char *piece, const Pairs *pairs, uint32_t *words) {
  for (int i = 0; i < LANES; i++) {
    const uint32_t *at = pairs->at[i];
    for (int f = 0; f < 2; f++) {
      const unsigned char *fragment = piece + 16 * f;
      *words++ = bytes_of(fragment + at[0], fragment + at[1]);
      *words++ = bytes_of(fragment + at[2], fragment + at[3]);
    }
  }
}

static void pack_f16(const unsigned char *piece, const Pairs *pairs, uint32_t *words) {
  for (int i = 0; i < LANES; i++)
    for (int n = 0; n < HELD; n++) memcpy(words++, piece + pairs->at[i][n], sizeof *words);
}

typedef void PackPiece(const unsigned char *piece, const Pairs *pairs, uint32_t *words);

static PackPiece *pack_piece_of(int32_t storage) {
  if (storage == DFLASH_STORAGE_Q4TP) return pack_q4;
  return storage == DFLASH_STORAGE_Q8_2F ? pack_q8 : pack_f16;
}

/* `rows` rows of `bytes`, `stride` apart, and zeros in place of the others. */
static void gather(const unsigned char *from, int64_t stride, int64_t rows, int64_t bytes, int zero,
                   unsigned char *piece) {
  if (rows == ROWS && bytes == ROW_BYTES) {
    for (int row = 0; row < ROWS; row++) memcpy(piece + row * ROW_BYTES, from + row * stride, ROW_BYTES);
    return;
  }
  memset(piece, zero, PIECE_BYTES);
  for (int64_t row = 0; row < rows && bytes > 0; row++)
    memcpy(piece + row * ROW_BYTES, from + row * stride, (size_t)bytes);
}

static int64_t clamp(int64_t value, int64_t most) { return value < 0 ? 0 : value < most ? value : most; }

static int64_t cols_of(const DflashTensor *tensor) { return tensor->shape[tensor->rank - 1]; }

static int64_t rows_of(const DflashTensor *tensor) {
  int64_t rows = 1;
  for (int i = 0; i < tensor->rank - 1; i++) rows *= tensor->shape[i];
  return rows;
}

void vulkan_pack_fragments(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int32_t storage = tensor->storage;
  const int64_t stride = vulkan_stored_row_bytes(storage, cols_of(tensor));
  const int64_t pieces = vulkan_units_pieces(storage, cols_of(tensor));
  const int zero = storage == DFLASH_STORAGE_Q4TP ? 0x88 : 0;
  PackPiece *pack = pack_piece_of(storage);
  const unsigned char *stored = (const unsigned char *)tensor->data + first * stride;
  unsigned char piece[PIECE_BYTES], *to = out;
  uint32_t words[PIECE_WORDS];
  Pairs pairs;
  find_pairs(storage, &pairs);
  for (int64_t row = 0; row < count; row += ROWS)
    for (int64_t i = 0; i < pieces; i++, to += PIECE_BYTES) {
      const int64_t at = clamp(i * ROW_BYTES, stride);
      gather(stored + row * stride + at, stride, clamp(count - row, ROWS), clamp(stride - at, ROW_BYTES), zero, piece);
      pack(piece, &pairs, words);
      memcpy(to, words, sizeof words);
    }
}

/* The codes of a group and the next one, a byte each; they stand lowest bits first, within two bytes. */
static uint16_t codes_at(const unsigned char *row, int64_t group, int64_t groups) {
  if (group >= groups) return 0;
  const int64_t bit = group * CODE_BITS;
  const bool both = group + 1 < groups;
  uint32_t bits = row[bit / 8];
  if (bit / 8 < (groups * CODE_BITS - 1) / 8) bits |= (uint32_t)row[bit / 8 + 1] << 8;
  bits >>= bit % 8;
  return (uint16_t)((bits & 31) | (both ? bits >> CODE_BITS & 31 : 0) << 8);
}

void vulkan_pack_fragment_codes(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t rows = rows_of(tensor), cols = cols_of(tensor), bytes = vulkan_stored_code_bytes(cols);
  const int64_t pieces = vulkan_units_pieces(tensor->storage, cols), groups = cols / GROUP;
  const unsigned char *stored =
      (const unsigned char *)tensor->data + rows * (vulkan_stored_row_bytes(tensor->storage, cols) + 4) + first * bytes;
  unsigned char *to = out;
  for (int64_t row = 0; row < count; row += ROWS)
    for (int64_t i = 0; i < pieces; i++, to += ROWS * sizeof(uint16_t)) {
      uint16_t codes[ROWS] = {0};
      for (int64_t r = 0; r < clamp(count - row, ROWS); r++)
        codes[r] = codes_at(stored + (row + r) * bytes, 2 * i, groups);
      memcpy(to, codes, sizeof codes);
    }
}
