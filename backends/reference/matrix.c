/* Matrix products: a weight row is decoded once and meets every row of the block. */
#include "reference.h"

enum { LANES = 8, GRAIN = 16 };

/* Eight partial sums, so that one addition need not wait for the one before. */
float reference_dot(const float *a, const float *b, int64_t count) {
  float sum[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int lane = 0; lane < LANES; lane++) sum[lane] += a[i + lane] * b[i + lane];
  for (int lane = 0; i < count; i++, lane++) sum[lane] += a[i] * b[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

typedef struct Product {
  const DflashModel *model;
  const DflashTensor *matrix;
  const float *x;
  int64_t rows, out_width;
  float *out;
} Product;

static void multiply_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Product *product = context;
  const int64_t cols = product->matrix->shape[1];
  float *weights = product->model->decoded + worker * product->model->widest;
  for (int64_t o = begin; o < end; o++) {
    reference_decode_row(product->matrix, o, weights);
    for (int64_t r = 0; r < product->rows; r++)
      product->out[r * product->out_width + o] = reference_dot(weights, product->x + r * cols, cols);
  }
}

void reference_matrix_apply(DflashModel *model, const DflashTensor *matrix, int64_t out_width, const float *x,
                            int64_t rows, float *out) {
  Product product = {model, matrix, x, rows, out_width, out};
  dflash_pool_run(model->pool, out_width, GRAIN, multiply_rows, &product);
}

void reference_stage_matrix(DflashModel *model, const DflashStageCall *call) {
  const DflashTensor *matrix = reference_stage_weight(model, call->stage, call->layer);
  reference_matrix_apply(model, matrix, matrix->shape[0], call->inputs[0], call->rows, call->output);
}

/* head.logits and selector.hidden: draft row j reads block row j + 1, the head its first head_width rows. */
void reference_stage_draft_matrix(DflashModel *model, const DflashStageCall *call) {
  const DflashTensor *matrix = reference_stage_weight(model, call->stage, 0);
  const int64_t width = call->stage == DFLASH_STAGE_HEAD_LOGITS ? call->head_width : matrix->shape[0];
  const float *x = call->inputs[0] + model->geometry.hidden;
  reference_matrix_apply(model, matrix, width, x, call->n_draft, call->output);
}
