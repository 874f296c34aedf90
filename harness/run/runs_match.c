#include "run/runs_match.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/fields.h"

typedef struct Sides {
  const DflashResult *const *at[2];
  int64_t count[2];
  unsigned ignored; /* keys that may differ */
} Sides;

static const DflashResult *any_of(const DflashCaseComparison *one) { return one->a_count > 0 ? one->a[0] : one->b[0]; }

static DflashCaseComparison *find_case(DflashRunsComparison *out, const DflashResult *result, unsigned ignored) {
  for (int64_t i = 0; i < out->count; i++)
    if ((dflash_result_differs(any_of(&out->cases[i]), result) & ~ignored) == 0) return &out->cases[i];
  return NULL;
}

/* A new case has room for all results of either side. */
static DflashCaseComparison *add_case(DflashRunsComparison *out, const Sides *sides) {
  DflashCaseComparison *larger = realloc(out->cases, (size_t)(out->count + 1) * sizeof *larger);
  if (larger == NULL) return NULL;
  out->cases = larger;
  DflashCaseComparison *one = &larger[out->count];
  *one = (DflashCaseComparison){.a = calloc((size_t)sides->count[0] + 1, sizeof(DflashResult *)),
                                .b = calloc((size_t)sides->count[1] + 1, sizeof(DflashResult *))};
  out->count++;
  return one->a != NULL && one->b != NULL ? one : NULL;
}

static DflashStatus collect(DflashRunsComparison *out, const Sides *sides, int side, DflashError *error) {
  for (int64_t i = 0; i < sides->count[side]; i++) {
    const DflashResult *result = sides->at[side][i];
    if (result->bench == NULL) continue;
    DflashCaseComparison *one = find_case(out, result, sides->ignored);
    if (one == NULL) one = add_case(out, sides);
    if (one == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to match results");
    if (side == 0)
      one->a[one->a_count++] = result;
    else
      one->b[one->b_count++] = result;
  }
  return DFLASH_OK;
}

static int bits(unsigned value) {
  int count = 0;
  for (; value != 0; value &= value - 1) count++;
  return count;
}

/* The result of the other side that differs in the fewest keys, the case's name among those that agree if possible. */
static const DflashResult *nearest(const Sides *sides, int side, const DflashResult *result, unsigned *differs) {
  const DflashResult *best = NULL;
  int least = 0;
  for (int64_t i = 0; i < sides->count[side]; i++) {
    if (sides->at[side][i]->bench == NULL) continue;
    const unsigned own = dflash_result_differs(sides->at[side][i], result) & ~sides->ignored;
    const int weight = bits(own) + 4 * (int)(own & 1U << DFLASH_KEY_CASE);
    if (best != NULL && weight >= least) continue;
    best = sides->at[side][i];
    least = weight;
    *differs = own;
  }
  return best;
}

/* "only on side A; on side B golden is "..." and not "..."" */
static void explain_missing(const Sides *sides, int missing, DflashCaseComparison *one) {
  char own[DFLASH_KEY_TEXT], other[DFLASH_KEY_TEXT];
  unsigned differs = 0;
  const DflashResult *result = any_of(one), *near = nearest(sides, missing, result, &differs);
  size_t used = (size_t)snprintf(one->why, sizeof one->why, "only on side %c", missing == 0 ? 'B' : 'A');
  for (int key = 0; near != NULL && key < DFLASH_KEY_COUNT; key++) {
    if ((differs & 1U << key) == 0 || used >= sizeof one->why) continue;
    used += (size_t)snprintf(one->why + used, sizeof one->why - used, "; %s is \"%s\" there, \"%s\" on side %c",
                             dflash_key_name(key), dflash_result_key(result, key, own),
                             dflash_result_key(near, key, other), missing == 0 ? 'A' : 'B');
  }
}

static const char *time_of(const DflashResult *result) {
  return dflash_field_text(dflash_field(result->bench, "environment"), "time");
}

/* Few enough for insertion, which keeps the order of those of one second. */
static void sort_by_time(const DflashResult **at, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    for (int64_t k = i; k > 0 && strcmp(time_of(at[k - 1]), time_of(at[k])) > 0; k--) {
      const DflashResult *swapped = at[k];
      at[k] = at[k - 1];
      at[k - 1] = swapped;
    }
}

/* Each pair ends before the next one begins; times are whole seconds. */
static bool in_turn(const DflashCaseComparison *one) {
  if (one->a_count != one->b_count || *time_of(one->a[0]) == '\0') return false;
  for (int64_t i = 0; i + 1 < one->a_count; i++)
    if (strcmp(time_of(one->a[i]), time_of(one->b[i + 1])) > 0 ||
        strcmp(time_of(one->b[i]), time_of(one->a[i + 1])) > 0)
      return false;
  return true;
}

/* How often the side changes in the order of time. */
static int64_t switches(const DflashCaseComparison *one) {
  int64_t count = 0, i = 0, k = 0;
  int before = -1;
  while (i < one->a_count || k < one->b_count) {
    const bool left = k == one->b_count || (i < one->a_count && strcmp(time_of(one->a[i]), time_of(one->b[k])) <= 0);
    count += before >= 0 && before != left;
    before = left;
    if (left)
      i++;
    else
      k++;
  }
  return count;
}

static int units_of(const DflashCaseComparison *one) {
  const int64_t fewer = one->a_count < one->b_count ? one->a_count : one->b_count;
  if (one->a_count == 1 && one->b_count == 1) return DFLASH_UNITS_ONE_EACH;
  if (in_turn(one)) return DFLASH_UNITS_PAIRS;
  return fewer > 1 && switches(one) >= fewer ? DFLASH_UNITS_TOGETHER : DFLASH_UNITS_APART;
}

static bool disturbed(const DflashResult *result, bool paired, double load, DflashCaseComparison *one) {
  char text[DFLASH_KEY_TEXT];
  if (*dflash_result_disturbed(result, paired, load, text) == '\0') return false;
  one->left_out++;
  snprintf(one->disturbed, sizeof one->disturbed, "%s", text);
  return true;
}

/* Of pairs both go. */
static void leave_out_pairs(DflashCaseComparison *one) {
  int64_t kept = 0;
  for (int64_t i = 0; i < one->a_count; i++) {
    if (disturbed(one->a[i], true, 0, one) || disturbed(one->b[i], true, 0, one)) continue;
    one->a[kept] = one->a[i];
    one->b[kept++] = one->b[i];
  }
  one->a_count = one->b_count = kept;
}

static int64_t leave_out(double load, DflashCaseComparison *one, const DflashResult **at, int64_t count) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count; i++)
    if (!disturbed(at[i], false, load, one)) at[kept++] = at[i];
  return kept;
}

