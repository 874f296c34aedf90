/* Was everything run to its end, and was it right? */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/gate_parts.h"
#include "store/fields.h"

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void name_case(const DflashResult *result, DflashText *name) {
  dflash_text_append(name, "%s %s: %s on %s, %s, %s", base_name(dflash_field_text(result->done, "file")),
                     dflash_field_text(result->done, "case"), dflash_field_text(result->done, "backend"),
                     dflash_field_text(result->done, "device"), dflash_field_text(result->done, "profile"),
                     dflash_field_text(result->done, "modes"));
  const char *side = dflash_field_text(result->bench, "side");
  if (*side != '\0') dflash_text_append(name, " (side %s)", side);
}

/* The waiver of one verdict; NULL when nothing excuses it. */
static const DflashWaiver *excuse(DflashGate *gate, const DflashResult *result, const cJSON *verdict,
                                  const DflashWaiver **expired) {
  char label[128];
  const DflashFault fault = {.device = dflash_field_text(result->done, "device"),
                             .device_name = dflash_field_text(result->model, "device_name"),
                             .case_name = dflash_field_text(result->done, "case"),
                             .stage = dflash_field_text(verdict, "stage"),
                             .label = dflash_record_label(verdict, label, sizeof label),
                             .score = dflash_field_number(verdict, "score"),
                             .time_share = NAN};
  if (strcmp(dflash_field_text(verdict, "outcome"), "mismatch") != 0 || !isfinite(fault.score)) return NULL;
  return dflash_waivers_find(&gate->waivers, &fault, gate->day, expired);
}

/* A failed case is waived when each of its failed verdicts is; a crash has no score that could be. */
static bool all_waived(DflashGate *gate, const DflashResult *result, DflashText *ids, const DflashWaiver **expired) {
  int64_t failed = 0;
  bool waived = true;
  for (int64_t i = result->first; i < result->end; i++) {
    const cJSON *record = gate->results.records[i];
    if (!dflash_record_is(record, "verdict")) continue;
    const DflashOutcomeClass class = dflash_outcome_class(dflash_field_text(record, "outcome"));
    if (class != DFLASH_OUTCOME_FAILED && class != DFLASH_OUTCOME_BROKEN) continue;
    failed++;
    const DflashWaiver *waiver = excuse(gate, result, record, expired);
    waived = waived && waiver != NULL;
    if (waiver == NULL || (ids->size > 0 && strstr(ids->data, waiver->id) != NULL)) continue;
    dflash_text_append(ids, "%s%s (%s)", ids->size > 0 ? ", " : "", waiver->id, waiver->why);
  }
  return waived && failed > 0;
}

static void judge_failed(DflashGate *gate, const DflashResult *result, DflashText *name) {
  DflashText ids = {0}, message = {0};
  const DflashWaiver *expired = NULL;
  const bool waived = all_waived(gate, result, &ids, &expired);
  dflash_text_append(&message, "%s: %s", dflash_field_text(result->done, "outcome"),
                     dflash_field_text(result->done, "message"));
  if (waived) dflash_text_append(&message, "; waived: %s", ids.size > 0 ? ids.data : "");
  if (!waived && expired != NULL)
    dflash_text_append(&message, "; its waiver %s ended on %s", expired->id, expired->until);
  if (!waived && *dflash_field_text(result->done, "reproduce") != '\0')
    dflash_text_append(&message, "; reproduce: %s", dflash_field_text(result->done, "reproduce"));
  dflash_text_free(&ids);
  dflash_gate_find(gate, "parity", waived ? DFLASH_GATE_WAIVED : DFLASH_GATE_FAILED, name, &message);
}

static void judge_case(DflashGate *gate, const DflashResult *result) {
  DflashText name = {0}, message = {0};
  const char *outcome = dflash_field_text(result->done, "outcome");
  const char *implausible = dflash_field_text(result->bench, "implausible");
  const DflashOutcomeClass class = dflash_outcome_class(outcome);
  name_case(result, &name);
  if (class == DFLASH_OUTCOME_FAILED || class == DFLASH_OUTCOME_BROKEN) {
    judge_failed(gate, result, &name);
    return;
  }
  if (*implausible != '\0') {
    dflash_text_append(&message, "%s", implausible);
    dflash_gate_find(gate, "plausibility", DFLASH_GATE_CANNOT_TELL, &name, &message);
    return;
  }
  const bool passed = class == DFLASH_OUTCOME_PASSED, doubtful = strcmp(outcome, "not trusted") == 0;
  if (passed && result->bench != NULL && dflash_gate_passed_again(gate, "parity", &name)) {
    dflash_text_free(&name);
    return;
  }
  if (!passed) dflash_text_append(&message, "%s: %s", outcome, dflash_field_text(result->done, "message"));
  dflash_gate_find(gate, "parity",
                   passed     ? DFLASH_GATE_PASSED
                   : doubtful ? DFLASH_GATE_CANNOT_TELL
                              : DFLASH_GATE_NOTED,
                   &name, &message);
}

/* What is known of the run whose records are being read. */
typedef struct Run {
  const cJSON *run;
  bool failed; /* a case or a file of it was, so that its exit status is explained */
  bool ended;
} Run;

static void judge_end(DflashGate *gate, const Run *run, const cJSON *summary) {
  DflashText name = {0}, message = {0};
  const double status = summary != NULL ? dflash_field_number(summary, "exit") : NAN;
  int verdict = DFLASH_GATE_CANNOT_TELL;
  if (summary != NULL && (status == 0 || status == 77 || (status == 5 || (run->failed && status <= 2)))) return;
  if (summary == NULL && (run->run == NULL || run->ended)) return;
  dflash_text_append(&name, "%s", run->run != NULL ? dflash_field_text(run->run, "command") : "records without a run");
  if (summary == NULL)
    dflash_text_append(&message, "did not end: cases may be missing");
  else
    dflash_text_append(&message, "ended with exit status %g", status);
  if (status == 1 || status == 2) verdict = DFLASH_GATE_FAILED;
  dflash_gate_find(gate, "run", verdict, &name, &message);
}

static void judge_bad_input(DflashGate *gate, const cJSON *record) {
  DflashText name = {0}, message = {0};
  dflash_text_append(&name, "%s", base_name(dflash_field_text(record, "file")));
  dflash_text_append(&message, "bad input: %s", dflash_field_text(record, "message"));
  dflash_gate_find(gate, "run", DFLASH_GATE_FAILED, &name, &message);
}

static void judge_runs(DflashGate *gate) {
  Run run = {0};
  for (int64_t i = 0; i < gate->results.record_count; i++) {
    const cJSON *record = gate->results.records[i];
    if (dflash_record_is(record, "run")) {
      judge_end(gate, &run, NULL);
      run = (Run){.run = record};
    }
    if (dflash_record_is(record, "bad_input")) {
      run.failed = true;
      judge_bad_input(gate, record);
    }
    if (dflash_record_is(record, "comparison")) run.failed = true; /* it is judged again, by the gate's own rule */
    if (dflash_record_is(record, "case")) {
      const DflashOutcomeClass class = dflash_outcome_class(dflash_field_text(record, "outcome"));
      run.failed = run.failed || class == DFLASH_OUTCOME_FAILED || class == DFLASH_OUTCOME_BROKEN;
    }
    if (!dflash_record_is(record, "summary")) continue;
    run.ended = true;
    judge_end(gate, &run, record);
  }
  judge_end(gate, &run, NULL);
}

void dflash_gate_parity(DflashGate *gate) {
  judge_runs(gate);
  for (int64_t i = 0; i < gate->results.count; i++) judge_case(gate, &gate->results.results[i]);
}
