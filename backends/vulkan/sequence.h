/* A sequence: a context in device memory, scratch of a block, and the command buffers that were recorded for it. */
#ifndef DFLASH_VULKAN_SEQUENCE_H
#define DFLASH_VULKAN_SEQUENCE_H

#include "model.h"

enum {
  VULKAN_SETTLE_ROWS =
      256, /* rows of a push projected at once; a sequence that does not capture lets up to this many wait */
  VULKAN_REWIND_ROWS = 256, /* how far a windowed layer can be rewound at least */
  VULKAN_PLANS = 8,         /* recorded blocks kept */
  VULKAN_MAX_ROWS = 4096,   /* of a block */
  VULKAN_AT_ONCE = 3        /* products that may run at once: of one x */
};

/* Positions beyond this are refused: bookkeeping never overflows. */
#define VULKAN_POSITION_MAX (INT64_MAX / 4)

/* Held rows of a layer: position p lies in row p - base, for kept <= p < first + settled. */
typedef struct VulkanHeld {
  VulkanBuffer k, v; /* [capacity][kv_heads][head_dim] */
  int64_t capacity, base, kept;
  bool fresh; /* while a call is under way: buffers that are not the sequence's yet */
} VulkanHeld;

/* Where a block's values lie; device memory of the sequence. Rows: geometry.block; draft rows: block - 1. */
typedef struct VulkanScratch {
  VulkanRange h, norm, kernel, conv, q_proj, k_proj, v_proj, q, k, mix, o_proj, gate, up, act, down;
  VulkanRange logits, hidden;           /* [block - 1][vocab], [block - 1][rank] */
  VulkanRange positions, table;         /* [rows], [rows][2][head_dim / 2] */
  VulkanRange visible;                  /* [layers][visible_stride] words: kernel.h, attend */
  VulkanRange anchor;                   /* int32 */
  VulkanRange sums, mixes;              /* [splits + 1][rows * heads] ... */
  VulkanRange words, scales, largest;   /* activations of profiles i8 and f16 */
  VulkanRange fragments[2], factors[2]; /* of products on matrix units (units.h), in up to two forms (fragments.h) */
  VulkanRange found[VULKAN_AT_ONCE];    /* the same, of each of the products of one x */
  VulkanRange top_entries, best;        /* kernel.h, top */
  VulkanRange flags;                    /* zeroed before each block */
  VulkanRange predecessors, successors; /* of codebooks in several parts */
  VulkanRange pairs, result;            /* kernel.h, pairs */
} VulkanScratch;

/* What the host hands to a block, and where it goes. Offsets in `upload` and ranges of the scratch buffer match. */
typedef struct VulkanInput {
  uint64_t h, positions, visible, anchor; /* offsets in upload, in bytes */
  uint64_t visible_stride;                /* bytes from layer to layer */
} VulkanInput;

/* Scratch of a product on matrix units (units.h): prepared words and factors, sums of splits, arrival counters (0 at
 * first); the last two are 0 where columns are not split. */
typedef struct VulkanUnitsBytes {
  uint64_t words, factors, found, arrivals;
} VulkanUnitsBytes;

/* A recorded block. */
typedef struct VulkanBlockPlan {
  VulkanPlan plan;
  int64_t rows, n_draft, head_width;
  uint32_t flags;      /* DFLASH_BLOCK_STAMP */
  bool logits, hidden; /* copied to the host */
  uint64_t generation; /* of the context's buffers when it was recorded */
  uint64_t used;       /* for the choice of the one to drop */
  bool open;
} VulkanBlockPlan;

/* Captured values: [layers][rows][width] of every stage, device memory. */
typedef struct VulkanCapture {
  VulkanBuffer block;                       /* all stages of a block but logits */
  VulkanBuffer push;                        /* stages of the last push, grown by it */
  VulkanRange stages[DFLASH_STAGE_COUNT];   /* of one layer after the other; zeroed: not captured */
  uint64_t layer_bytes[DFLASH_STAGE_COUNT]; /* from layer to layer */
} VulkanCapture;

struct DflashSequence {
  DflashModel *model;
  bool capture;
  uint32_t splits; /* of the context, in attention */

  VulkanBuffer device_scratch, upload, readback;
  uint64_t readback_result, readback_logits, readback_hidden; /* offsets in readback */
  VulkanScratch scratch;
  VulkanInput input;
  VulkanCapture captured;
  VulkanUnitsBytes block_units, settle_units; /* for any product of a block, of a piece */
  VulkanBuffer arrivals;                      /* of products on matrix units: units.h */
  uint64_t arrivals_at[VULKAN_AT_ONCE], arrival_bytes;

