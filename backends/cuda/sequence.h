/* A sequence: a context in device memory, the memory of a block, and the graphs that were made for it. */
#ifndef DFLASH_CUDA_SEQUENCE_H
#define DFLASH_CUDA_SEQUENCE_H

#include "block.h"

enum {
  CUDA_SETTLE_ROWS = 256, /* rows of a push projected at once; up to this many may wait */
  CUDA_REWIND_ROWS = 256, /* how far a windowed layer can be rewound at least */
  CUDA_GRAPHS = 8,        /* kept */
  CUDA_MOST_ROWS = 4096   /* of a block */
};

/* Positions beyond this are refused: bookkeeping never overflows. */
#define CUDA_POSITION_MAX (INT64_MAX / 4)

/* Held rows of a layer: position p lies in row p - base, for base <= p < first + settled. */
typedef struct CudaHeld {
  CudaBuffer k, v; /* [capacity][kv_heads][head_dim] */
  int64_t capacity, base;
  bool fresh; /* while a call is under way: buffers that are not the sequence's yet */
} CudaHeld;

/* One launch for all blocks of the same sizes. */
typedef struct CudaGraph {
  CUgraphExec exec; /* NULL: none */
  int64_t rows, n_draft, head_width;
  uint32_t flags; /* DFLASH_BLOCK_STAMP */
  CudaSpan *spans;
  uint32_t span_count, stamp_count;
  uint64_t used; /* number of the block that used it last */
} CudaGraph;

/* Taps of rows that are not projected yet. */
typedef struct CudaWaiting {
  CudaPinned host;   /* [CUDA_SETTLE_ROWS][tap_width] */
  CudaBuffer memory; /* the same on the device */
  int64_t sent;      /* first rows that it has there */
  bool sending;      /* a copy may still read pinned memory, this or that of a piece */
  bool written;      /* during a push: its rows are in `host` */
} CudaWaiting;

/* Values of context.* of the last push, or of one piece of it. */
typedef struct CudaPushValues {
  CudaBuffer buffer;
  int64_t rows;
  CudaAddress stages[DFLASH_STAGE_COUNT];
  uint64_t layer_bytes[DFLASH_STAGE_COUNT]; /* 0: one layer's at a time */
} CudaPushValues;

struct DflashSequence {
  DflashModel *model;
  bool capture;

  CudaBuffer memory; /* all of `block` */
  CudaBlock block;
  uint64_t input_bytes; /* from block.inputs to the end of h */
  CudaPinned inputs;    /* the same for the host; then the result and the stamps */
  uint64_t host_result, host_stamps;
  CudaSpan *spans; /* while a graph is made */
  uint32_t most_spans;
  CUevent begin, end; /* recorded by a graph */
  CUevent settle_begin, settle_end;

  /* context: held are positions first <= p < first + len; the first `settled` rows of them are projected, the others
   * wait */
  int64_t first, len, settled;
  CudaHeld *held; /* [layers] */
  CudaWaiting waiting;
  CudaPinned piece_taps;   /* of a piece: its position, then its taps */
  CudaBuffer piece_memory; /* the same on the device, and what the projection needs */
  CudaBlock piece;         /* its parts: inputs, h (the taps), table, words, steps, halves, exponents */
  CudaPushValues piece_values;
  CudaPushValues push_values; /* capture: of the last push */

  CudaGraph graphs[CUDA_GRAPHS];
  CudaGraph *last; /* of the last block; NULL: none yet */
  uint64_t blocks, settle_ns;
  int64_t block_rows, block_draft, block_head; /* of the last block whose values can be read; 0: none */
};

/* Bytes of shared memory that attention takes. */
uint64_t cuda_attend_shared(const DflashGeometry *geometry);

DflashStatus cuda_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                DflashError *error);
void cuda_sequence_close(DflashSequence *s); /* half open: fine */

/* scratch.c: everything that does not depend on the context's length. */
DflashStatus cuda_scratch_open(DflashSequence *s, DflashError *error);
int64_t cuda_stage_width(const DflashGeometry *g, int32_t stage); /* head.logits: the whole vocabulary */
int64_t cuda_stage_layers(const DflashGeometry *g, int32_t stage);
int32_t cuda_stage_rows(int32_t stage); /* DFLASH_ROWS_* */
const char *cuda_stage_name(int32_t stage);
int32_t cuda_stage_input(int32_t stage, int index); /* DFLASH_STAGE_*, a source or NONE */
/* Columns of the widest activation that a block multiplies. */
int64_t cuda_widest_product(const DflashGeometry *g);
/* Words of what a block answers: tokens, candidates, scores, failure. */
int64_t cuda_result_words(int64_t n_draft, int64_t top);
DflashStatus cuda_check_stage(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error);

/* block.c, read.c, poison.c, alone.c: the interface's calls. */
DflashStatus cuda_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error);
/* The tokens of a result (kernels/arguments.h, ScoresArgs); DFLASH_NONFINITE where it has none. */
DflashStatus cuda_give_tokens(const int32_t *result, int64_t n_draft, int64_t top, const DflashTokens *tokens,
                              DflashError *error);
DflashStatus cuda_stage(DflashSequence *s, const DflashStageCall *call, DflashError *error);
DflashStatus cuda_read_stage(DflashSequence *s, int32_t stage, int64_t layer, float *values, uint64_t count,
                             DflashError *error);
DflashStatus cuda_block_time(DflashSequence *s, DflashBlockTime *time, DflashError *error);
DflashStatus cuda_block_spans(DflashSequence *s, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                              DflashError *error);
DflashStatus cuda_poison(DflashSequence *s, uint32_t pattern, DflashError *error);

/* graph.c: the graph for a call's sizes, made where it is not there yet. */
DflashStatus cuda_graph_get(DflashSequence *s, const DflashBlockCall *call, CudaGraph **graph, DflashError *error);
void cuda_graphs_close(DflashSequence *s);

/* context.c: the bookkeeping of the interface's push, truncate, reset, load, span, read_context. */
DflashStatus cuda_push(DflashSequence *s, int64_t pos, const float *taps, int64_t rows, DflashError *error);
DflashStatus cuda_truncate(DflashSequence *s, int64_t pos, DflashError *error);
DflashStatus cuda_reset(DflashSequence *s, DflashError *error);
DflashStatus cuda_load(DflashSequence *s, int64_t first, int64_t len, const float *const *k, const float *const *v,
                       DflashError *error);
DflashStatus cuda_context_span(DflashSequence *s, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                               DflashError *error);
DflashStatus cuda_read_context(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                               DflashError *error);
/* Projects the rows that wait. A failure leaves them waiting. */
DflashStatus cuda_settle(DflashSequence *s, DflashError *error);
void cuda_context_close(DflashSequence *s);

#endif
