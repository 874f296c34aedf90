/* The reference backend: the block's arithmetic in scalar C, written to be read.
 *
 * Values are f32, sums accumulate in f32, weights stay in the form in which they are stored and are decoded
 * row by row when used. One stage is one function; a block is those functions in data-flow order, and a stage
 * alone is one of them. Fast backends are compared with this one by eye, and with goldens by the harness.
 *
 * The arithmetic profiles enter through the few functions of profile.c and, for i8, another matrix product
 * (matrix_i8.c). The order of a sum, where an option varies it, is the affair of sums.c.
 */
#ifndef DFLASH_REFERENCE_H
#define DFLASH_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"
#include "dflash/backend.h"

/* Positions are exact in f64, and sums of two of them stay far from overflow. */
#define REFERENCE_POSITION_MAX (INT64_C(1) << 53)

/* Rows that a push projects at a time when their values are not kept. */
enum { REFERENCE_PUSH_CHUNK = 32 };

enum {
  REFERENCE_ORDER_FORWARD,
  REFERENCE_ORDER_BACKWARD,
  REFERENCE_ORDER_PAIRWISE,
  REFERENCE_ORDER_LANES16,
  REFERENCE_ORDER_BLOCKS128,
  REFERENCE_ORDER_SPLIT3,
  REFERENCE_ORDER_COUNT
};

/* How an f32 sum is taken. */
typedef struct Summation {
  int order;  /* REFERENCE_ORDER_* */
  bool fused; /* a term's product and sum are rounded once */
} Summation;

typedef struct Options {
  int threads;
  Summation sums;
  bool apart; /* convolution: base and dynamic products apart, the residual first; softmax: online, in splits */
} Options;

/* Values inside a stage; only one stage runs at a time. Sizes are the largest that any run has asked for. */
typedef struct Scratch {
  int64_t input_count, key_count;
  float *inputs;     /* [input_count] a stage's inputs, rounded; i8: a step for each group. Not in profile exact */
  int8_t *quantised; /* [input_count] profile i8 */
  float *k, *v;      /* [key_count * head_dim] keys and values of one kv head */
  float *p;          /* [key_count] scores, then weights of the softmax */
  float *ones;       /* [key_count] */
} Scratch;

struct DflashModel {
  int32_t profile; /* DFLASH_PROFILE_* */
  Options options;
  DflashGeometry geometry;
  DflashWeights weights; /* tensors point into storage */
  DflashLayerWeights *layers;
  unsigned char *storage; /* a copy of every tensor, 64-byte aligned */
  uint64_t storage_bytes;
  float *inv_freq;
  DflashPool *pool; /* NULL: one thread */
  int64_t widest;   /* columns of the widest matrix */
  Scratch scratch;
  float *decoded;      /* scratch [threads, widest]: the weight row in hand */
  int8_t *integers;    /* scratch [threads, widest]: its integers; profile i8 */
  float *taps;         /* scratch [2, 2 * conv_kernel + 1]: coefficients of one convolution, and what they meet */
  float *mix;          /* scratch [head_dim]: the weighted values of a few keys */
  float *gate;         /* scratch [selector_rank]: P[prev] * hp */
  float *scores;       /* scratch [selector_top], where the caller wants no scores */
  int32_t *candidates; /* scratch [selector_top], the same */
  uint32_t *stream;    /* what measure_read and evict_caches read; NULL until then */
  uint64_t stream_bytes;
};

/* Sizes of a run; a count that does not apply is 0. */
typedef struct Sizes {
  int64_t push_rows, rows, n_draft, head_width, context_len;
} Sizes;

/* Memory for stage values: one value a stage, or one a stage and layer. */
typedef struct Values {
  float *data;
  int64_t count; /* floats of data */
  int64_t offset[DFLASH_STAGE_COUNT], layer_stride[DFLASH_STAGE_COUNT];
} Values;

/* Rows of K and V, all layers in one allocation; row i is position first + i. */
typedef struct Context {
  int64_t first, len, capacity;
  float *rows; /* [layers, K and V, capacity, kv_heads * head_dim] */
} Context;

