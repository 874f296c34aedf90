#include <math.h>

#include "backends/faulty/faults_norm.h"

void fault_frequency_f32(const Fault *fault, const DflashGeometry *geometry, float *inv_freq) {
  (void)fault;
  for (int64_t i = 0; i < geometry->head_dim / 2; i++)
    inv_freq[i] = powf((float)geometry->rope_theta, (float)(-2 * i) / (float)geometry->head_dim);
}

void fault_frequency_bf16(const Fault *fault, const DflashGeometry *geometry, float *inv_freq) {
  (void)fault;
  for (int64_t i = 0; i < geometry->head_dim / 2; i++) inv_freq[i] = fault_round_bf16(inv_freq[i]);
}

static void powers(const DflashGeometry *geometry, double theta, double dims, float *inv_freq) {
  for (int64_t i = 0; i < geometry->head_dim / 2; i++) inv_freq[i] = (float)pow(theta, (double)(-2 * i) / dims);
}

void fault_frequency_theta_10000(const Fault *fault, const DflashGeometry *geometry, float *inv_freq) {
  (void)fault;
  powers(geometry, 10000, (double)geometry->head_dim, inv_freq);
}

void fault_frequency_of_half(const Fault *fault, const DflashGeometry *geometry, float *inv_freq) {
  (void)fault;
  powers(geometry, geometry->rope_theta, (double)geometry->head_dim / 2, inv_freq);
}

void fault_frequency_shifted(const Fault *fault, const DflashGeometry *geometry, float *inv_freq) {
  (void)fault;
  for (int64_t i = 0; i + 1 < geometry->head_dim / 2; i++) inv_freq[i] = inv_freq[i + 1];
}

static float frequency(const FaultCall *call, int64_t pair) { return call->model->kept.inv_freq[pair]; }

/* Row 0's angle, and a frequency added for every row. */
float fault_turn_stepwise(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)head;
  angle = (float)call->call.position * frequency(call, pair);
  for (int64_t r = 0; r < row; r++) angle += frequency(call, pair);
  return angle;
}

/* Whole turns taken off in f32, as a sine does that is made for small angles. */
float fault_turn_reduced_f32(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  const float turn = 6.28318530717958648F;
  (void)call, (void)row, (void)head, (void)pair;
  return angle - rintf(angle / turn) * turn;
}

float fault_turn_u16(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)head, (void)angle;
  return (float)(uint16_t)(call->call.position + row) * frequency(call, pair);
}

float fault_turn_by_row(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)head, (void)angle;
  return (float)row * frequency(call, pair);
}

float fault_turn_first_head(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)call, (void)row, (void)pair;
  return head == 0 ? angle : 0;
}