  /* context: held are positions first <= p < first + len; the first `settled` rows of them are projected, the others
   * wait in `waiting` [VULKAN_SETTLE_ROWS][tap_width] */
  int64_t first, len, settled;
  VulkanHeld *held; /* [layers] */
  uint64_t generation;
  float *waiting;
  int64_t settle_rows;                        /* of a piece, at most */
  VulkanBuffer settle_upload, settle_scratch; /* of one piece: positions and taps; the stages of context.* */
  int64_t push_rows;                          /* of the last push, for read_stage */

  VulkanBlockPlan plans[VULKAN_PLANS];
  VulkanBlockPlan *last; /* plan of the last block; NULL: none yet */
  uint64_t blocks;
  uint64_t block_ns, settle_ns;                /* of the last block */
  int64_t block_rows, block_draft, block_head; /* sizes of the last block, 0: none */
};

DflashStatus vulkan_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error);
void vulkan_sequence_close(DflashSequence *s); /* NULL or half open: fine */

/* scratch.c: everything that does not depend on the context's length. */
DflashStatus vulkan_scratch_open(DflashSequence *s, DflashError *error);
void vulkan_scratch_close(DflashSequence *s);
int64_t vulkan_stage_width(const DflashGeometry *g, int32_t stage); /* head.logits: the whole vocabulary */
int64_t vulkan_stage_layers(const DflashGeometry *g, int32_t stage);
int32_t vulkan_stage_rows(int32_t stage); /* DFLASH_ROWS_* */
/* Columns of the widest activation that a block multiplies. */
int64_t vulkan_widest_product(const DflashGeometry *g);
/* Words of what pairs answers: tokens, candidates, scores, flags. */
int64_t vulkan_result_words(int64_t n_draft, int64_t top);

/* block.c and read.c: the interface's calls. */
DflashStatus vulkan_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error);
DflashStatus vulkan_read_stage(DflashSequence *s, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error);
DflashStatus vulkan_block_time(DflashSequence *s, DflashBlockTime *time, DflashError *error);
DflashStatus vulkan_block_spans(DflashSequence *s, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error);
DflashStatus vulkan_poison(DflashSequence *s, uint32_t pattern, DflashError *error);
/* block_steps.c: everything that a block does, for the sizes of the plan. */
DflashStatus vulkan_block_steps(DflashSequence *s, const VulkanBlockPlan *plan, VulkanSteps *steps, DflashError *error);

/* context.c: the bookkeeping of the interface's push, truncate, reset, load, span, read_context. */
DflashStatus vulkan_push(DflashSequence *s, int64_t pos, const float *taps, int64_t rows, DflashError *error);
DflashStatus vulkan_truncate(DflashSequence *s, int64_t pos, DflashError *error);
DflashStatus vulkan_reset(DflashSequence *s, DflashError *error);
DflashStatus vulkan_load(DflashSequence *s, int64_t first, int64_t len, const float *const *k, const float *const *v,
                         DflashError *error);
DflashStatus vulkan_span(DflashSequence *s, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error);
DflashStatus vulkan_read_context(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error);
void vulkan_context_close(DflashSequence *s);
/* Projects the rows that wait. A failure leaves them waiting. */
DflashStatus vulkan_settle(DflashSequence *s, DflashError *error);

/* product.c: steps of y[y_first + r] = matrix . x[x_first + r], the first out_rows rows of the matrix, with what is
 * made of x before it (once per x: `prepared` says that it is there already; product.h). */
typedef struct VulkanProduct {
  const VulkanMatrix *matrix;
  VulkanRange x, y;
  int64_t rows, x_first, x_stride, out_rows, y_first, y_stride;
  VulkanRange words, scales, largest; /* for profiles i8 and f16 */
  VulkanRange fragments, factors;     /* on matrix units (units.h); else of no use, and so is what follows */
  VulkanRange found, arrivals;        /* not those of a product that may run at the same time */
  bool apart;                         /* sums of splits are left in found, [rows][splits][out_rows]: y is not written */
  int64_t most_rows;                  /* of any call of this kind: its sums have the same order whatever its rows */
  bool prepared;
  int32_t stage, layer;
} VulkanProduct;
DflashStatus vulkan_steps_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                  DflashError *error);

/* steps.c: a kernel of the model by its number, with constants; the steps of one kernel each. */
DflashStatus vulkan_steps_kernel(DflashModel *model, VulkanSteps *steps, int kernel, const uint32_t *constants,
                                 uint32_t constant_count, VulkanDispatch *dispatch, DflashError *error);

#endif
