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

/* For errors that may be large: silu's secant at so many deviations, and the product of both errors. */
static double inherited_far(double gate, double up, double gate_variance, double up_variance, double deviations) {
  double middle = gate * sigmoid(gate), s = sigmoid(gate), far = deviations * sqrt(gate_variance);
  double above = (gate + far) * sigmoid(gate + far) - middle, below = middle - (gate - far) * sigmoid(gate - far);
  double silu = fmax(above * above, below * below) / (deviations * deviations), slope = s * (1 + gate * sigmoid(-gate));
  silu = fmax(silu, slope * slope * gate_variance);
  return silu * (up * up + up_variance) + middle * middle * up_variance;
}

/* exp's error moves the sigmoid by (1 - sigmoid) of it; the sum 1 + exp, the division (or a reciprocal and a
 * product), times gate, times up round once each. Below exp(-87) f32 has no normal numbers left. */
static void act_element(const DflashOracleCall *call, int64_t at, double common) {
  double gate = call->inputs[0][at], up = call->inputs[1][at];
  double s = sigmoid(gate), rest = sigmoid(-gate), value = gate * s * up;
  double relative = DFLASH_FUNCTION(4) * rest * rest + 5;
  double own = DFLASH_ROUNDING * relative * value * value + dflash_golden_rounding(value);
  if (value != 0) own += DFLASH_FLUSH * (1 + up * up) * (1 + gate * gate);
  double slope_gate = s * (1 + gate * rest) * up, slope_up = gate * s;
  double inherited = slope_gate * slope_gate * variance(call, 0, at) + slope_up * slope_up * variance(call, 1, at);
  inherited += common * fmax(0, 2 * (slope_gate * gate) * value);
  bool moving_codes = call->profile == DFLASH_PROFILE_I8; /* whose deviation reaches further than four times itself */
  if (call->half) own += dflash_half_between(call->half, value * value) + dflash_half_output(call->half, value);
  if (call->half || moving_codes)
    inherited = inherited_far(gate, up, variance(call, 0, at), variance(call, 1, at), moving_codes ? 8 : 4);
  dflash_oracle_put(call, at, value, own, inherited, false);
}

/* A factor that gate and up have in common moves both ways at once: twice the product of the two slopes. */
static double common_variance(const DflashOracleCall *call, int64_t row, int64_t width) {
  double least = INFINITY;
  for (int i = 0; i < 2; i++) {
    if (!call->chain || !call->sigmas[i]) return 0;
    least = fmin(least, dflash_row_common(call->inputs[i] + row * width, call->sigmas[i] + row * width, width));
  }
  return least;
}

static void run_rows(void *context, int64_t begin, int64_t end, int worker) {
  const DflashOracleCall *call = context;
  int64_t width = call->geometry->intermediate;
  (void)worker;
  for (int64_t row = begin; row < end; row++) {
    double common = common_variance(call, row, width);
    for (int64_t at = row * width; at < (row + 1) * width; at++) act_element(call, at, common);
  }
}

DflashStatus dflash_oracle_act(const DflashOracleCall *call, DflashError *error) {
  (void)error;
  DflashOracleCall copy = *call;
  dflash_pool_run(call->pool, call->sizes.rows, 1, run_rows, &copy);
  return DFLASH_OK;
}
