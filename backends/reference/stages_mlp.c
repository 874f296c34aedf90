#include "reference.h"

#include <math.h>

/* silu(gate) * up, in f64 and rounded once: in f32 exp(-gate) overflows below -88, where the product is small
 * and not zero. */
void reference_stage_activation(DflashModel *model, const DflashStageCall *call) {
  const float *gate = call->inputs[0], *up = call->inputs[1];
  const int64_t count = call->rows * model->geometry.intermediate;
  for (int64_t i = 0; i < count; i++) call->output[i] = (float)(gate[i] / (1 + exp(-(double)gate[i])) * up[i]);
}
