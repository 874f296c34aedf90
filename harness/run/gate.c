#include "run/gate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/log.h"
#include "run/gate_parts.h"

static const char *const verdict_names[] = {"passed", "noted", "waived", "cannot tell", "failed"};

const char *dflash_gate_verdict_name(int verdict) {
  return verdict >= 0 && verdict <= DFLASH_GATE_FAILED ? verdict_names[verdict] : "-";
}

static bool make_room(DflashGate *gate) {
  if (gate->finding_count < gate->finding_capacity) return true;
  const int64_t wanted = gate->finding_capacity > 0 ? 2 * gate->finding_capacity : 32;
  DflashFinding *larger = realloc(gate->findings, (size_t)wanted * sizeof *larger);
  if (larger == NULL) return false;
  gate->findings = larger;
  gate->finding_capacity = wanted;
  return true;
}

void dflash_gate_find(DflashGate *gate, const char *kind, int verdict, DflashText *name, DflashText *message) {
  dflash_text_append(message, "%s", ""); /* never NULL */
  if (!make_room(gate) || name->failed || message->failed) {
    gate->failed_memory = true;
    dflash_text_free(name);
    dflash_text_free(message);
    return;
  }
  dflash_text_clean(name->data);
  dflash_text_clean(message->data);
  gate->findings[gate->finding_count++] = (DflashFinding){kind, verdict, name->data, message->data, 1};
  *name = *message = (DflashText){0};
}

bool dflash_gate_passed_again(DflashGate *gate, const char *kind, const DflashText *name) {
  if (name->failed) return false;
  dflash_text_clean(name->data);
  for (int64_t i = 0; i < gate->finding_count; i++) {
    DflashFinding *finding = &gate->findings[i];
    if (finding->verdict != DFLASH_GATE_PASSED || strcmp(finding->kind, kind) != 0) continue;
    if (strcmp(finding->name, name->data) != 0) continue;
    finding->times++;
    return true;
  }
  return false;
}

/* What nobody needs any more should go from the file. */
static void judge_waivers(DflashGate *gate) {
  for (int64_t i = 0; i < gate->waivers.count; i++) {
    const DflashWaiver *waiver = &gate->waivers.at[i];
    DflashText name = {0}, message = {0};
    const bool expired = strcmp(gate->day, waiver->until) > 0;
    if (waiver->used && !expired) continue;
    dflash_text_append(&name, "waiver %s", waiver->id);
    dflash_text_append(&message, "%s%s", waiver->used ? "is needed" : "excuses nothing here",
                       expired ? ", and ended on " : "");
    if (expired) dflash_text_append(&message, "%s", waiver->until);
    dflash_gate_find(gate, "waiver", DFLASH_GATE_NOTED, &name, &message);
  }
}

int dflash_gate_exit(const DflashGate *gate) {
  int worst = DFLASH_GATE_PASSED;
  int64_t judged = 0;
  for (int64_t i = 0; i < gate->finding_count; i++) {
    const DflashFinding *finding = &gate->findings[i];
    if (finding->verdict > worst) worst = finding->verdict;
    judged += strcmp(finding->kind, "waiver") != 0;
  }
  if (judged == 0) return DFLASH_EXIT_NOTHING;
  if (worst == DFLASH_GATE_FAILED) return DFLASH_EXIT_WRONG;
  return worst == DFLASH_GATE_CANNOT_TELL ? DFLASH_EXIT_CANNOT_TELL : DFLASH_EXIT_OK;
}

static void set_day(DflashGate *gate) {
  const time_t now = time(NULL);
  struct tm utc;
  gate->day = gate->options->day;
  if (gate->day != NULL) return;
  if (gmtime_r(&now, &utc) == NULL || strftime(gate->today, sizeof gate->today, "%Y-%m-%d", &utc) == 0)
    gate->today[0] = '\0';
  gate->day = gate->today;
}

static DflashStatus judge(DflashGate *gate, DflashError *error) {
  const DflashGateOptions *o = gate->options;
  DflashStatus status = DFLASH_OK;
  set_day(gate);
  if (o->waivers != NULL) status = dflash_waivers_read(o->waivers, &gate->waivers, error);
  if (status == DFLASH_OK) status = dflash_gate_read(gate, error);
  if (status == DFLASH_OK) dflash_gate_parity(gate);
  if (status == DFLASH_OK) status = dflash_gate_time(gate, error);
  if (status != DFLASH_OK) return status;
  judge_waivers(gate);
  return gate->failed_memory ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for findings") : DFLASH_OK;
}

static void gate_close(DflashGate *gate) {
  for (int64_t i = 0; i < gate->finding_count; i++) {
    free(gate->findings[i].name);
    free(gate->findings[i].message);
  }
  free(gate->findings);
  dflash_runs_comparison_close(&gate->pairs);
  dflash_runs_comparison_close(&gate->against);
  dflash_runs_close(&gate->results);
  dflash_runs_close(&gate->baseline);
  dflash_waivers_close(&gate->waivers);
}

int dflash_run_gate(const DflashGateOptions *options) {
  DflashGate gate = {.options = options};
  DflashError error = {0};
  DflashStatus status = judge(&gate, &error);
  int result = dflash_gate_exit(&gate);
  if (status == DFLASH_OK && !options->quiet) dflash_gate_print(stdout, &gate, result);
  if (status == DFLASH_OK) status = dflash_gate_write(&gate, result, &error);
  if (status == DFLASH_OK && options->accept != NULL) status = dflash_gate_accept(&gate, &error);
  if (status != DFLASH_OK) {
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
    result = dflash_status_exit(status);
  }
  gate_close(&gate);
  return result;
}
