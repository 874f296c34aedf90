#include "kernel.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define KERNEL_NAME "avx2"
#define KERNEL_ENTRY dflash_kernel_avx2
#define LANES 8
#define GROUP 4
#define OPEN_GROUPS 5
#define TILE_PANELS 1
#define TILE_PANELS_Q4 1
#include "tile_types.h"

static inline Lanes lanes_f16(const unsigned char *p) {
  return (Lanes)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline Lanes lanes_bf16(const unsigned char *p) {
  return (Lanes)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
}

static inline Lanes lanes_i8(const unsigned char *p) {
  return (Lanes)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline Lanes lanes_nibble(LanesWord words, int i) {
  return __builtin_convertvector((LanesInt)(words >> 4 * i & 15) - 8, Lanes);
}

#include "tile.h"

#include "rows.h"
#else
const DflashKernel *dflash_kernel_avx2(void) { return 0; }
#endif
