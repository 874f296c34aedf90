/* Sums that lose terms or bits, and rows that are rounded before them. */
#include <math.h>
#include <string.h>

#include "backends/faulty/faults_matrix.h"

static float sum_of(const float *w, const float *x, int64_t count) {
  return fault_sum(w, x, count, FAULT_ORDER_LANES, false);
}

float fault_sum_without_tail_64(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  (void)call, (void)out;
  return sum_of(w, x, count - count % 64);
}

float fault_sum_without_tail_32(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  (void)call, (void)out;
  return sum_of(w, x, count - count % 32);
}

float fault_sum_last_twice(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  (void)call, (void)out;
  return sum_of(w, x, count) + (count % 16 == 0 ? 0 : w[count - 1] * x[count - 1]);
}

float fault_sum_in_f16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) sum = fault_round_f16(sum + w[i] * x[i]);
  return sum;
}

float fault_sum_in_bf16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) sum = fault_round_bf16(sum + w[i] * x[i]);
  return sum;
}

/* An f32 from an f64, its lower bits cut off. */
static float cut(double value) {
  const float rounded = (float)value;
  return fabs((double)rounded) > fabs(value) ? nextafterf(rounded, 0) : rounded;
}

float fault_sum_towards_zero(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) sum = cut(sum + (double)w[i] * x[i]);
  return sum;
}

/* 11 significant bits, to nearest. */
static float round_tf32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Three products of two parts each; the fourth, of both lower parts, is left out. */
float fault_sum_tf32_thrice(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) {
    const float w_high = round_tf32(w[i]), x_high = round_tf32(x[i]);
    const float w_low = round_tf32(w[i] - w_high), x_low = round_tf32(x[i] - x_high);
    sum += w_high * x_low;
    sum += w_low * x_high;
    sum += w_high * x_high;
  }
  return sum;
}

void fault_round_row_tf32(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call, (void)row;
  for (int64_t i = 0; i < count; i++) x[i] = round_tf32(x[i]);
}

void fault_round_row_f16(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call, (void)row;
  for (int64_t i = 0; i < count; i++) x[i] = fault_round_f16(x[i]);
}

void fault_round_row_bf16(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call, (void)row;
  for (int64_t i = 0; i < count; i++) x[i] = fault_round_bf16(x[i]);
}

/* Two parts of 8 bits each. */
void fault_split_row_bf16(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call, (void)row;
  for (int64_t i = 0; i < count; i++) {
    const float high = fault_round_bf16(x[i]);
    x[i] = high + fault_round_bf16(x[i] - high);
  }
}

/* Two parts of 11 bits each. */
void fault_split_row_f16(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call, (void)row;
  for (int64_t i = 0; i < count; i++) {
    const float high = fault_round_f16(x[i]);
    x[i] = high + fault_round_f16(x[i] - high);
  }
}
