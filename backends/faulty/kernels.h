/* Kernels of the faulty backend: right, in f64 where it costs nothing, unless a knob is turned. All take the call of a
 * stage, read the kept weights (Fault.keeps must name them) and write its output. Knobs of value 0 mean "right".
 */
#ifndef DFLASH_FAULTY_KERNELS_H
#define DFLASH_FAULTY_KERNELS_H

#include "backends/faulty/faulty.h"

/* Orders of f32 summation. */
enum {
  FAULT_ORDER_FORWARD,
  FAULT_ORDER_BACKWARD,
  FAULT_ORDER_PAIRWISE,
  FAULT_ORDER_LANES,   /* 16 running sums, added in halves */
  FAULT_ORDER_BLOCKED, /* blocks of 128, each in order, then added in order */
  FAULT_ORDER_SPLIT,   /* the columns cut into 3 parts, as over threads */
  FAULT_ORDER_F64,     /* no f32 rounding but the last */
  FAULT_ORDER_COUNT
};
/* sum a[i] * b[i] in f32 in that order; fused: one rounding a term. */
float fault_sum(const float *a, const float *b, int64_t count, int order, bool fused);

/* kernel_matrix.c: matrix stages (context.fc, projections, kernels, gate, up, down, head, selector.hidden).
 * Kernels use scratch slots 0 to 3; 4 to 7 are free for hooks. */

/* How profile I8 takes activations, per row and group of 32 columns: s = absmax / 127, q = round(x * (127 / absmax)).
 */
enum { FAULT_ROUND_EVEN, FAULT_ROUND_AWAY, FAULT_ROUND_UP, FAULT_ROUND_ZERO };
typedef struct FaultInt8 {
  int rounding;
  float levels;         /* when not 0: in place of 127 */
  bool wrap;            /* a code past int8 loses its upper bits, in place of being held at +-127 */
  bool no_floor;        /* a group below 2^-100 is divided like any other */
  bool whole_row;       /* one absmax a row */
  int64_t absmax_group; /* added to the group whose absmax is taken; past the last the first */
  int64_t scale_group;  /* the same for the group whose s multiplies the sum */
  int64_t rung_group;   /* the same for the group whose weight scale multiplies it */
  bool scale_f16;       /* s is kept in f16 */
  bool int16_sum;       /* codes times 16 (a nibble left in its byte's upper half) are summed in 16 bits */
  bool sum_unscaled;    /* offset 8 taken off afterwards: 8 * sum(q) * weight scale, without s */
  bool sum_f16;         /* the same with s, the sum s * sum(q) kept in f16 */
} FaultInt8;

