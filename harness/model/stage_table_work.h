/* What a stage does and the first weight it reads. Private to this module. */
#ifndef DFLASH_MODEL_STAGE_TABLE_WORK_H
#define DFLASH_MODEL_STAGE_TABLE_WORK_H

#include <stddef.h>

#include "model/stage_table.h"
#include "model/weights.h"

enum {
  DFLASH_WORK_MATRIX,    /* a product with a weight matrix */
  DFLASH_WORK_NORM,      /* rms over the row */
  DFLASH_WORK_HEAD_NORM, /* rms over each head, then rotation */
  DFLASH_WORK_CONV_IN,   /* convolution, side 0 */
  DFLASH_WORK_CONV_OUT,  /* convolution, side 1, added to the residual stream */
  DFLASH_WORK_ATTENTION,
  DFLASH_WORK_ACT,
  DFLASH_WORK_SELECT
};

enum { DFLASH_WEIGHT_NONE, DFLASH_WEIGHT_MODEL, DFLASH_WEIGHT_LAYER };

typedef struct DflashStageWork {
  int32_t work;  /* DFLASH_WORK_* */
  int32_t owner; /* DFLASH_WEIGHT_*: which struct `offset` points into */
  size_t offset;
} DflashStageWork;

const DflashStageWork *dflash_stage_work(int32_t stage); /* NULL when out of range */

#endif
