#include "kernel.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>

#define KERNEL_NAME "avx512"
#define KERNEL_ENTRY dflash_kernel_avx512
#define LANES 16
#define GROUP 8
#define OPEN_GROUPS 5
#define TILE_PANELS 2
#define TILE_PANELS_Q4 1
#include "tile_types.h"

static inline Lanes lanes_f16(const unsigned char *p) {
  return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline Lanes lanes_bf16(const unsigned char *p) {
  return (Lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16);
}

static inline Lanes lanes_i8(const unsigned char *p) {
  return (Lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* The permutation looks at the lowest 4 bits of a word only. */
static inline Lanes lanes_nibble(LanesWord words, int i) {
  const Lanes table = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  return (Lanes)_mm512_permutexvar_ps((__m512i)(words >> 4 * i), (__m512)table);
}

#include "tile.h"

#include "rows.h"
#else
const DflashKernel *dflash_kernel_avx512(void) { return 0; }
#endif
