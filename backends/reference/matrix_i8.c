/* Profile i8: a q4tp matrix with int8 activations. */
#include "reference.h"

#include <math.h>
#include <string.h>

enum { GROUP = 32, GRAIN = 16 };

/* q[i] = round(x[i] * r), r = 127 / absmax, ties to even; the step s = absmax / 127 is returned. Each of the three is
 * rounded to f32. A group below 2^-100 is zero; one that is not finite gives NaN. */
static float quantise_group(const float *x, int8_t *q) {
  float absmax = 0;
  bool finite = true;
  for (int i = 0; i < GROUP; i++) {
    absmax = fmaxf(absmax, fabsf(x[i]));
    finite = finite && isfinite(x[i]);
  }
  memset(q, 0, GROUP);
  if (!finite) return NAN;
  if (absmax < 0x1p-100f) return 0;
  const float r = 127 / absmax;
  for (int i = 0; i < GROUP; i++) q[i] = (int8_t)rintf(x[i] * r);
  return absmax / 127;
}

static int32_t dot_group(const int8_t *a, const int8_t *b) {
  int32_t sum = 0;
  for (int i = 0; i < GROUP; i++) sum += a[i] * b[i];
  return sum;
}

/* sum over groups of dot(q, nibble - 8) * scale * s; a dot is below 2^15, so exact in f32. */
static float sum_groups(const Product *product, int64_t row, const int8_t *weights, const float *scales,
                        float *scaled) {
  const Scratch *scratch = &product->model->scratch;
  const int64_t cols = product->matrix->shape[1], groups = cols / GROUP;
  const int8_t *q = scratch->quantised + row * cols;
  for (int64_t g = 0; g < groups; g++) scaled[g] = (float)dot_group(q + g * GROUP, weights + g * GROUP) * scales[g];
  return reference_dot(&product->model->options.sums, scaled, scratch->inputs + row * groups, groups);
}

static void multiply_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Product *product = context;
  const DflashModel *model = product->model;
  int8_t *weights = model->integers + worker * model->widest;
  float *scales = model->decoded + worker * model->widest, *scaled = scales + product->matrix->shape[1] / GROUP;
  for (int64_t o = begin; o < end; o++) {
    reference_decode_q4tp(product->matrix, o, weights, scales);
    for (int64_t r = 0; r < product->rows; r++)
      product->out[r * product->out_width + o] = sum_groups(product, r, weights, scales, scaled);
  }
}

void reference_matrix_apply_i8(Product *product) {
  const Scratch *scratch = &product->model->scratch;
  const int64_t groups = product->rows * product->matrix->shape[1] / GROUP;
  for (int64_t g = 0; g < groups; g++)
    scratch->inputs[g] = quantise_group(product->x + g * GROUP, scratch->quantised + g * GROUP);
  dflash_pool_run(product->model->pool, product->out_width, GRAIN, multiply_rows, product);
}