struct DflashSequence {
  DflashModel *model;
  bool capture;
  Context context;
  Values block, push;  /* push: a chunk's values, or with capture those of the whole last push */
  Sizes last;          /* of the last block and push; rows or push_rows 0: none yet */
  DflashTokens tokens; /* the last block's, owned */
  DflashSpan *spans;   /* of the last stamped block, room for every stage */
  uint32_t span_count;
  uint64_t block_ns;
};

/* A row of the stage table. */
typedef struct StageRow {
  const char *name;
  int32_t scope, rows, width;          /* DFLASH_SCOPE_*, DFLASH_ROWS_*, DFLASH_WIDTH_* */
  int32_t inputs[DFLASH_STAGE_INPUTS]; /* DFLASH_STAGE_* */
} StageRow;

/* stage_table.c */
const StageRow *reference_stage_row(int32_t stage); /* NULL when out of range */
int64_t reference_stage_width(const DflashGeometry *geometry, const Sizes *sizes, int32_t stage);
int64_t reference_stage_rows(const Sizes *sizes, int32_t stage);
int64_t reference_stage_layers(const DflashGeometry *geometry, int32_t stage);
/* The first weight that a stage reads: its matrix, gain or base kernel; NULL when it reads none. */
const DflashTensor *reference_stage_weight(const DflashModel *model, int32_t stage, int64_t layer);
DflashStatus reference_stage_check(const DflashModel *model, int32_t stage, int64_t layer, DflashError *error);
Sizes reference_call_sizes(const DflashStageCall *call); /* those that count for its stage */
/* Elements of a stage's input `index`, 0 where it has none; false when they cannot be counted. */
bool reference_stage_input(const DflashGeometry *geometry, const Sizes *sizes, int32_t stage, int index,
                           int64_t *count);

/* values.c */
bool reference_values_open(Values *values, const DflashGeometry *geometry, const Sizes *sizes, bool every_layer);
void reference_values_close(Values *values);
float *reference_values_at(const Values *values, int32_t stage, int64_t layer);

/* check.c: arguments. Texts name the argument, the value found and what is valid. */
typedef struct Range {
  const char *name;
  int64_t value, low, high;
} Range;
DflashStatus reference_check_ranges(const char *call, const Range *ranges, size_t count, DflashError *error);
DflashStatus reference_check_struct(const char *name, const void *pointer, size_t needed, DflashError *error);
DflashStatus reference_check_pointer(const char *name, const void *pointer, DflashError *error);
/* Fills a caller's struct as far as its struct_size reaches; value begins with a struct_size too. */
DflashStatus reference_answer(const char *name, void *answer, const void *value, size_t bytes, DflashError *error);

/* decode.c: the five storages */
uint64_t reference_storage_bytes(int32_t storage, int64_t rows, int64_t cols); /* 0: not possible */
const char *reference_storage_name(int32_t storage);
void reference_decode_row(const DflashTensor *tensor, int64_t row, float *out);
/* A q4tp row in parts: nibble - 8 of each column, the scale of each group of 32. */
void reference_decode_q4tp(const DflashTensor *tensor, int64_t row, int8_t *integers, float *scales);

/* profile.c: nearest, ties to even; what is too large becomes infinite, NaN stays NaN */
float reference_bf16(float x);
float reference_f16(float x);
/* Profile bf16: rounds a stage's value, or a weight, to bf16. */
void reference_round_value(const DflashModel *model, float *values, int64_t count);
/* Profile f16: rounds operands of a product to f16. */
void reference_round_operand(const DflashModel *model, float *values, int64_t count);
/* Profile f16: the same after scaling by 2^k, the largest that leaves absmax * 2^k <= 2^14. k; 0 in other profiles. */
int reference_scale_operand(const DflashModel *model, float *values, int64_t count);
/* x as the profile's products take it: profile f16 a copy in scratch, scaled by 2^*exponent and rounded, else x. */
const float *reference_activations(DflashModel *model, const float *x, int64_t count, int *exponent);
/* The call with the inputs that its stage reads: profile bf16 rounded copies in scratch, else its own. */
DflashStageCall reference_call_rounded(DflashModel *model, const DflashStageCall *call);
const char *reference_profile_text(int32_t profile);

