/* The faulty backend: a correct backend, the base, with one thing wrong.
 *
 * It runs a block stage by stage: every stage is a call of the base's stage(), the context is kept here. A defect
 * (Fault) is a few hooks: it may change the weights or the geometry that the base is opened with, take the place of a
 * stage, or of a member of the vtable. Kernels of its own (kernels.h), right unless a knob is turned, serve where
 * changing inputs and outputs is not enough. Without hooks everything is right: that is checked too.
 */
#ifndef DFLASH_FAULTY_H
#define DFLASH_FAULTY_H

#include <stdbool.h>
#include <stddef.h>

#include "dflash/backend.h"
#include "dflash/catalogue.h"

typedef struct Fault Fault;

/* Values of all stages of one block, every layer's kept; and of the last push. */
typedef struct FaultValues {
  float *data;
  int64_t count;                        /* floats of data */
  int64_t offset[DFLASH_STAGE_COUNT];   /* of layer 0; -1: no such value */
  int64_t elements[DFLASH_STAGE_COUNT]; /* of one layer; 0: the block or push had none */
} FaultValues;

/* Rows of K and V. Row i is position first + i. */
typedef struct FaultContext {
  int64_t first, len, capacity;
  float *rows; /* [layers, K and V, capacity, kv_heads * head_dim]; rows past len are spare */
} FaultContext;

struct DflashModel {
  const DflashBackend *base;
  DflashModel *inner;      /* the base's */
  DflashSequence *worker;  /* the base's, on which stages are run */
  DflashGeometry geometry; /* as asked for; its lists are owned */
  DflashWeights kept;      /* copies of the tensors that the fault keeps; the others have data NULL. inv_freq always */
  DflashLayerWeights *kept_layers;
  int32_t profile;
  const Fault *fault; /* never NULL */
  bool expose_end;
  int32_t slow_stage; /* takes slow_by times as long; DFLASH_STAGE_NONE: none */
  double slow_by;
  int64_t blocks;       /* blocks begun on this model */
  DflashSequence *last; /* the sequence that ran the last block; NULL when it was closed */
  struct FaultScratch *scratch;
  void *fault_data; /* the fault's own; free() with the model */
  char path[64];    /* what runs on what, for model_info: "reference, conv-taps-reversed" */
};

struct DflashSequence {
  DflashModel *model;
  bool capture;
  FaultContext context;
  FaultValues block, push; /* of the last block and push */
  FaultValues previous;    /* of the block before the last */
  struct {
    int64_t push_rows, rows, n_draft, head_width;
  } last, before;
  int64_t blocks, pushes; /* begun on this sequence */
  uint64_t block_ns;
  DflashSpan *spans;
  uint32_t span_count;
  void *fault_data;    /* the fault's own; free() with the sequence */
  DflashTokens tokens; /* of the last block, with scores; owned, room for the largest block */
};

/* One stage to be computed: from stage(), from a push or from a block. */
typedef struct FaultCall {
  DflashModel *model;
  DflashSequence *sequence;
  DflashStageCall call; /* a copy: a fault may change it. Inputs belong to others and are not written */
  bool in_block;        /* false when it came from stage() */
  DflashError *error;
} FaultCall;

struct Fault {
  DflashDefect defect; /* struct_size is filled in by the catalogue */
  const void *knobs;   /* what a shared hook needs to know */
  const char *keeps;   /* patterns of tensor names of which copies are kept ("*", "layers.*.q_proj.weight,fc.weight");
                          NULL: none */

  /* Each may be NULL. Before the base is opened: */
  void (*geometry)(const Fault *fault, DflashGeometry *geometry); /* the base's copy; lists may be changed in place */
  /* Called for every tensor ("layers.0.self_attn.q_proj.weight", "lm_head.weight" for the head). To change it, put a
   * changed copy made with fault_alter() in its place. */
  DflashStatus (*weight)(const Fault *fault, const DflashGeometry *geometry, const char *name, DflashTensor *tensor,
                         DflashError *error);
  void (*inv_freq)(const Fault *fault, const DflashGeometry *geometry, float *inv_freq); /* a copy */

  /* In place of a stage. fault_base() computes it the right way. */
  DflashStatus (*stage)(FaultCall *call);

