#include <math.h>

#include "backends/faulty/faults_common.h"
#include "backends/faulty/faults_storage.h"
#include "model/storage.h"

int fault_q4tp_value_swapped(const FaultQ4tp *view, int64_t row, int64_t index) {
  return fault_q4tp_value(view, row, index ^ 1);
}

int fault_q4tp_value_less_7(const FaultQ4tp *view, int64_t row, int64_t index) {
  return fault_q4tp_value(view, row, index) + 1;
}

int fault_q4tp_value_less_0(const FaultQ4tp *view, int64_t row, int64_t index) {
  return fault_q4tp_value(view, row, index) + 8;
}

/* The nibble as a number of 4 bits with a sign. */
int fault_q4tp_value_signed(const FaultQ4tp *view, int64_t row, int64_t index) {
  const int nibble = fault_q4tp_value(view, row, index) + 8;
  return nibble < 8 ? nibble : nibble - 16;
}

int fault_q4tp_value_symmetric(const FaultQ4tp *view, int64_t row, int64_t index) {
  const int value = fault_q4tp_value(view, row, index);
  return value < -7 ? -7 : value;
}

/* Low halves of a group's bytes first, then the high ones. */
int fault_q4tp_value_halves(const FaultQ4tp *view, int64_t row, int64_t index) {
  const int64_t in = index % FAULT_Q4TP_GROUP, half = FAULT_Q4TP_GROUP / 2;
  return fault_q4tp_value(view, row, index - in + (in < half ? 2 * in : 2 * (in - half) + 1));
}

/* Four halves of a kind in the bytes of a word, from which 0x08080808 is subtracted in one piece. */
int fault_q4tp_value_borrow(const FaultQ4tp *view, int64_t row, int64_t index) {
  int borrow = 0, value = 0;
  for (int64_t i = index - index % 8 + index % 2; i <= index; i += 2) {
    value = fault_q4tp_value(view, row, i) - borrow;
    borrow = value < 0 ? 1 : 0;
  }
  return value;
}

/* Bits that reach into the next byte are lost. */
int fault_q4tp_code_first_bits(const FaultQ4tp *view, int64_t row, int64_t group) {
  const int64_t bit = group * 5;
  return view->codes[row * view->code_bytes + bit / 8] >> (bit % 8) & (FAULT_Q4TP_RUNGS - 1);
}

static int bit_msb(const uint8_t *codes, int64_t bit) { return codes[bit / 8] >> (7 - bit % 8) & 1; }

int fault_q4tp_code_msb(const FaultQ4tp *view, int64_t row, int64_t group) {
  int code = 0;
  for (int64_t bit = 0; bit < 5; bit++)
    code = 2 * code + bit_msb(view->codes + row * view->code_bytes, group * 5 + bit);
  return code;
}

/* Rows follow each other without starting on a byte. */
int fault_q4tp_code_unaligned(const FaultQ4tp *view, int64_t row, int64_t group) {
  int code = 0;
  for (int64_t i = 4; i >= 0; i--) {
    const int64_t bit = (row * view->groups + group) * 5 + i;
    code = 2 * code + (view->codes[bit / 8] >> (bit % 8) & 1);
  }
  return code;
}

int fault_q4tp_code_next(const FaultQ4tp *view, int64_t row, int64_t group) {
  return fault_q4tp_code(view, row, (group + 1) % view->groups);
}

int fault_q4tp_code_pair(const FaultQ4tp *view, int64_t row, int64_t group) {
  return fault_q4tp_code(view, row, group - group % 2);
}

/* 2^x as e^(x ln 2), all of it in f32. */
static float exp2_single(float x) { return expf(x * 0.693147180559945F); }

void fault_q4tp_ladder_single(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]) {
  const float factor = exp2_single(step);
  rungs[0] = exp2_single(lo);
  for (int c = 1; c < FAULT_Q4TP_RUNGS; c++) rungs[c] = rungs[c - 1] * factor;
}

void fault_q4tp_ladder_direct(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]) {
  for (int c = 0; c < FAULT_Q4TP_RUNGS; c++) rungs[c] = (float)exp2(lo + (double)c * step);
}

static void ladder(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]) {
  const float factor = (float)exp2((double)step);
  rungs[0] = (float)exp2((double)lo);
  for (int c = 1; c < FAULT_Q4TP_RUNGS; c++) rungs[c] = rungs[c - 1] * factor;
}

void fault_q4tp_ladder_f16(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]) {
  ladder(lo, step, rungs);
  for (int c = 0; c < FAULT_Q4TP_RUNGS; c++) rungs[c] = fault_round_f16(rungs[c]);
}

void fault_q4tp_ladder_from_one(float lo, float step, float rungs[FAULT_Q4TP_RUNGS]) { ladder(lo + step, step, rungs); }
