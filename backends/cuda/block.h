/* The contract between whatever computes a block on the device and everything around it: where its inputs lie, where
 * the value of every stage goes, where its answers are read.
 *
 * All addresses are device addresses, fixed for the life of a sequence: a kernel or a graph may hold them. What changes
 * from block to block stands in device memory, at `inputs`, `visible` and `h`; it was written by a copy that a run
 * queues before the first kernel (cuda_run_inputs).
 *
 * Every stage is f32, [rows][width] without gaps (head.logits: [n_draft][head_width], selector.hidden
 * [n_draft][selector_rank]). A capturing sequence has memory for every layer's values, any other one for one layer's,
 * shared by all: cuda_block_stage gives the address in both cases, and a kernel that goes by it is captured without a
 * copy. So the stages of a layer may be overwritten by the next layer, mlp.out included: it is read by the next
 * attn.norm and attn.out, and written after them. */
#ifndef DFLASH_CUDA_BLOCK_H
#define DFLASH_CUDA_BLOCK_H

#include "model.h"

typedef struct CudaBlock {
  CudaAddress inputs;  /* CudaInputs */
  CudaAddress visible; /* CudaVisible of every layer */
  CudaAddress h;       /* [rows][hidden]; the fast path reads 8 or 16 rows, the last ones may be zeros */
  CudaAddress table;   /* rotation of the block's rows [rows][head_dim / 2][2]: cosine, sine */

  bool capture;                             /* every layer's stages have memory of their own */
  CudaAddress stages[DFLASH_STAGE_COUNT];   /* of layer 0; context.* and select: 0 */
  uint64_t layer_bytes[DFLASH_STAGE_COUNT]; /* from a layer's value to the next one's */

  /* attention */
  int32_t parts;           /* of the keys: of the context all but the last, which is the block */
  CudaAddress sums, mixes; /* [parts][rows * heads][2], [parts][rows * heads][head_dim] */

  /* fast path: q, k, v [halves][rows][rows of all]; attention [kv_heads][splits + 1][..]; parts of mlp.down
   * [4][rows][hidden]; sums of squares */
  CudaAddress fast_qkv, fast_kernel, fast_parts, fast_down, fast_sums;

  /* activations as profiles i8 and f16 take them; [rows] of the widest product */
  CudaAddress words, steps, halves, exponents;

  /* the same for tiled products (kernels/tiled/layout.h), and their slots; 0 in a block, which has few rows */
  CudaAddress tiled_parts, tiled_exponents, tiled_sums;

  /* tokens */
  CudaAddress entries[2]; /* of one pass of the choice of candidates, and of the next */
  CudaAddress pairs;      /* [n_draft][top][top], and behind them a word that counts */
  CudaAddress result;     /* kernels/arguments.h, ScoresArgs */

  CudaAddress stamps; /* 64-bit words, in order of the run's spans, and one for the end */
} CudaBlock;

static inline CudaAddress cuda_block_stage(const CudaBlock *block, int32_t stage, int64_t layer) {
  return block->stages[stage] + (uint64_t)layer * block->layer_bytes[stage];
}

/* The values that enter a layer: the block's embeddings, or mlp.out of the layer before. */
static inline CudaAddress cuda_block_residual(const CudaBlock *block, int64_t layer) {
  return layer == 0 ? block->h : cuda_block_stage(block, DFLASH_STAGE_MLP_OUT, layer - 1);
}

static inline CudaAddress cuda_block_visible(const CudaBlock *block, int64_t layer) {
  return block->visible + (uint64_t)layer * sizeof(CudaVisible);
}

typedef struct CudaSpan {
  int32_t stage, layer;
  uint32_t stamp; /* number of that which begins it; it ends where the next one begins */
} CudaSpan;

/* Work that is queued on a model's stream, one kernel after the other, for a block or for rows of a push. Nothing is
 * queued once a call has failed. */
typedef struct CudaRun {
  DflashModel *model;
  const CudaBlock *block;
  int64_t rows, n_draft, head_width;
  DflashError *error;
  DflashStatus status;

  bool stamped;
  CudaSpan *spans; /* room for every stage: what each stamp begins */
  uint32_t span_count;
  uint32_t stamp_count; /* also the number of the end's stamp */
  CudaAddress stamp;    /* for the next kernel; 0: none */

  CudaAddress prepared;             /* the activation that profile i8 or f16 has made something of; 0: none */
  CudaAddress split, split_columns; /* that of tiled products, and the columns it was multiplied with */
} CudaRun;

/* stages.c: the kernels of one stage, from the values that `block` has of the stages before it. A stage of a draft
 * reads rows 1 .. n_draft. */
void cuda_run_stage(CudaRun *run, int32_t stage, int64_t layer);
/* The stage select, with the end's stamp. */
void cuda_run_tokens(CudaRun *run);

/* run.c: single steps of them, for rows that are no block's, too. */
static inline uint32_t cuda_groups(int64_t count, int64_t size) { return (uint32_t)((count + size - 1) / size); }
void cuda_run_launch(CudaRun *run, int kernel, CudaGrid grid, const void *arguments);
void cuda_run_product(CudaRun *run, const CudaMatrix *matrix, CudaAddress x, CudaAddress y, int64_t rows,
                      int64_t out_rows);
/* tiled.c: products of one activation, each with the whole matrix; tiled where cuda_tiled_takes. */
typedef struct CudaProduct {
  const CudaMatrix *matrix;
  CudaAddress scales; /* of CudaTiled or CudaLayer */
  CudaAddress y;
} CudaProduct;
void cuda_run_products(CudaRun *run, const CudaProduct *products, int count, CudaAddress x);
/* cosine and sine of every row's angles, before the first attn.q */
void cuda_run_rotation(CudaRun *run, CudaAddress position, int64_t rows, CudaAddress table);
void cuda_run_norm(CudaRun *run, CudaAddress x, CudaAddress weight, CudaAddress y, int64_t rows);
void cuda_run_heads(CudaRun *run, const HeadsArgs *heads);
/* Of up to CUDA_LAYERS_AT_ONCE layers, which have as many rows. */
void cuda_run_layers_heads(CudaRun *run, const HeadsArgs *heads, int count);
/* The next kernel begins a span of this stage: it takes the stamp, which is 0 for those after it. */
void cuda_run_span(CudaRun *run, int32_t stage, int64_t layer);
CudaAddress cuda_run_stamp(CudaRun *run);

/* block_run.c: everything from the rotation to the tokens: the kernels of one block in order. Here a faster path for
 * some geometries takes the place of the plain kernels; info.c says which path a model has. */
void cuda_run_block(CudaRun *run);

#endif
