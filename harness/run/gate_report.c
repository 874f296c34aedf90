/* The gate's verdict for a person. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "run/gate_parts.h"
#include "run/runs_report.h"

static const DflashFinding *worst(const DflashGate *gate, int verdict, int64_t *count) {
  const DflashFinding *first = NULL;
  *count = 0;
  for (int64_t i = 0; i < gate->finding_count; i++) {
    if (gate->findings[i].verdict != verdict) continue;
    if (first == NULL) first = &gate->findings[i];
    (*count)++;
  }
  return first;
}

void dflash_gate_line(const DflashGate *gate, int exit_status, DflashText *out) {
  const bool failed = exit_status == DFLASH_EXIT_WRONG;
  int64_t count, waived, all = gate->finding_count;
  const DflashFinding *first = worst(gate, failed ? DFLASH_GATE_FAILED : DFLASH_GATE_CANNOT_TELL, &count);
  worst(gate, DFLASH_GATE_WAIVED, &waived);
  if (exit_status == DFLASH_EXIT_NOTHING) dflash_text_append(out, "nothing was judged");
  if (exit_status == DFLASH_EXIT_OK)
    dflash_text_append(out, "the gate passes: %lld finding%s, %lld waived", (long long)all, all == 1 ? "" : "s",
                       (long long)waived);
  if (failed || exit_status == DFLASH_EXIT_CANNOT_TELL)
    dflash_text_append(out, "%s: %lld of %lld finding%s, first %s: %s",
                       failed ? "the gate fails" : "the gate cannot tell", (long long)count, (long long)all,
                       all == 1 ? "" : "s", first != NULL ? first->name : "-", first != NULL ? first->message : "-");
}

/* The worst of what the comparisons can see: a slowdown above it is seen in every case. */
static double visible_everywhere(const DflashGate *gate, int64_t *cases) {
  const DflashRunsComparison *both[] = {&gate->against, &gate->pairs};
  double most = 0;
  *cases = 0;
  for (int i = 0; i < 2; i++)
    for (int64_t k = 0; k < both[i]->count; k++) {
      const DflashCaseComparison *one = &both[i]->cases[k];
      const double visible = one->why[0] == '\0' ? one->whole.whole.visible : INFINITY;
      if (visible > most) most = visible;
      (*cases)++;
    }
  return most;
}

void dflash_gate_promise(const DflashGate *gate, DflashText *out) {
  const DflashRunsRule *rule = &gate->options->rule;
  int64_t cases;
  const double visible = visible_everywhere(gate, &cases);
  if (cases == 0) {
    dflash_text_append(out, "no times were compared");
    return;
  }
  dflash_text_append(
      out, "at most %.3g%% of nights on which nothing is slower fail for their times (one in %.0f), over %lld case%s; ",
      100 * rule->compare.rate, 1 / rule->compare.rate, (long long)cases, cases == 1 ? "" : "s");
  if (isfinite(visible))
    dflash_text_append(out, "a slowdown of %.2g%% is seen %g times in 100 in every case", 100 * visible,
                       100 * rule->compare.power);
  else
    dflash_text_append(out, "in one case or more no slowdown can be seen");
}

void dflash_gate_print(FILE *file, const DflashGate *gate, int exit_status) {
  DflashText line = {0}, promise = {0};
  if (gate->against.count > 0) dflash_runs_print(file, &gate->against);
  if (gate->pairs.count > 0) dflash_runs_print(file, &gate->pairs);
  for (int64_t i = 0; i < gate->finding_count; i++) {
    const DflashFinding *finding = &gate->findings[i];
    if (finding->verdict == DFLASH_GATE_PASSED) continue;
    fprintf(file, "%s: %s %s: %s\n", dflash_gate_verdict_name(finding->verdict), finding->kind, finding->name,
            finding->message);
  }
  dflash_gate_promise(gate, &promise);
  dflash_gate_line(gate, exit_status, &line);
  if (!line.failed && !promise.failed) fprintf(file, "%s\n%s; exit status %d\n", promise.data, line.data, exit_status);
  dflash_text_free(&promise);
  dflash_text_free(&line);
}
