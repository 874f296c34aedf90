#include "units.h"

enum { LANES = 32, PAIRS_OF_W = 4, PAIRS_OF_X = 2, TILE_ROWS = 16, GROUP_COLS = 32, WHOLE_COLS = 256 };

/* Thread 4 g + t holds pairs of columns: these many rows below g, and columns past 2 t. */
static const VulkanPlace OF_W[PAIRS_OF_W] = {{0, 0}, {0, 8}, {8, 0}, {8, 8}};
static const VulkanPlace OF_X[PAIRS_OF_X] = {{0, 0}, {0, 8}};

static VulkanPlace place_of(const VulkanPlace *pairs, uint32_t thread, uint32_t n) {
  return (VulkanPlace){thread / 4 + pairs[n / 2].row, thread % 4 * 2 + n % 2 + pairs[n / 2].col};
}

VulkanPlace vulkan_units_w(uint32_t thread, uint32_t n) { return place_of(OF_W, thread, n); }

VulkanPlace vulkan_units_x(uint32_t thread, uint32_t n) { return place_of(OF_X, thread, n); }

VulkanPlace vulkan_units_y(uint32_t thread, uint32_t n) {
  return (VulkanPlace){thread / 4 + n / 2 * 8, thread % 4 * 2 + n % 2};
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t vulkan_units_piece(int32_t storage) {
  switch (storage) {
  case DFLASH_STORAGE_Q4TP:
    return 64;
  case DFLASH_STORAGE_Q8_2F:
    return 32;
  default:
    return 16;
  }
}

int64_t vulkan_units_pieces(int32_t storage, int64_t cols) {
  return ceil_div(cols, WHOLE_COLS) * (WHOLE_COLS / vulkan_units_piece(storage));
}

int64_t vulkan_units_groups(int32_t storage, int64_t cols) {
  return vulkan_units_pieces(storage, cols) * vulkan_units_piece(storage) / GROUP_COLS;
}

int64_t vulkan_units_tiles(int64_t rows) { return ceil_div(rows, TILE_ROWS); }

void vulkan_units_masks(uint32_t masks[VULKAN_UNITS_MASKS]) {
  masks[0] = 0x000f000f;
  masks[1] = 0x00ff00ff;
  masks[2] = 0x80088008;
}

void vulkan_units_pairs(uint32_t pairs[VULKAN_UNITS_PAIRS]) {
  for (uint32_t i = 0; i < PAIRS_OF_X * LANES; i++) {
    const VulkanPlace place = vulkan_units_x(i / PAIRS_OF_X, i % PAIRS_OF_X * 2);
    pairs[place.col / 2 * 8 + place.row] = i;
  }
}
