/* What lists of faults share: entries in few lines, and other inputs for a stage. */
#ifndef DFLASH_FAULTY_FAULTS_COMMON_H
#define DFLASH_FAULTY_FAULTS_COMMON_H

#include "backends/faulty/kernels.h"

/* A set of stages: FAULT_AT(MLP_ACT) | FAULT_AT(MLP_DOWN). */
#define FAULT_AT(id) (UINT32_C(1) << DFLASH_STAGE_##id)
static inline bool fault_is_at(const FaultCall *call, uint32_t stages) { return (stages >> call->call.stage & 1) != 0; }

#define FAULT_DEFECT(id_, kind_, stage_, goldens_, origin_, about_, exposed_by_)                      \
  .id = id_, .kind = kind_, .stage = stage_, .goldens = goldens_, .origin = origin_, .about = about_, \
  .exposed_by = exposed_by_

/* The base's stage of another layer, or another stage of the same inputs and sizes. */
DflashStatus fault_base_as(FaultCall *call, int32_t stage, int64_t layer);
/* A value of the block that is being run; NULL outside of a block, or for a layer that is not there. */
const float *fault_block_value(const FaultCall *call, int32_t stage, int64_t layer);
/* The base's stage with a value of the block in place of an input; as it is where there is none. */
DflashStatus fault_base_from(FaultCall *call, int input, int32_t stage, int64_t layer);
/* A copy of an input in that slot of the scratch, which takes the input's place; NULL when memory is out. */
float *fault_copy_input(FaultCall *call, int input, int slot);
/* On every second block of a model, the second first: what a race or a wrong lifetime looks like. */
bool fault_now_and_then(const FaultCall *call);

float fault_round_f16(float value);
float fault_round_bf16(float value);

#endif
