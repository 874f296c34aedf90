#include "time/compare_whole.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

double dflash_times_look_rate(double rate, int64_t look) { return ldexp(rate, -(int)(look + 1)); }

int64_t dflash_times_first_look(double rate, int64_t parts) {
  const double first = dflash_times_look_rate(rate, 0);
  return dflash_times_least(first * (1 - DFLASH_TIMES_WHOLE_WEIGHT) / (double)parts, 1);
}

int64_t dflash_times_next_look(int64_t pairs) {
  return pairs + pairs / 2 < DFLASH_TIMES_UNITS ? pairs + pairs / 2 : DFLASH_TIMES_UNITS;
}

static double part_weight(int64_t count) { return count > 0 ? (1 - DFLASH_TIMES_WHOLE_WEIGHT) / (double)count : 0; }

/* A part without units has medians alone: it locates. */
static DflashStatus measure_part(const DflashTimesRule *rule, double rate, double whole_ns, DflashTimesPart *part,
                                 DflashError *error) {
  DflashTimeShift *s = &part->item.shift;
  DflashStatus status = DFLASH_OK;
  if (part->units.a_count > 0) status = dflash_times_shift(&part->units, rule, rate, s, error);
  if (part->units.a_count == 0)
    *s = (DflashTimeShift){
        .a = s->a, .b = s->b, .shift = s->b / s->a - 1, .low = NAN, .high = NAN, .p = 1, .visible = INFINITY};
  part->moved = s->a * s->shift / whole_ns;
  part->item.scale = fmax(1, DFLASH_TIMES_PART_LEAST * whole_ns / s->a);
  return status;
}

static int overall(const DflashTimeShift *whole, const DflashTimesPart *parts, int64_t count) {
  int verdict = whole->verdict;
  if (verdict == DFLASH_TIME_FASTER || verdict == DFLASH_TIME_SLOWER) return verdict;
  for (int64_t i = 0; i < count; i++) {
    if (parts[i].item.shift.verdict == DFLASH_TIME_SLOWER) return DFLASH_TIME_SLOWER;
    if (parts[i].item.shift.verdict == DFLASH_TIME_FASTER) verdict = DFLASH_TIME_FASTER;
  }
  return verdict;
}

/* Where nothing changed there is no place. */
static int64_t find_place(int verdict, const DflashTimesPart *parts, int64_t count) {
  int64_t place = -1;
  double most = 0, sign = verdict == DFLASH_TIME_SLOWER ? 1 : -1;
  if (verdict != DFLASH_TIME_SLOWER && verdict != DFLASH_TIME_FASTER) return -1;
  for (int64_t i = 0; i < count; i++) {
    if (!(sign * parts[i].moved > most)) continue;
    most = sign * parts[i].moved;
    place = i;
  }
  return place;
}

/* The whole first, then the parts, as one family. */
static DflashStatus decide(const DflashTimesRule *rule, double rate, DflashTimesPart *parts, int64_t count,
                           DflashTimeShift *whole, DflashError *error) {
  DflashTimesItem *items = calloc((size_t)count + 1, sizeof *items);
  if (items == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to judge %lld parts", (long long)count);
  items[0] = (DflashTimesItem){*whole, count > 0 ? DFLASH_TIMES_WHOLE_WEIGHT : 1, 1};
  for (int64_t i = 0; i < count; i++) items[i + 1] = parts[i].item;
  dflash_times_decide(rule, rate, items, count + 1);
  *whole = items[0].shift;
  for (int64_t i = 0; i < count; i++) parts[i].item.shift = items[i + 1].shift;
  free(items);
  return DFLASH_OK;
}

DflashStatus dflash_times_whole(const DflashTimesRule *rule, double rate, const DflashTimeUnits *whole,
                                DflashTimesPart *parts, int64_t count, DflashTimesWhole *out, DflashError *error) {
  int64_t called = 0;
  for (int64_t i = 0; i < count; i++) called += parts[i].units.a_count > 0;
  const double own = called > 0 ? rate * DFLASH_TIMES_WHOLE_WEIGHT : rate, each = rate * part_weight(called);
  *out = (DflashTimesWhole){.place = -1,
                            .least = dflash_times_least(own, whole->paired),
                            .least_parts = called > 0 ? dflash_times_least(each, whole->paired) : 0};
  DflashStatus status = dflash_times_shift(whole, rule, own, &out->whole, error);
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++) {
    parts[i].item.weight = parts[i].units.a_count > 0 ? part_weight(called) : 0;
    status = measure_part(rule, each, out->whole.a, &parts[i], error);
  }
  if (status == DFLASH_OK) status = decide(rule, rate, parts, count, &out->whole, error);
  if (status != DFLASH_OK) return status;
  out->verdict = overall(&out->whole, parts, count);
  out->place = find_place(out->verdict, parts, count);
  return DFLASH_OK;
}