/* Pairs share what the machine and the device did. */
static void settle(const DflashRunsRule *rule, DflashCaseComparison *one) {
  sort_by_time(one->a, one->a_count);
  sort_by_time(one->b, one->b_count);
  one->units = units_of(one);
  if (one->units == DFLASH_UNITS_PAIRS) {
    leave_out_pairs(one);
  } else {
    one->a_count = leave_out(rule->load, one, one->a, one->a_count);
    one->b_count = leave_out(rule->load, one, one->b, one->b_count);
  }
  if (one->a_count == 0 || one->b_count == 0)
    snprintf(one->why, sizeof one->why, "disturbed, nothing is left: %s", one->disturbed);
}

DflashStatus dflash_runs_match(const DflashResult *const *a, int64_t a_count, const DflashResult *const *b,
                               int64_t b_count, DflashRunsComparison *out, DflashError *error) {
  const unsigned across = 1U << DFLASH_KEY_BACKEND | 1U << DFLASH_KEY_DEVICE | 1U << DFLASH_KEY_MACHINE;
  const Sides sides = {{a, b}, {a_count, b_count}, out->rule.across ? across : 0};
  DflashStatus status = collect(out, &sides, 0, error);
  if (status == DFLASH_OK) status = collect(out, &sides, 1, error);
  for (int64_t i = 0; i < out->count && status == DFLASH_OK; i++) {
    DflashCaseComparison *one = &out->cases[i];
    if (one->a_count == 0 || one->b_count == 0)
      explain_missing(&sides, one->a_count == 0 ? 0 : 1, one);
    else
      settle(&out->rule, one);
  }
  return status;
}
