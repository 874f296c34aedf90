/* silu(gate) * up. */
#include <math.h>
#include <stddef.h>

#include "oracle_half.h"
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

/* For errors that may be large: silu's secant at four deviations, and the product of both errors. */
static double inherited_far(double gate, double up, double gate_variance, double up_variance) {
  double middle = gate * sigmoid(gate), s = sigmoid(gate), far = 4 * sqrt(gate_variance);
  double above = (gate + far) * sigmoid(gate + far) - middle, below = middle - (gate - far) * sigmoid(gate - far);
  double silu = fmax(above * above, below * below) / 16, slope = s * (1 + gate * sigmoid(-gate));
  silu = fmax(silu, slope * slope * gate_variance);
  return silu * (up * up + up_variance) + middle * middle * up_variance;
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
  if (call->half) {
    own += dflash_half_between(call->half, value * value) + dflash_half_output(call->half, value);
    inherited = inherited_far(gate, up, variance(call, 0, at), variance(call, 1, at));
  }
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
