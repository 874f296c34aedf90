/* Is it slower? Results with both sides among them are compared with each other, others with the baseline. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/compare_runs.h"
#include "run/gate_parts.h"
#include "run/runs_report.h"
#include "store/fields.h"

/* A slowdown is excused as a whole: by the block's share where the block was called, else by each called group's. */
static const DflashWaiver *excuse_part(DflashGate *gate, const DflashCaseComparison *one, const char *group,
                                       double share, const DflashWaiver **expired) {
  const DflashFault fault = {.device = dflash_field_text(one->b[0]->bench, "device"),
                             .device_name = dflash_field_text(one->b[0]->model, "device_name"),
                             .case_name = dflash_field_text(one->b[0]->bench, "case"),
                             .stage = group,
                             .label = one->stage_count > 0 ? one->stages[0].name : group,
                             .score = NAN,
                             .time_share = share};
  return dflash_waivers_find(&gate->waivers, &fault, gate->day, expired);
}

static const DflashWaiver *excuse(DflashGate *gate, const DflashCaseComparison *one, const DflashWaiver **expired) {
  const DflashTimeShift *whole = &one->whole.whole;
  const char *place = one->whole.place >= 0 ? one->groups[one->whole.place].name : "";
  const DflashWaiver *waiver = NULL;
  if (whole->verdict == DFLASH_TIME_SLOWER) return excuse_part(gate, one, place, whole->shift, expired);
  for (int64_t i = 0; i < one->group_count; i++) {
    const DflashTimeShift *group = &one->groups[i].part.item.shift;
    if (group->verdict != DFLASH_TIME_SLOWER) continue;
    waiver = excuse_part(gate, one, one->groups[i].name, group->shift, expired);
    if (waiver == NULL) return NULL;
  }
  return waiver;
}

static void judge(DflashGate *gate, const DflashCaseComparison *one) {
  DflashText name = {0}, message = {0};
  const DflashWaiver *expired = NULL, *waiver = NULL;
  const int slow = dflash_case_comparison_verdict(one);
  int verdict = slow == DFLASH_TIME_SAME ? DFLASH_GATE_PASSED : DFLASH_GATE_NOTED;
  dflash_case_comparison_title(one, &name);
  dflash_case_comparison_line(one, &message);
  if (slow == DFLASH_TIME_CANNOT_TELL) verdict = DFLASH_GATE_CANNOT_TELL;
  if (slow == DFLASH_TIME_SLOWER) {
    waiver = excuse(gate, one, &expired);
    verdict = waiver != NULL ? DFLASH_GATE_WAIVED : DFLASH_GATE_FAILED;
  }
  if (waiver != NULL) dflash_text_append(&message, "; waived: %s (%s)", waiver->id, waiver->why);
  if (waiver == NULL && expired != NULL)
    dflash_text_append(&message, "; its waiver %s ended on %s", expired->id, expired->until);
  dflash_gate_find(gate, "time", verdict, &name, &message);
}

/* Results that pair up themselves stand in both lists; all others face the baseline. */
typedef struct Lists {
  const DflashResult **a, **b, **alone, **baseline;
  int64_t a_count, b_count, alone_count, baseline_count;
} Lists;

/* A baseline of another machine, device or backend than any result is none of this gate's business. */
static bool concerns(const DflashResult *baseline, const DflashResult *const *alone, int64_t count) {
  const unsigned same = 1U << DFLASH_KEY_MACHINE | 1U << DFLASH_KEY_DEVICE | 1U << DFLASH_KEY_BACKEND;
  for (int64_t i = 0; i < count; i++)
    if ((dflash_result_differs(baseline, alone[i]) & same) == 0) return true;
  return false;
}

static bool fill_lists(const DflashGate *gate, Lists *lists) {
  lists->a = dflash_runs_side(&gate->results, "A", &lists->a_count);
  lists->b = dflash_runs_side(&gate->results, "B", &lists->b_count);
  lists->alone = dflash_runs_side(&gate->results, "", &lists->alone_count);
  lists->baseline = dflash_runs_side(&gate->baseline, NULL, &lists->baseline_count);
  if (lists->a == NULL || lists->b == NULL || lists->alone == NULL || lists->baseline == NULL) return false;
  int64_t kept = 0;
  for (int64_t i = 0; i < lists->baseline_count; i++)
    if (concerns(lists->baseline[i], lists->alone, lists->alone_count)) lists->baseline[kept++] = lists->baseline[i];
  lists->baseline_count = kept;
  return true;
}

static DflashStatus compare(DflashGate *gate, const Lists *lists, DflashError *error) {
  DflashRunsRule rule = gate->options->rule;
  const bool none = strcmp(gate->options->baseline, "none") == 0;
  const bool pairs = lists->a_count > 0 || lists->b_count > 0, against = !none && lists->alone_count > 0;
  if (pairs && against) rule.compare.rate /= 2; /* one rate for the whole gate */
  DflashStatus status = DFLASH_OK;
  if (against)
    status = dflash_runs_compare(lists->baseline, lists->baseline_count, lists->alone, lists->alone_count, &rule,
                                 &gate->against, error);
  rule.across = true;
  if (pairs && status == DFLASH_OK)
    status = dflash_runs_compare(lists->a, lists->a_count, lists->b, lists->b_count, &rule, &gate->pairs, error);
  return status;
}

DflashStatus dflash_gate_time(DflashGate *gate, DflashError *error) {
  Lists lists = {0};
  DflashStatus status = fill_lists(gate, &lists)
                            ? compare(gate, &lists, error)
                            : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for results");
  for (int64_t i = 0; i < gate->against.count && status == DFLASH_OK; i++) judge(gate, &gate->against.cases[i]);
  for (int64_t i = 0; i < gate->pairs.count && status == DFLASH_OK; i++) judge(gate, &gate->pairs.cases[i]);
  free(lists.a);
  free(lists.b);
  free(lists.alone);
  free(lists.baseline);
  return status;
}
