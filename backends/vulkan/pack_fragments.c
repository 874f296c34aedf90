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
  WORD_GROUPS = 8, /* that a word of codes stands for a part of */
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

/* Of a thread: a pair of columns of the first fragment, the same of the second, and the next pair of both: even columns
 * in the lower half of a word, odd ones in the upper half. */
static uint32_t nibbles_of(const unsigned char *first, const unsigned char *second, const uint32_t at[2]) {
  const uint32_t low = first[at[0]] | (uint32_t)first[at[1]] << 8, high = second[at[0]] | (uint32_t)second[at[1]] << 8;
  const uint32_t even = (low & 0x0f0f) | (high & 0x0f0f) << 4, odd = (low >> 4 & 0x0f0f) | (high & 0xf0f0);
  return (even | odd << 16) ^ 0x88888888;
}

/* Two elements a byte, of an even column the low nibble and of an odd one the high one. */
static void pack_q4(const unsigned char *piece, const Pairs *pairs, uint32_t *words) {
  for (int i = 0; i < LANES; i++)
    for (int g = 0; g < 2; g++) {
      const unsigned char *first = piece + 16 * g, *second = first + 8;
      *words++ = nibbles_of(first, second, pairs->at[i]);
      *words++ = nibbles_of(first, second, pairs->at[i] + 2);
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

/* 5 bits, which stand lowest first. */
static uint32_t code_at(const unsigned char *row, int64_t group, int64_t groups) {
  const int64_t bit = group * CODE_BITS, last = (groups * CODE_BITS - 1) / 8;
  if (group >= groups) return 0;
  const uint32_t bits = row[bit / 8] | (bit / 8 < last ? (uint32_t)row[bit / 8 + 1] << 8 : 0);
  return bits >> bit % 8 & 31;
}

/* Codes of the tile that begins with `row`, of `rows` rows of `bytes` each. */
typedef struct CodeRows {
  const unsigned char *at;
  int64_t bytes, rows, groups;
} CodeRows;

static uint32_t code_of(const CodeRows *tile, int64_t row, int64_t group) {
  return row < tile->rows ? code_at(tile->at + row * tile->bytes, group, tile->groups) : 0;
}

/* Of eight groups: thread by thread those of two rows and of two groups, four apart. */
static void pack_codes(const CodeRows *tile, int64_t first, uint32_t *words) {
  for (int64_t i = 0; i < LANES; i++) {
    const int64_t row = i / 4, group = first + i % 4;
    words[i] = code_of(tile, row, group) | code_of(tile, row + 8, group) << 8 | code_of(tile, row, group + 4) << 16 |
               code_of(tile, row + 8, group + 4) << 24;
  }
}

void vulkan_pack_fragment_codes(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t rows = rows_of(tensor), cols = cols_of(tensor), bytes = vulkan_stored_code_bytes(cols);
  const int64_t groups = vulkan_units_groups(tensor->storage, cols);
  const unsigned char *stored =
      (const unsigned char *)tensor->data + rows * (vulkan_stored_row_bytes(tensor->storage, cols) + 4) + first * bytes;
  unsigned char *to = out;
  uint32_t words[LANES];
  for (int64_t row = 0; row < count; row += ROWS) {
    const CodeRows tile = {stored + row * bytes, bytes, count - row, cols / GROUP};
    for (int64_t group = 0; group < groups; group += WORD_GROUPS, to += sizeof words) {
      pack_codes(&tile, group, words);
      memcpy(to, words, sizeof words);
    }
  }
}
