/* One query head of one row: what it sees, its softmax, and the scale of its output. */
#ifndef DFLASH_GOLDEN_ORACLE_ATTENTION_H
#define DFLASH_GOLDEN_ORACLE_ATTENTION_H

#include "golden/oracle.h"
#include "oracle_kernel.h"
#include "oracle_scale.h"

typedef struct DflashHead {
  int64_t keys, dim;
  double scale;                               /* head_dim^-0.5 */
  const float *q, *q_sigma;                   /* [dim]; a sigma of NULL is exact */
  const float **k, **v, **k_sigma, **v_sigma; /* [keys] rows of dim */
  double *score, *p;                          /* [keys] */
  int64_t context;                            /* so many keys are of the context; the others are the block's rows */
  const double *likeness;                     /* [rows] of the block's v; NULL: its rows have no errors */
  double *mix;                                /* [dim] */
  bool codes;                                 /* profile i8: scores may be off by much */
  const struct DflashHalf *half;              /* in profiles of 16 bits, else NULL */
} DflashHead;

enum { DFLASH_HEAD_CHANNELS = 15 };

/* Working memory of the scale, one a worker. */
typedef struct DflashHeadScale {
  DflashTiles tiles;
  double *own, *inherited;             /* [dim], variances */
  double *from_values;                 /* [dim], the part of inherited that V brings */
  double *score_own, *score_inherited; /* [keys], variances of a score (own: in roundings) */
  double *channel;                     /* [DFLASH_HEAD_CHANNELS * dim] sums over keys */
  double *left, *right;                /* [padded dim * DFLASH_PANEL] weighted keys, centred values, by channel */
  double *covariance;                  /* [padded dim * padded dim] of k and v under p */
  double query_stretch;                /* of the queries' deviation, 1 to first order */
  double total, concentration;         /* variance of all channels; squares of what single sources bring to it */
} DflashHeadScale;

bool dflash_head_scale_open(DflashHeadScale *scale, int64_t dim, int64_t keys);
void dflash_head_scale_close(DflashHeadScale *scale);
void dflash_head_scale_run(DflashHeadScale *scale, const DflashHead *head);

#endif
