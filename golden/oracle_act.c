/* silu(gate) * up. */
#include <math.h>
#include <stddef.h>

#include "oracle_internal.h"
#include "oracle_math.h"
#include "oracle_scale.h"

/* 1 / (1 + exp(-x)) without overflow in either direction. */
static double sigmoid(double x) {
  double e = dflash_oracle_exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

static double variance(const DflashOracleCall *call, int input, int64_t at) {
  const float *sigma = call->chain ? call->sigmas[input] : NULL;
  return sigma ? (double)sigma[at] * sigma[at] : 0;
}

/* exp's error moves the sigmoid by (1 - sigmoid) of it; the sum 1 + exp, the division (or a reciprocal and a
 * product), times gate, times up round once each. Below exp(-87) f32 has no normal numbers left. */
static void act_element(const DflashOracleCall *call, int64_t at) {
  double gate = call->inputs[0][at], up = call->inputs[1][at];
  double s = sigmoid(gate), rest = sigmoid(-gate), value = gate * s * up;
  double relative = DFLASH_FUNCTION(4) * rest * rest + 5;
  double own = DFLASH_ROUNDING * relative * value * value + dflash_golden_rounding(value);
  if (value != 0) own += DFLASH_FLUSH * (1 + up * up) * (1 + gate * gate);
  double slope_gate = s * (1 + gate * rest) * up, slope_up = gate * s;
  double inherited = slope_gate * slope_gate * variance(call, 0, at) + slope_up * slope_up * variance(call, 1, at);
  dflash_oracle_put(call, at, value, own, inherited, false);
}

static void run_elements(void *context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  for (int64_t at = begin; at < end; at++) act_element(context, at);
}

DflashStatus dflash_oracle_act(const DflashOracleCall *call, DflashError *error) {
  (void)error;
  DflashOracleCall copy = *call;
  dflash_pool_run(call->pool, call->sizes.rows * call->geometry->intermediate, 1024, run_elements, &copy);
  return DFLASH_OK;
}
