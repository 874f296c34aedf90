/* silu(gate) * up */
#include <math.h>

#include "backends/faulty/kernels.h"

static float right_act(float gate, float up) { return (float)(gate / (1 + exp(-(double)gate)) * up); }

DflashStatus fault_kernel_act(FaultCall *call, const FaultAct *knobs) {
  const DflashStageCall *stage = &call->call;
  const int64_t count = fault_rows(call) * fault_width(call);
  float (*act)(float, float) = knobs->act != NULL ? knobs->act : right_act;
  for (int64_t i = 0; i < count; i++) stage->output[i] = act(stage->inputs[0][i], stage->inputs[1][i]);
  return DFLASH_OK;
}