typedef struct FaultMatrix {
  int order;
  bool fused;
  int32_t profile; /* how operands are rounded: DFLASH_PROFILE_* */
  FaultInt8 int8;  /* of profile I8 */
  /* Each may be NULL. Called for every row of the matrix, decoded to f32 (not for q4tp in profile I8), and for every
   * row of the input, a copy; before operands are rounded. */
  void (*weights)(const FaultCall *call, int64_t row, float *w, int64_t count);
  void (*input)(const FaultCall *call, int64_t row, float *x, int64_t count);
  /* In place of the sum. */
  float (*sum)(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
} FaultMatrix;
DflashStatus fault_kernel_matrix(FaultCall *call, const FaultMatrix *knobs);

/* kernel_norm.c: context.norm, attn.norm, mlp.norm, final.norm; and context.k, attn.q, attn.k with rotation */
typedef struct FaultNorm {
  int order;
  bool fused;
  bool no_eps, eps_outside /* of the root */, eps_on_sum /* added before the mean */;
  double eps; /* in place of the geometry's, when not 0 */
  bool no_gain, no_mean /* the sum for the mean */, centred /* the mean subtracted, a layer norm */;
  bool no_norm; /* gain only */
  bool twice;
  bool whole_row;     /* head norms: over the whole row in place of a head */
  bool half_sum;      /* sum of squares in f16 */
  int64_t lanes;      /* when not 0: only that many partial sums of 64 are added up */
  int64_t skip_tail;  /* elements at the end of the axis that the sum leaves out */
  int64_t pad;        /* when not 0: the mean divides by the width rounded up to a multiple of it */
  bool root_estimate; /* 1 / root to 12 bits, as an estimating instruction gives it */
  float (*gain)(const FaultCall *call, const float *gain, int64_t index, int64_t count); /* NULL: gain[index] */
  /* rotation, of head norms */
  bool no_rotate, rotate_always /* no_rope layers too */, interleaved, backwards /* the other sign */;
  bool skip_norm_heads; /* heads whose index % 8 is in the last partial group of 8: neither normed nor rotated. Query
                           and key heads of a block count together, queries first; context.k is right */
  int64_t position_add;
  bool position_first; /* all rows have row 0's position */
  bool position_bf16, position_f16, position_f32_steps /* position and row added in f32 */, angle_bf16;
  bool angle_f64;      /* the angle is not rounded to f32 */
  bool frequency_f32;  /* theta to a power in f32 */
  int64_t rotate_dims; /* when not 0: only the first so many dimensions are rotated */
  bool rotate_before_norm;
  float (*turn)(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle); /* another angle */
} FaultNorm;
DflashStatus fault_kernel_norm(FaultCall *call, const FaultNorm *knobs);

/* kernel_conv.c: attn.conv_in, mlp.conv_in, attn.out, mlp.out */
typedef struct FaultConv {
  bool taps_backwards /* summed last tap first: lawful */, apart /* base and dynamic products apart: lawful */;
  bool residual_first /* lawful */, fused;
  /* Each may be NULL (right): the coefficient of the base and of the dynamic kernel, the source of a tap's input
   * (NULL: zero) and the residual. side, tap and the channel's group are the right ones. */
  float (*base)(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap, int64_t channel);
  float (*dynamic)(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                   int64_t channel);
  const float *(*source)(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel);
  float (*residual)(const FaultCall *call, const float *h, int64_t row, int64_t channel);
  int64_t taps;         /* when not 0: so many, where conv_kernel is more */
  bool residual_inside; /* conv(residual + y) */
  bool residual_twice, no_residual;
} FaultConv;
DflashStatus fault_kernel_conv(FaultCall *call, const FaultConv *knobs);

/* kernel_attention.c: attn.mix */
typedef struct FaultAttention {
  int order;
  bool fused;
  int64_t splits; /* when above 1: keys in so many parts, merged: lawful; some are empty when keys are few */
  bool online;    /* online softmax, a key a step: lawful */
  bool exp2;      /* exponential to base 2: lawful */
  /* Each may be NULL (right). Keys of the context are numbered by position, those of the block by row. */
  bool (*sees)(const FaultCall *call, int64_t row, int64_t position); /* of context keys that are held */
  bool (*sees_block)(const FaultCall *call, int64_t row, int64_t key);
  int64_t (*kv_head)(const FaultCall *call, int64_t head);
  const float *(*key)(const FaultCall *call, int64_t kv_head, int64_t position, const float *k); /* context */
  const float *(*value)(const FaultCall *call, int64_t kv_head, int64_t position, const float *v);
  double (*scale)(const FaultCall *call);
  /* The score as it is before the maximum is taken; key is a position here, of the block's keys too. */
  double (*score)(const FaultCall *call, int64_t row, int64_t head, int64_t key, double score);
  /* What a key weighs in both sums; index counts the keys that the row sees. */
  float (*weight)(const FaultCall *call, int64_t index, int64_t count, float weight);
  bool no_max, no_division, f16_exp /* of an f16 argument, rounded to f16 */;
  bool bf16_weights;      /* rounded to bf16 where values are summed, not in the denominator */
  bool merge_unscaled;    /* parts are added as if they had one maximum */
  bool merge_empty;       /* a part without keys is merged like any other */
  int64_t slots;          /* when not 0: so many states of 16 keys, of which only those that have keys are written, but
                             all are merged; more keys than that are lost */
  bool null_key;          /* a key of score 0 and value 0 beside the others */
  double denominator_add; /* added to the sum of exponentials, of which the largest is 1 */
} FaultAttention;
DflashStatus fault_kernel_attention(FaultCall *call, const FaultAttention *knobs);
/* The right answer: does a row see a context key that is held? */
bool fault_attention_sees(const FaultCall *call, int64_t row, int64_t position);

/* kernel_act.c: mlp.act */
typedef struct FaultAct {
  float (*act)(float gate, float up); /* NULL: gate * sigmoid(gate) * up */
} FaultAct;
DflashStatus fault_kernel_act(FaultCall *call, const FaultAct *knobs);

/* kernel_select.c: select. Takes the scratch's slots 4 to 7. */
typedef struct FaultSelect {
  int order;
  bool fused;
  /* Each may be NULL (right). */
  bool (*before)(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b); /* a stands first */
  /* After a row's candidates are in order, before they are scored; all rows' are given, and the row's may be changed,
   * to ids below head_width. */
  void (*listed)(FaultCall *call, int64_t row, int32_t *candidates);
  int32_t (*previous)(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
  float (*term)(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
  float (*logit)(const FaultCall *call, int64_t row, int32_t id, float logit);             /* as ranked and as scored */
  int64_t (*best)(const FaultCall *call, int64_t row, const float *scores, int64_t count); /* place in the list */
  int64_t top;    /* when not 0: the choice is among so many candidates */
  int64_t rank;   /* when not 0: so much of the rank */
  int64_t width;  /* when not 0: only so many logits are looked at, at least selector_top */
  bool last_best; /* equal scores go to the later candidate */
  bool no_logit;  /* scores are the selector's term alone */
} FaultSelect;
DflashStatus fault_kernel_select(FaultCall *call, const FaultSelect *knobs);

#endif
