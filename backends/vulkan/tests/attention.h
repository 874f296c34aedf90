/* A block's attention to a context: its data, the kernel that computes it, and the same in f64. */
#ifndef DFLASH_VULKAN_TESTS_ATTENTION_H
#define DFLASH_VULKAN_TESTS_ATTENTION_H

#include "launch.h"

typedef struct AttentionSizes {
  uint32_t rows, kv_heads, rep, head_dim, len, splits;
  uint32_t begin, step; /* row r sees context rows from begin + step r on, before `end` */
  uint32_t end;
  bool loud; /* integer q and k: scores are exact but for their scale, and reach 500 */
} AttentionSizes;

typedef struct Attention {
  AttentionSizes sizes;
  uint32_t heads, parts;
  float scale;
  float *q, *k, *v, *own_k, *own_v;
  uint32_t *visible; /* [1 + rows] */
  float *sums, *mixes, *y;
} Attention;

/* Drawn data. Context rows that no row sees are NaN. */
Attention attention_open(const AttentionSizes *sizes);
void attention_close(Attention *a);
/* Runs the kernels, outputs poisoned with NaN before. */
void attention_run(TestKernels *kernels, Attention *a);
/* The same with constants of the kernel other than those that the backend picks. */
void attention_run_with(TestKernels *kernels, Attention *a, const uint32_t *constants);
void attention_constants(const TestKernels *kernels, const Attention *a, uint32_t *constants);
/* The same in two dispatches: the first `rows` of the context in `splits` of the parts, and what follows; `reversed`:
 * the second one runs first. */
void attention_run_segments(TestKernels *kernels, Attention *a, uint32_t rows, uint32_t splits, bool reversed);

/* Row `row`, head `head` in f64: y[head_dim], and an upper bound of what f32 may be off, by element. */
void attention_exact(const Attention *a, uint32_t row, uint32_t head, double *y, double *bound);
/* The test fails unless every y is within its bound; NaN and infinity must be the same. */
void attention_check(const Attention *a);

#endif
