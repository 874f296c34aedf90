/* Every f32 sum of the block is taken here, so one option says in which order all of them are taken. */
#include "reference.h"

#include <math.h>

enum { PAIRWISE_LEAF = 2, LANES = 16, BLOCK = 128, PARTS = 3, TOGETHER = 8 };

/* One term more: a product and a sum, each rounded, or both rounded once. */
static float add_term(bool fused, float sum, float a, float b) { return fused ? fmaf(a, b, sum) : sum + a * b; }

static float forward(bool fused, const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum = add_term(fused, sum, a[i], b[i]);
  return sum;
}

static float backward(bool fused, const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t i = count - 1; i >= 0; i--) sum = add_term(fused, sum, a[i], b[i]);
  return sum;
}

/* The sum of each half, added: halves of halves, down to a pair. */
static float pairwise(bool fused, const float *a, const float *b, int64_t count) {
  if (count <= PAIRWISE_LEAF) return forward(fused, a, b, count);
  const int64_t half = count / 2;
  return pairwise(fused, a, b, half) + pairwise(fused, a + half, b + half, count - half);
}

/* Sixteen running sums in turn, then added in halves. */
static float in_lanes(bool fused, const float *a, const float *b, int64_t count) {
  float sums[LANES] = {0};
  for (int64_t i = 0; i < count; i++) sums[i % LANES] = add_term(fused, sums[i % LANES], a[i], b[i]);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

/* Blocks of 128 terms, each summed from zero and then added. */
static float in_blocks(bool fused, const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i += BLOCK) sum += forward(fused, a + i, b + i, count - i < BLOCK ? count - i : BLOCK);
  return sum;
}

/* Three parts of the columns, as three threads would take them. */
static float in_parts(bool fused, const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t part = 0; part < PARTS; part++) {
    const int64_t begin = count * part / PARTS, end = count * (part + 1) / PARTS;
    sum += forward(fused, a + begin, b + begin, end - begin);
  }
  return sum;
}

float reference_dot(const Summation *how, const float *a, const float *b, int64_t count) {
  switch (how->order) {
  case REFERENCE_ORDER_BACKWARD:
    return backward(how->fused, a, b, count);
  case REFERENCE_ORDER_PAIRWISE:
    return pairwise(how->fused, a, b, count);
  case REFERENCE_ORDER_LANES16:
    return in_lanes(how->fused, a, b, count);
  case REFERENCE_ORDER_BLOCKS128:
    return in_blocks(how->fused, a, b, count);
  case REFERENCE_ORDER_SPLIT3:
    return in_parts(how->fused, a, b, count);
  default:
    return forward(how->fused, a, b, count);
  }
}

/* Up to eight forward sums side by side: each addition waits only for its own row's. Missing rows repeat the last. */
static void forward_together(bool fused, const float *a, const float *b, int64_t stride, int64_t rows, int64_t count,
                             float *out) {
  const float *row[TOGETHER];
  float sums[TOGETHER] = {0};
  for (int64_t r = 0; r < TOGETHER; r++) row[r] = b + (r < rows ? r : rows - 1) * stride;
  for (int64_t i = 0; i < count; i++)
    for (int r = 0; r < TOGETHER; r++) sums[r] = add_term(fused, sums[r], a[i], row[r][i]);
  for (int64_t r = 0; r < TOGETHER && r < rows; r++) out[r] = sums[r];
}

void reference_dots(const Summation *how, const float *a, const float *b, int64_t stride, int64_t rows, int64_t count,
                    float *out) {
  int64_t r = 0;
  for (; how->order == REFERENCE_ORDER_FORWARD && r + 1 < rows; r += TOGETHER)
    forward_together(how->fused, a, b + r * stride, stride, rows - r, count, out + r);
  for (; r < rows; r++) out[r] = reference_dot(how, a, b + r * stride, count);
}
