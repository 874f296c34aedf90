/* Hooks of the faults of the mlp and of the final norm. */
#ifndef DFLASH_FAULTY_FAULTS_MLP_H
#define DFLASH_FAULTY_FAULTS_MLP_H

#include "backends/faulty/faults_common.h"

/* faults_mlp_stages.c. Run another stage or layer, or from another value of the block, where the block is at. */
typedef struct FaultOther {
  int32_t at, stage; /* DFLASH_STAGE_*: in place of `at` runs `stage` */
  bool first, last;  /* of the first or last layer */
} FaultOther;
DflashStatus fault_other_stage(FaultCall *call);

typedef struct FaultOtherInput {
  uint32_t at;
  int input;
  int32_t stage;     /* DFLASH_STAGE_* */
  int64_t layer_add; /* to the call's layer */
  bool before_last;  /* of the layer before the last; at stages that have no layer */
} FaultOtherInput;
DflashStatus fault_other_input(FaultCall *call);

DflashStatus fault_mlp_swapped(FaultCall *call);       /* gate by up's matrix, up by gate's */
DflashStatus fault_mlp_half_down(FaultCall *call);     /* last layer: the first half of the columns */
DflashStatus fault_mlp_tail_down(FaultCall *call);     /* columns of a last, partial tile of 64 */
DflashStatus fault_mlp_scale_race(FaultCall *call);    /* now and then a group of columns by the next one's scale */
DflashStatus fault_mlp_scratch_grown(FaultCall *call); /* up is written where mlp.act does not look */
DflashStatus fault_mlp_index(FaultCall *call);         /* row offsets of the fused gate and up in 11 bits */
DflashStatus fault_mlp_act(FaultCall *call);           /* knobs: FaultAct */
DflashStatus fault_final_skipped(FaultCall *call);
DflashStatus fault_final_twice(FaultCall *call);
DflashStatus fault_final_stale(FaultCall *call); /* rows of the block before, of the model */

/* faults_mlp_weights.c */
DflashStatus fault_mlp_gain_repeated(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                     DflashTensor *tensor, DflashError *error); /* the last gain is the one before it */
DflashStatus fault_mlp_gain_half(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                 DflashTensor *tensor, DflashError *error); /* half of them, the last repeated */
DflashStatus fault_mlp_gate_bound(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                  DflashTensor *tensor, DflashError *error); /* rows past a limit read as zero */

/* faults_mlp_act.c: for FaultAct */
float fault_act_swapped(float gate, float up);
float fault_act_gelu(float gate, float up);
float fault_act_gelu_tanh(float gate, float up);
float fault_act_quick_gelu(float gate, float up);
float fault_act_relu(float gate, float up);
float fault_act_sigmoid(float gate, float up);
float fault_act_hard(float gate, float up);
float fault_act_alone(float gate, float up);
float fault_act_overflow(float gate, float up);
float fault_act_exp_f16(float gate, float up);
float fault_act_exp_fast(float gate, float up);
float fault_act_clamped(float gate, float up);
float fault_act_bf16(float gate, float up);

#endif
