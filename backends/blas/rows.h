/* Loops over rows that an instruction set's compiler vectorises: exp, silu, softmax, a streaming read. */
#include <math.h>
#include <string.h>

/* exp(-a) = fraction * 2^exponent for 0 <= a <= 170, fraction in [0.7, 1.42], within 2 ulp. NaN gives NaN. */
INLINE float exp_negative(float a, int32_t *exponent) {
  const float shift = 12582912.0f; /* 1.5 * 2^23: its sum with a small number rounds that to an integer */
  const float shifted = a * -1.44269504f + shift;
  const float n = shifted - shift;
  int32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  *exponent = bits - 0x4b400000;
  /* ln 2 in two parts: the first has 15 bits, so n * first is exact */
  const float r = (-a - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 0.166666667f;
  p = p * r + 0.5f;
  p = p * r * r + r;
  return p + 1.0f;
}

/* 2^n for -126 <= n <= 127 */
INLINE float power_of_two(int32_t n) {
  const uint32_t bits = (uint32_t)(n + 127) << 23;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

enum { EXP_LIMIT = 170 }; /* exp(-170) is 2^-245: two normal factors, and 0 for every x of f32 times it below 2^96 */

/* Two factors, so that only the last product can be denormal and it rounds once. */
static void silu(const float *restrict gate, const float *restrict up, float *restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const float x = gate[i], a = fabsf(x);
    int32_t n;
    const float p = exp_negative(a > EXP_LIMIT ? EXP_LIMIT : a, &n);
    const int32_t half = n / 2;
    const float first = power_of_two(half), second = a > EXP_LIMIT ? 0.0f : power_of_two(n - half);
    const float positive = x / (1.0f + p * first * second);
    const float value = x < 0.0f ? positive * p * first * second : positive;
    out[i] = value * up[i];
  }
}

static void hide(float *scores, int rows, int row, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) scores[(i / PANEL * rows + row) * PANEL + i % PANEL] = -INFINITY;
}

static float scale_and_find_largest(float *scores, int64_t panels, int rows, float scale) {
  float largest[PANEL];
  for (int l = 0; l < PANEL; l++) largest[l] = -INFINITY;
  for (int64_t p = 0; p < panels; p++) {
    float *s = scores + p * rows * PANEL;
    for (int l = 0; l < PANEL; l++) {
      s[l] *= scale;
      largest[l] = s[l] > largest[l] ? s[l] : largest[l];
    }
  }
  for (int l = 1; l < PANEL; l++) largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
  return largest[0];
}

/* One panel of one row: weights beside, and into the row's 16 running totals. */
static void exponentiate(const float *scores, float largest, float *weights, double *totals) {
  for (int l = 0; l < PANEL; l++) {
    const float a = largest - scores[l];
    int32_t n;
    const float fraction = exp_negative(a > EXP_LIMIT ? EXP_LIMIT : a, &n);
    const int32_t half = n / 2;
    weights[l] = fraction * power_of_two(half) * (a > EXP_LIMIT ? 0.0f : power_of_two(n - half));
  }
  for (int l = 0; l < PANEL; l++) totals[l] += weights[l];
}

/* The panels are turned from [rows][16] to [16][rows] where they stand. */
static void softmax(const DflashSoftmax *s) {
  float largest[GROUP_MAX], weights[GROUP_MAX][PANEL];
  double totals[GROUP_MAX][PANEL] = {{0}};
  for (int m = 0; m < s->rows; m++) {
    hide(s->scores, s->rows, m, 0, s->begin[m]);
    hide(s->scores, s->rows, m, s->context, s->own);
    hide(s->scores, s->rows, m, s->lanes, s->panels * PANEL);
    largest[m] = scale_and_find_largest(s->scores + m * PANEL, s->panels, s->rows, s->scale);
  }
  for (int64_t p = 0; p < s->panels; p++) {
    float *panel = s->scores + p * s->rows * PANEL;
    for (int m = 0; m < s->rows; m++) exponentiate(panel + m * PANEL, largest[m], weights[m], totals[m]);
    for (int l = 0; l < PANEL; l++)
      for (int m = 0; m < s->rows; m++) panel[l * s->rows + m] = weights[m][l];
  }
  for (int m = 0; m < s->rows; m++) {
    s->totals[m] = 0;
    for (int l = 0; l < PANEL; l++) s->totals[m] += totals[m][l];
  }
}

static uint64_t read_words(const void *data, int64_t bytes) {
  enum { STREAMS = 4 };
  const LanesWordLoose *vectors = data;
  LanesWord all[STREAMS] = {{0}};
  for (int64_t i = 0; i < bytes / (int64_t)sizeof(LanesWord); i += STREAMS)
    for (int s = 0; s < STREAMS; s++) all[s] ^= vectors[i + s];
  const LanesWord sum = all[0] ^ all[1] ^ all[2] ^ all[3];
  uint64_t words[sizeof sum / 8], folded = 0;
  memcpy(words, &sum, sizeof sum);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) folded ^= words[i];
  return folded;
}

const DflashKernel *KERNEL_ENTRY(void) {
  static const DflashKernel kernel = {
      .name = KERNEL_NAME,
      .group = GROUP,
      .open_groups = OPEN_GROUPS,
      .panels = {TILE_PANELS, TILE_PANELS, TILE_PANELS, TILE_PANELS, TILE_PANELS_Q4, TILE_PANELS},
      .tile = {TILE_ROW(F32), TILE_ROW(F16), TILE_ROW(BF16), TILE_ROW(Q8), TILE_ROW(Q4), TILE_ROW(Q4_OPEN)},
      .open = {[FORM_F16] = open_f16, [FORM_BF16] = open_bf16, [FORM_Q8] = open_q8, [FORM_Q4] = open_q4},
      .silu = silu,
      .softmax = softmax,
      .read = read_words,
  };
  return &kernel;
}
