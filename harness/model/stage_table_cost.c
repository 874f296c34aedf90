/* Bytes and operations of a stage. Counts a stage's value:
 *   matrix      2 an element and column
 *   norm        4 an element: square, add, times the root's reciprocal, times the weight
 *   head norm   the same, and 3 for the rotation on a layer that rotates
 *   convolution 3 an element and tap that exists: base + dynamic, multiply, add; 1 more for the residual stream
 *   attention   4 a head, channel and visible key: score and mix; the softmax is left out
 *   act         5 an element: negate, exp, add, divide, times up
 *   select      1 a logit for the candidates; rank for P * hp and 2 * rank + 1 a candidate
 * A sum that would pass 2^63 stays at 2^63 - 1. */
#include "base/memory.h"
#include "model/stage_table_work.h"

static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return dflash_mul_i64(a, b, &product) ? product : INT64_MAX;
}

static int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return dflash_add_i64(a, b, &sum) ? sum : INT64_MAX;
}

/* Context rows that row `row` of the block sees when the anchor follows the context directly. */
static int64_t visible(const DflashGeometry *geometry, const DflashRunSizes *sizes, int64_t layer, int64_t row) {
  int64_t window = dflash_geometry_window(geometry, layer), len = sizes->context_len;
  if (window == 0) return len;
  int64_t seen = window - 1 - row;
  if (seen < 0) return 0;
  return seen < len ? seen : len;
}

/* Rows of an input that the stage reads. Row 0 sees every context row that some row sees. */
static int64_t rows_read(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage, int64_t layer,
                         int32_t input) {
  if (input == DFLASH_STAGE_HELD_K || input == DFLASH_STAGE_HELD_V) return visible(geometry, sizes, layer, 0);
  if (dflash_stage_row(stage)->rows == DFLASH_ROWS_DRAFT) return sizes->n_draft;
  return dflash_stage_rows(geometry, sizes, input);
}

/* Values written: for select the two token lists, the candidates and their scores. */
static int64_t values_written(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage) {
  int64_t width = dflash_stage_width(geometry, sizes, stage);
  if (stage == DFLASH_STAGE_SELECT) width = plus(2, times(2, width));
  return times(dflash_stage_rows(geometry, sizes, stage), width);
}

int64_t dflash_stage_activation_bytes(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage,
                                      int64_t layer) {
  const DflashStageRow *row = dflash_stage_row(stage);
  int64_t values = values_written(geometry, sizes, stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t rows = rows_read(geometry, sizes, stage, layer, row->inputs[i]);
    values = plus(values, times(rows, dflash_stage_width(geometry, sizes, row->inputs[i])));
  }
  return times(values, (int64_t)sizeof(float));
}

int64_t dflash_stage_weight_elements(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage) {
  int64_t width = dflash_stage_width(geometry, sizes, stage), rows = dflash_stage_rows(geometry, sizes, stage);
  if (rows == 0) return 0;
  switch (dflash_stage_work(stage)->work) {
  case DFLASH_WORK_MATRIX:
    return times(width, dflash_stage_width(geometry, sizes, dflash_stage_row(stage)->inputs[0]));
  case DFLASH_WORK_NORM:
    return width;
  case DFLASH_WORK_HEAD_NORM:
    return geometry->head_dim;
  case DFLASH_WORK_CONV_IN:
  case DFLASH_WORK_CONV_OUT:
    return times(geometry->conv_kernel, width);
  case DFLASH_WORK_SELECT:
    return times(times(rows, plus(width, 1)), geometry->selector_rank);
  default:
    return 0;
  }
}

/* Taps that exist, over all rows: row r has min(conv_kernel, r + 1). */
static double tap_rows(const DflashGeometry *geometry, int64_t rows) {
  double kernel = (double)geometry->conv_kernel, count = (double)rows;
  if (rows <= geometry->conv_kernel) return count * (count + 1) / 2;
  return kernel * (kernel + 1) / 2 + (count - kernel) * kernel;
}

static double attention_operations(const DflashGeometry *geometry, const DflashRunSizes *sizes, int64_t layer) {
  double keys = 0;
  for (int64_t row = 0; row < sizes->rows; row++)
    keys += (double)visible(geometry, sizes, layer, row) + (double)sizes->rows;
  return 4 * keys * (double)geometry->heads * (double)geometry->head_dim;
}

static double select_operations(const DflashGeometry *geometry, const DflashRunSizes *sizes) {
  double rank = (double)geometry->selector_rank, top = (double)geometry->selector_top;
  return (double)sizes->n_draft * ((double)sizes->head_width + rank + top * (2 * rank + 1));
}

double dflash_stage_operations(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage,
                               int64_t layer) {
  double width = (double)dflash_stage_width(geometry, sizes, stage);
  int64_t rows = dflash_stage_rows(geometry, sizes, stage);
  double elements = (double)rows * width;
  switch (dflash_stage_work(stage)->work) {
  case DFLASH_WORK_MATRIX:
    return 2 * elements * (double)dflash_stage_width(geometry, sizes, dflash_stage_row(stage)->inputs[0]);
  case DFLASH_WORK_NORM:
    return 4 * elements;
  case DFLASH_WORK_HEAD_NORM:
    return (dflash_geometry_rotary(geometry, layer) ? 7 : 4) * elements;
  case DFLASH_WORK_CONV_IN:
    return 3 * tap_rows(geometry, rows) * width;
  case DFLASH_WORK_CONV_OUT:
    return 3 * tap_rows(geometry, rows) * width + elements;
  case DFLASH_WORK_ATTENTION:
    return attention_operations(geometry, sizes, layer);
  case DFLASH_WORK_ACT:
    return 5 * elements;
  default:
    return select_operations(geometry, sizes);
  }
}
