/* For any processor: vectors of 4, lowered by the compiler to what there is. */
#include <string.h>

#define KERNEL_NAME "plain"
#define KERNEL_ENTRY dflash_kernel_plain
#define LANES 4
#define GROUP 2
#define OPEN_GROUPS 2
#define TILE_PANELS 1
#define TILE_PANELS_Q4 1
#include "tile_types.h"

static inline LanesWord words_of_shorts(const unsigned char *p) {
  uint16_t shorts[LANES];
  memcpy(shorts, p, sizeof shorts);
  return (LanesWord){shorts[0], shorts[1], shorts[2], shorts[3]};
}

/* Exponent and fraction moved to f32's places, then scaled by 2^112: exact, f16's denormals included.
 * Infinity and NaN do not occur: weights are finite. */
static inline Lanes lanes_f16(const unsigned char *p) {
  const LanesWord bits = words_of_shorts(p);
  const Lanes magnitude = (Lanes)((bits & 0x7fff) << 13) * 0x1p112f;
  return (Lanes)((LanesWord)magnitude | (bits & 0x8000) << 16);
}

static inline Lanes lanes_bf16(const unsigned char *p) { return (Lanes)(words_of_shorts(p) << 16); }

static inline Lanes lanes_i8(const unsigned char *p) {
  int8_t bytes[LANES];
  memcpy(bytes, p, sizeof bytes);
  return __builtin_convertvector((LanesInt){bytes[0], bytes[1], bytes[2], bytes[3]}, Lanes);
}

static inline Lanes lanes_nibble(LanesWord words, int i) {
  return __builtin_convertvector((LanesInt)(words >> 4 * i & 15) - 8, Lanes);
}

#include "tile.h"

#include "rows.h"
