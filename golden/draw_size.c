#include "golden/draw_size.h"

#include "golden/draw.h"
#include "golden/stress.h"

/* Sizes, found by the end of the name; the first row that fits counts. Products keep the size of what they multiply; o
 * and down are larger, so that the residual stream grows from layer to layer as in a trained model; queries and keys
 * make scores that deviate by about two; base and dynamic kernels share the convolution's unit variance in equal parts;
 * head and selector make terms of one size, so that the walk decides. */
typedef struct Size {
  const char *suffix;
  int stress;         /* counts under this stress only; 0: always */
  float mean, spread; /* vectors: mean and deviation; matrices: spread over the root of the columns */
} Size;

/* sharp: scores deviate by 64 to 80. loud: 3.5 deviations of a matrix of one column still are an f16. */
static const Size SIZES[] = {
    {"self_attn.q_norm.weight", DFLASH_STRESS_SHARP, 8.0f, 1.0f},
    {"self_attn.k_norm.weight", DFLASH_STRESS_SHARP, 8.0f, 1.0f},
    {"mlp.gate_proj.weight", DFLASH_STRESS_GATES, 0.0f, 50.0f},
    {"o_proj.weight", DFLASH_STRESS_LOUD, 0.0f, 16384.0f},
    {"down_proj.weight", DFLASH_STRESS_LOUD, 0.0f, 16384.0f},
    {"predecessor_codebook", DFLASH_STRESS_ORDER, 0.0f, 32.0f},
    {"self_attn.q_norm.weight", 0, 1.5f, 0.25f},
    {"self_attn.k_norm.weight", 0, 1.5f, 0.25f},
    {"norm.weight", 0, 1.0f, 0.25f},
    {"o_proj.weight", 0, 0.0f, 2.0f},
    {"down_proj.weight", 0, 0.0f, 2.0f},
    {"lm_head.weight", 0, 0.0f, 2.0f},
};

static const Size *find_size(const char *name, int stress) {
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
    if (dflash_draw_ends_with(name, SIZES[i].suffix) && (!SIZES[i].stress || SIZES[i].stress & stress))
      return &SIZES[i];
  return NULL;
}

/* Beside inputs whose mean is about one a mean of m / columns moves every output by m. */
static void set_mean(const DflashWeightEntry *entry, int stress, float inverse_root, DflashDrawSize *size) {
  int head = dflash_draw_ends_with(entry->name, "lm_head.weight");
  float inverse = inverse_root * inverse_root;
  if (head && stress & (DFLASH_STRESS_NEGATIVE | DFLASH_STRESS_CLUSTERED))
    size->mean = stress & DFLASH_STRESS_NEGATIVE ? -12.0f * inverse : 12.0f * inverse;
  else if (stress & DFLASH_STRESS_MEAN)
    size->mean = -1.5f * inverse;
  size->clustered = head && stress & DFLASH_STRESS_CLUSTERED;
  if (size->clustered) size->deviation = size->mean * (size->mean < 0.0f ? -0x1p-5f : 0x1p-5f);
}

DflashDrawSize dflash_draw_size(const DflashGeometry *geometry, const DflashWeightEntry *entry, int stress) {
  const Size *found = find_size(entry->name, stress);
  float spread = found ? found->spread : 1.0f;
  float inverse_root = dflash_draw_inverse_root((uint64_t)entry->shape[entry->rank - 1]);
  float taps = dflash_draw_inverse_root((uint64_t)(2 * geometry->conv_kernel)); /* base and dynamic part of every tap */
  DflashDrawSize size = {.mean = found ? found->mean : 0.0f, .deviation = spread};
  if (entry->kind == DFLASH_KIND_BASE) size.deviation = taps;
  if (dflash_draw_ends_with(entry->name, "kernel_projection.weight")) spread = taps;
  if (dflash_draw_ends_with(entry->name, "predecessor_codebook"))
    size.deviation = spread * inverse_root; /* successor: 1 */
  if (entry->kind != DFLASH_KIND_MATRIX) return size;
  size.deviation = spread * inverse_root;
  set_mean(entry, stress, inverse_root, &size);
  size.small_rows = (stress & DFLASH_STRESS_QUIET) != 0;
  size.zero_groups = (stress & DFLASH_STRESS_ZEROS) != 0;
  return size;
}

int dflash_draw_shift(const DflashDrawSize *size, float unit) {
  float shift = size->mean / size->deviation * unit;
  return (int)(shift < 0.0f ? shift - 0.5f : shift + 0.5f);
}
