/* Every stage once more, in f64 and without any cleverness, with a bound on the error of correct f32 arithmetic. */
#ifndef BLAS_NAIVE_H
#define BLAS_NAIVE_H

#include "blas_fixture.h"

/* The sizes of one stage's run. */
typedef struct NaiveRun {
  const TestModel *model;
  int32_t stage;
  int64_t layer, rows, position, n_draft, head_width, context_first, context_len;
} NaiveRun;

/* Elements that the stage gives. Not for select. */
int64_t naive_count(const NaiveRun *run);

/* value and bound of every element; in as listed in the stage table. */
void naive_stage(const NaiveRun *run, const float *const *in, double *value, double *bound);

/* The stage's inputs, as stage ids. */
const int32_t *naive_inputs(int32_t stage);
const char *naive_name(int32_t stage);
int naive_is_layered(int32_t stage);

/* The tensor of a matrix stage, or NULL. */
const DflashTensor *naive_matrix(const TestModel *model, int32_t stage, int64_t layer);

#endif
