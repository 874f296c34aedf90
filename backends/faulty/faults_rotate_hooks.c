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

/* Rows of a push counted from where the window of its last row begins. */
float fault_turn_of_window(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  const int64_t window = dflash_geometry_window(&call->model->geometry, call->call.layer);
  const int64_t begin = call->call.position + call->call.rows - window;
  (void)head;
  if (window == 0 || begin <= 0) return angle;
  return (float)(call->call.position + row - begin) * frequency(call, pair);
}

float fault_turn_by_row(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)head, (void)angle;
  return (float)row * frequency(call, pair);
}

float fault_turn_first_head(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)call, (void)row, (void)pair;
  return head == 0 ? angle : 0;
}

/* V turned as K is, half by half. */
static void rotate_head(const FaultCall *call, float position, float *x) {
  const int64_t half = call->model->geometry.head_dim / 2;
  for (int64_t i = 0; i < half; i++) {
    const double angle = position * frequency(call, i);
    const double lo = x[i], hi = x[i + half];
    x[i] = (float)(lo * cos(angle) - hi * sin(angle));
    x[i + half] = (float)(hi * cos(angle) + lo * sin(angle));
  }
}

DflashStatus fault_rotate_values(FaultCall *call) {
  const DflashGeometry *g = &call->model->geometry;
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || !fault_is_at(call, FAULT_AT(CONTEXT_V_PROJ) | FAULT_AT(ATTN_V_PROJ))) return status;
  for (int64_t i = 0; i < fault_rows(call) * g->kv_heads; i++)
    rotate_head(call, (float)(call->call.position + i / g->kv_heads), call->call.output + i * g->head_dim);
  return DFLASH_OK;
}