/* sums.c: sum a[i] * b[i] in f32. */
float reference_dot(const Summation *how, const float *a, const float *b, int64_t count);
/* The same with each of `rows` rows of b, `stride` apart: same bits, sooner. */
void reference_dots(const Summation *how, const float *a, const float *b, int64_t stride, int64_t rows, int64_t count,
                    float *out);

/* scratch.c: room for every stage first .. last at these sizes */
DflashStatus reference_scratch_reserve(DflashModel *model, const Sizes *sizes, int32_t first, int32_t last,
                                       DflashError *error);
uint64_t reference_scratch_bytes(const DflashModel *model);
void reference_scratch_close(Scratch *scratch);

/* matrix.c, matrix_i8.c: out[r, o] = sum_i matrix[o, i] * x[r, i] for the matrix's first out_width rows. */
typedef struct Product {
  const DflashModel *model;
  const DflashTensor *matrix;
  const float *x; /* [rows, columns] */
  int exponent;   /* x stands scaled by 2^exponent */
  int64_t rows, out_width;
  float *out; /* [rows, out_width] */
} Product;
void reference_matrix_apply(Product *product);
void reference_matrix_apply_i8(Product *product); /* q4tp; quantises x itself */

/* stages_*.c: one stage each, on the whole value of its inputs; arguments are checked before. */
void reference_stage_matrix(DflashModel *model, const DflashStageCall *call);
void reference_stage_draft_matrix(DflashModel *model, const DflashStageCall *call);
void reference_stage_norm(DflashModel *model, const DflashStageCall *call);
void reference_stage_norm_rotate(DflashModel *model, const DflashStageCall *call);
void reference_stage_conv(DflashModel *model, const DflashStageCall *call);
void reference_stage_conv_residual(DflashModel *model, const DflashStageCall *call);
void reference_stage_attention(DflashModel *model, const DflashStageCall *call);
void reference_stage_activation(DflashModel *model, const DflashStageCall *call);
DflashStatus reference_stage_select(DflashModel *model, const DflashStageCall *call, DflashError *error);

/* stage.c */
DflashStatus reference_stage_run(DflashModel *model, const DflashStageCall *call, DflashError *error);

/* tensors.c: checks the weights against the geometry and copies them into the model. */
bool reference_tensors_any(const DflashWeights *weights, int64_t layers, int32_t storage); /* a matrix of it */
DflashStatus reference_tensors_copy(DflashModel *model, const DflashWeights *weights, DflashError *error);

/* context.c */
DflashStatus reference_context_reserve(DflashSequence *sequence, int64_t rows, DflashError *error);
float *reference_context_k(const DflashSequence *sequence, int64_t layer, int64_t index);
float *reference_context_v(const DflashSequence *sequence, int64_t layer, int64_t index);
void reference_context_forget(Context *context, int64_t pos); /* what a push at pos forgets */

/* options.c */
DflashStatus reference_options_check(const DflashModelDesc *desc, Options *options, DflashError *error);
const char *reference_order_name(int order);

/* clock.c */
uint64_t reference_clock_now(void);        /* ns */
uint64_t reference_clock_resolution(void); /* the smallest step seen, at least 1 */

/* The members of the vtable. */
extern const DflashBackend reference_backend;
DflashStatus reference_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error);
DflashStatus reference_supports(const DflashModelDesc *desc, DflashError *error);
DflashStatus reference_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
void reference_model_close(DflashModel *model);
DflashStatus reference_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error);
DflashStatus reference_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                                  DflashStageInfo *info, DflashError *error);
DflashStatus reference_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                     DflashError *error);
void reference_sequence_close(DflashSequence *sequence);
DflashStatus reference_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error);
DflashStatus reference_truncate(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus reference_reset(DflashSequence *sequence, DflashError *error);
DflashStatus reference_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                            const float *const *v, DflashError *error);
DflashStatus reference_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                            DflashError *error);
DflashStatus reference_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                    float *v, DflashError *error);
DflashStatus reference_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus reference_stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error);
DflashStatus reference_read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                                  DflashError *error);
DflashStatus reference_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);
DflashStatus reference_block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                   DflashError *error);
DflashStatus reference_evict_caches(DflashModel *model, DflashError *error);
DflashStatus reference_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error);
DflashStatus reference_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error);
DflashStatus reference_poison(DflashSequence *sequence, uint32_t pattern, DflashError *error);

#endif
