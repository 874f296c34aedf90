/* Matrix products: a weight row is decoded once and meets every row of the block. */
#include "reference.h"

#include <math.h>

enum { GRAIN = 16, TOGETHER = 32 };

/* Weight row `o` against every row of x. */
static void multiply_row(const Product *product, const float *weights, int64_t o) {
  const int64_t cols = product->matrix->shape[1];
  float sums[TOGETHER];
  for (int64_t begin = 0; begin < product->rows; begin += TOGETHER) {
    const int64_t rows = product->rows - begin < TOGETHER ? product->rows - begin : TOGETHER;
    reference_dots(&product->model->options.sums, weights, product->x + begin * cols, cols, rows, cols, sums);
    for (int64_t r = 0; r < rows; r++)
      product->out[(begin + r) * product->out_width + o] = ldexpf(sums[r], -product->exponent);
  }
}

static void multiply_rows(void *context, int64_t begin, int64_t end, int worker) {
  const Product *product = context;
  const DflashModel *model = product->model;
  const int64_t cols = product->matrix->shape[1];
  float *weights = model->decoded + worker * model->widest;
  for (int64_t o = begin; o < end; o++) {
    reference_decode_row(product->matrix, o, weights);
    reference_round_value(model, weights, cols);
    reference_round_operand(model, weights, cols);
    multiply_row(product, weights, o);
  }
}

void reference_matrix_apply(Product *product) {
  dflash_pool_run(product->model->pool, product->out_width, GRAIN, multiply_rows, product);
}

static void multiply(DflashModel *model, const DflashTensor *matrix, int64_t out_width, const float *x, int64_t rows,
                     float *out) {
  Product product = {model, matrix, x, 0, rows, out_width, out};
  if (model->profile == DFLASH_PROFILE_I8 && matrix->storage == DFLASH_STORAGE_Q4TP) {
    reference_matrix_apply_i8(&product);
    return;
  }
  product.x = reference_activations(model, x, rows * matrix->shape[1], &product.exponent);
  reference_matrix_apply(&product);
}

void reference_stage_matrix(DflashModel *model, const DflashStageCall *call) {
  const DflashTensor *matrix = reference_stage_weight(model, call->stage, call->layer);
  multiply(model, matrix, matrix->shape[0], call->inputs[0], call->rows, call->output);
}

/* head.logits and selector.hidden: draft row j reads block row j + 1, the head its first head_width rows. */
void reference_stage_draft_matrix(DflashModel *model, const DflashStageCall *call) {
  const DflashTensor *matrix = reference_stage_weight(model, call->stage, 0);
  const int64_t width = call->stage == DFLASH_STAGE_HEAD_LOGITS ? call->head_width : matrix->shape[0];
  multiply(model, matrix, width, call->inputs[0] + model->geometry.hidden, call->n_draft, call->output);
}