  /* In place of members of the vtable; the fault_* functions below do them the right way. */
  DflashStatus (*sequence_open)(DflashSequence *sequence, const DflashSequenceDesc *desc); /* after it was opened */
  DflashStatus (*push)(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error);
  DflashStatus (*truncate)(DflashSequence *sequence, int64_t pos, DflashError *error);
  DflashStatus (*reset)(DflashSequence *sequence, DflashError *error);
  DflashStatus (*load)(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                       const float *const *v, DflashError *error);
  DflashStatus (*span)(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                       DflashError *error);
  DflashStatus (*read_context)(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                               DflashError *error);
  DflashStatus (*block)(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
  DflashStatus (*read_stage)(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                             DflashError *error);
  DflashStatus (*block_time)(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);
  DflashStatus (*block_spans)(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                              DflashError *error);
  DflashStatus (*model_info)(const DflashModel *model, DflashModelInfo *info, DflashError *error);
  DflashStatus (*stage_info)(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                             DflashStageInfo *info, DflashError *error);
  /* What a layer's attention is given as the context, just before attn.mix runs: first, len and the rows of K and V,
   * which point into the context (NULL without rows). A fault may change the numbers or put other rows there. */
  DflashStatus (*visible)(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                          int64_t *len, const float **k, const float **v, DflashError *error);
};

/* Lists of faults, one a file, each ends with an entry whose defect.id is NULL. */
extern const Fault faults_lawful[], faults_matrix[], faults_storage[], faults_norm[], faults_rotate[], faults_context[],
    faults_attention[], faults_conv[], faults_mlp[], faults_head[], faults_select[], faults_memory[], faults_time[];

/* entry.c */
const Fault *fault_find(const char *id); /* NULL when unknown; "" is the one without a defect */

/* stage.c */
DflashStatus fault_base(FaultCall *call);      /* the base's stage(), by the call's own numbers */
DflashStatus fault_stage_run(FaultCall *call); /* the fault's, else the base's */
int64_t fault_rows(const FaultCall *call);     /* rows and width of the stage's own value */
int64_t fault_width(const FaultCall *call);
int64_t fault_input_rows(const FaultCall *call, int input); /* of an input */
int64_t fault_input_width(const FaultCall *call, int input);
/* Scratch of the model, zeroed when new, kept between calls; slots 0 to 7. NULL when memory is out (error is set). */
float *fault_scratch(FaultCall *call, int slot, int64_t count);

/* weights.c */
/* A changed copy of a tensor: data of `bytes` bytes, zeroed, storage as given, shape as before; lives until the base is
 * open. NULL when memory is out (error is set). Once a tensor: alter_f32 and alter exclude each other. */
void *fault_alter(DflashTensor *tensor, int32_t storage, uint64_t bytes, DflashError *error);
/* The tensor as f32 values (exact values rounded once) in a changed copy of storage F32. */
float *fault_alter_f32(DflashTensor *tensor, DflashError *error);
/* The first weight that a stage reads, of the kept copies: its matrix, gain, base kernel; NULL when not kept. */
const DflashTensor *fault_weight(const DflashModel *model, int32_t stage, int64_t layer);
/* One row of a matrix (or a whole vector, row 0) as f32. */
void fault_decode_row(const DflashTensor *tensor, int64_t row, float *out);

/* context.c: the right way */
DflashStatus fault_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error);
DflashStatus fault_truncate(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_reset(DflashSequence *sequence, DflashError *error);
DflashStatus fault_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                        const float *const *v, DflashError *error);
DflashStatus fault_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                        DflashError *error);
DflashStatus fault_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                DflashError *error);
/* Row i of a layer; i below capacity. Reserving grows by doubling from 16 rows and keeps what is there. */
float *fault_context_k(const DflashSequence *sequence, int64_t layer, int64_t row);
float *fault_context_v(const DflashSequence *sequence, int64_t layer, int64_t row);
DflashStatus fault_context_reserve(DflashSequence *sequence, int64_t rows, DflashError *error);

/* block.c: the right way */
DflashStatus fault_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                              DflashError *error);
DflashStatus fault_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);
DflashStatus fault_block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                               DflashError *error);
/* Values of this block (stages computed so far) and of the block before; NULL when there are none. */
float *fault_value(const FaultValues *values, int32_t stage, int64_t layer);

/* info.c: the right way */
DflashStatus fault_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error);
DflashStatus fault_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                              DflashStageInfo *info, DflashError *error);

#endif
