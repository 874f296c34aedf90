/* Wrong orders of logits, and lists that lose or keep what they should not. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/faulty/faults_select.h"

static bool larger(float a, int32_t id_a, float b, int32_t id_b) { return a > b || (a == b && id_a < id_b); }

bool fault_before_higher_id(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  (void)call;
  return logit_a > logit_b || (logit_a == logit_b && id_a > id_b);
}

/* Equal logits stand as threads arrive: by lower id in one block, by higher id in the next. */
bool fault_before_any(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  return logit_a > logit_b || (logit_a == logit_b && (id_a < id_b) != fault_now_and_then(call));
}

bool fault_before_size(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  (void)call;
  return larger(fabsf(logit_a), id_a, fabsf(logit_b), id_b);
}

/* Bits of floats as unsigned numbers: negative ones stand first. */
bool fault_before_bits(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  uint32_t a, b;
  (void)call;
  memcpy(&a, &logit_a, sizeof a);
  memcpy(&b, &logit_b, sizeof b);
  return a > b || (a == b && id_a < id_b);
}

/* A running maximum that starts at 0. */
bool fault_before_positive(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  (void)call;
  return larger(fmaxf(logit_a, 0), id_a, fmaxf(logit_b, 0), id_b);
}

bool fault_before_bf16(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  (void)call;
  return larger(fault_round_bf16(logit_a), id_a, fault_round_bf16(logit_b), id_b);
}

bool fault_before_f16(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  (void)call;
  return larger(fault_round_f16(logit_a), id_a, fault_round_f16(logit_b), id_b);
}

float fault_logit_first_half(const FaultCall *call, int64_t row, int32_t id, float logit) {
  (void)row;
  return id < call->call.head_width / 2 ? logit : -INFINITY;
}

float fault_logit_whole_tiles(const FaultCall *call, int64_t row, int32_t id, float logit) {
  (void)row;
  return id < call->call.head_width / 64 * 64 ? logit : -INFINITY;
}

float fault_logit_bf16(const FaultCall *call, int64_t row, int32_t id, float logit) {
  (void)call, (void)row, (void)id;
  return fault_round_bf16(logit);
}

static float logit_of(const FaultCall *call, int64_t row, int32_t id) {
  return call->call.inputs[0][row * call->call.head_width + id];
}

static int32_t *list_of(const FaultCall *call, int64_t row, int32_t *candidates) {
  return candidates + row * call->model->geometry.selector_top;
}

void fault_listed_by_id(FaultCall *call, int64_t row, int32_t *candidates) {
  int32_t *ids = list_of(call, row, candidates);
  for (int64_t i = 1; i < call->model->geometry.selector_top; i++)
    for (int64_t place = i; place > 0 && ids[place] < ids[place - 1]; place--) {
      const int32_t id = ids[place];
      ids[place] = ids[place - 1];
      ids[place - 1] = id;
    }
}

/* What stands next in a row after `last` (-1: what stands first); equal: one with the same logit may. -1: none. */
static int32_t next_of(const FaultCall *call, int64_t row, int32_t last, bool equal) {
  int32_t next = -1;
  for (int32_t id = 0; id < call->call.head_width; id++) {
    const float logit = logit_of(call, row, id);
    const bool after =
        last < 0 || logit < logit_of(call, row, last) || (equal && logit == logit_of(call, row, last) && id > last);
    if (after && (next < 0 || logit > logit_of(call, row, next))) next = id;
  }
  return next;
}

/* Of equal logits at most `most` are taken. Where too few are left the last candidate is repeated. */
static void take(const FaultCall *call, int64_t row, int32_t *ids, int64_t most) {
  int64_t equal = 0;
  for (int64_t i = 0; i < call->model->geometry.selector_top; i++) {
    const int32_t last = i > 0 ? ids[i - 1] : -1, next = next_of(call, row, last, equal < most);
    equal = last >= 0 && next >= 0 && logit_of(call, row, next) == logit_of(call, row, last) ? equal + 1 : 1;
    ids[i] = next >= 0 ? next : last;
  }
}

void fault_listed_distinct(FaultCall *call, int64_t row, int32_t *candidates) {
  take(call, row, list_of(call, row, candidates), 1);
}

void fault_listed_stash(FaultCall *call, int64_t row, int32_t *candidates) {
  take(call, row, list_of(call, row, candidates), 2);
}

/* A row's list starts with that of the row before: its last place is taken. */
void fault_listed_kept(FaultCall *call, int64_t row, int32_t *candidates) {
  const int64_t top = call->model->geometry.selector_top;
  if (row > 0) list_of(call, row, candidates)[top - 1] = list_of(call, row - 1, candidates)[0];
}

void fault_listed_narrow(FaultCall *call, int64_t row, int32_t *candidates) {
  int32_t *ids = list_of(call, row, candidates);
  for (int64_t i = 0; i < call->model->geometry.selector_top; i++) ids[i] &= 0xffff;
}

void fault_listed_f16(FaultCall *call, int64_t row, int32_t *candidates) {
  int32_t *ids = list_of(call, row, candidates);
  for (int64_t i = 0; i < call->model->geometry.selector_top; i++) {
    const float id = fault_round_f16((float)ids[i]);
    ids[i] = id < (float)call->call.head_width ? (int32_t)id : (int32_t)call->call.head_width - 1;
  }
}
