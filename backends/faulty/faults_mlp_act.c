/* Other activations, and the right one in too little precision or range. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/faulty/faults_mlp.h"

static float silu(double x) { return (float)(x / (1 + exp(-x))); }

float fault_act_swapped(float gate, float up) { return silu(up) * gate; }

float fault_act_gelu(float gate, float up) { return (float)(0.5 * gate * (1 + erf(gate * sqrt(0.5)))) * up; }

float fault_act_gelu_tanh(float gate, float up) {
  const double x = gate;
  return (float)(0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))) * up;
}

float fault_act_quick_gelu(float gate, float up) { return (float)(gate / (1 + exp(-1.702 * gate))) * up; }

float fault_act_relu(float gate, float up) { return fmaxf(gate, 0) * up; }

float fault_act_sigmoid(float gate, float up) { return (float)(1 / (1 + exp(-(double)gate))) * up; }

float fault_act_hard(float gate, float up) { return gate * fminf(fmaxf(gate + 3, 0), 6) / 6 * up; }

float fault_act_alone(float gate, float up) {
  (void)up;
  return silu(gate);
}

/* Infinity over infinity for a large gate. */
float fault_act_overflow(float gate, float up) {
  const float e = expf(gate);
  return gate * (e / (1 + e)) * up;
}

/* The exponential in f16, with its range. */
float fault_act_exp_f16(float gate, float up) { return gate / (1 + fault_round_f16(expf(-gate))) * up; }

/* The exponential's exponent is computed, its mantissa drawn as a straight line. */
float fault_act_exp_fast(float gate, float up) {
  const float steps = fminf(fmaxf(-gate, -80), 80) * (float)(8388608 / M_LN2) + 127 * 8388608.0F - 486411;
  const int32_t bits = (int32_t)steps;
  float e;
  memcpy(&e, &bits, sizeof e);
  return gate / (1 + e) * up;
}

float fault_act_clamped(float gate, float up) { return silu(fminf(fmaxf(gate, -10), 10)) * up; }

float fault_act_bf16(float gate, float up) { return fault_round_bf16(silu(gate)) * up; }
