/* The gate's verdict as records, JUnit and Markdown. */
#include <cjson/cJSON.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "run/gate_parts.h"
#include "run/runs_report.h"
#include "store/xml.h"

static void add_text(cJSON *record, const char *name, DflashText *text) {
  if (text->data != NULL) cJSON_AddStringToObject(record, name, text->data);
  dflash_text_free(text);
}

static cJSON *gate_record(const DflashGate *gate, int exit_status) {
  cJSON *record = cJSON_CreateObject();
  DflashText line = {0}, promise = {0};
  dflash_gate_line(gate, exit_status, &line);
  dflash_gate_promise(gate, &promise);
  cJSON_AddStringToObject(record, "type", "gate");
  cJSON_AddNumberToObject(record, "exit", exit_status);
  add_text(record, "message", &line);
  add_text(record, "promise", &promise);
  cJSON_AddStringToObject(record, "baseline", gate->options->baseline);
  cJSON_AddNumberToObject(record, "rate", gate->options->rule.compare.rate);
  cJSON_AddNumberToObject(record, "share", gate->options->rule.compare.share);
  cJSON *findings = cJSON_AddArrayToObject(record, "findings");
  for (int64_t i = 0; i < gate->finding_count; i++) {
    const DflashFinding *finding = &gate->findings[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", finding->kind);
    cJSON_AddStringToObject(object, "verdict", dflash_gate_verdict_name(finding->verdict));
    cJSON_AddStringToObject(object, "name", finding->name);
    cJSON_AddStringToObject(object, "message", finding->message);
    if (finding->times > 1) cJSON_AddNumberToObject(object, "times", (double)finding->times);
    cJSON_AddItemToArray(findings, object);
  }
  return record;
}

static void make_json(DflashText *out, const DflashGate *gate, int exit_status) {
  const DflashRunsComparison *both[] = {&gate->against, &gate->pairs};
  for (int i = 0; i < 2; i++)
    for (int64_t k = 0; k < both[i]->count; k++)
      dflash_runs_append_new(out, dflash_case_comparison_record(&both[i]->cases[k]));
  dflash_runs_append_new(out, gate_record(gate, exit_status));
}

/* What cannot be told is an error, what is noted or waived is skipped with its reason. */
static const char *element_of(int verdict) {
  if (verdict == DFLASH_GATE_FAILED) return "failure";
  if (verdict == DFLASH_GATE_CANNOT_TELL) return "error";
  return verdict == DFLASH_GATE_PASSED ? NULL : "skipped";
}

static int64_t count_element(const DflashGate *gate, const char *element) {
  int64_t count = 0;
  for (int64_t i = 0; i < gate->finding_count; i++) {
    const char *own = element_of(gate->findings[i].verdict);
    count += own != NULL && strcmp(own, element) == 0;
  }
  return count;
}

static void append_case(DflashText *out, const DflashFinding *finding) {
  const char *element = element_of(finding->verdict);
  dflash_text_append(out, "    <testcase");
  dflash_xml_attribute(out, "classname", finding->kind);
  dflash_xml_attribute(out, "name", finding->name);
  dflash_text_append(out, element == NULL ? "/>\n" : "><%s", element);
  if (element == NULL) return;
  dflash_xml_attribute(out, "message", finding->message);
  dflash_text_append(out, "/></testcase>\n");
}

static void make_junit(DflashText *out, const DflashGate *gate) {
  char totals[160];
  snprintf(totals, sizeof totals, "tests=\"%lld\" failures=\"%lld\" errors=\"%lld\" skipped=\"%lld\"",
           (long long)gate->finding_count, (long long)count_element(gate, "failure"),
           (long long)count_element(gate, "error"), (long long)count_element(gate, "skipped"));
  dflash_text_append(out,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites %s>\n  <testsuite name=\"gate\" %s>\n",
                     totals, totals);
  for (int64_t i = 0; i < gate->finding_count; i++) append_case(out, &gate->findings[i]);
  dflash_text_append(out, "  </testsuite>\n</testsuites>\n");
}

/* In a cell: a bar would end it. */
static void append_cell(DflashText *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '|' || *text == '<') dflash_text_append(out, "\\");
    dflash_text_bytes(out, text, 1);
  }
}

static void make_markdown(DflashText *out, const DflashGate *gate, int exit_status) {
  dflash_text_append(out, "# Gate\n\n**");
  dflash_gate_line(gate, exit_status, out);
  dflash_text_append(out, "** (exit status %d)\n\n", exit_status);
  dflash_gate_promise(gate, out);
  dflash_text_append(out, "\n\n| verdict | kind | what | why |\n|---|---|---|---|\n");
  for (int pass = DFLASH_GATE_FAILED; pass >= DFLASH_GATE_PASSED; pass--)
    for (int64_t i = 0; i < gate->finding_count; i++) {
      const DflashFinding *finding = &gate->findings[i];
      if (finding->verdict != pass) continue;
      dflash_text_append(out, "| %s | %s | ", dflash_gate_verdict_name(pass), finding->kind);
      append_cell(out, finding->name);
      dflash_text_append(out, " | ");
      append_cell(out, finding->message);
      if (finding->times > 1) dflash_text_append(out, "%lld processes", (long long)finding->times);
      dflash_text_append(out, " |\n");
    }
  dflash_text_append(out, "\n");
  dflash_runs_markdown(out, &gate->against);
  dflash_runs_markdown(out, &gate->pairs);
}

static DflashStatus write_text(const char *path, DflashText *text, DflashError *error) {
  DflashStatus status = text->failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path)
                                     : dflash_write_file(path, text->data, text->size, error);
  dflash_text_free(text);
  return status;
}

DflashStatus dflash_gate_write(const DflashGate *gate, int exit_status, DflashError *error) {
  const DflashGateOptions *o = gate->options;
  DflashText json = {0}, junit = {0}, markdown = {0};
  DflashStatus status = DFLASH_OK;
  if (o->json != NULL) make_json(&json, gate, exit_status);
  if (o->junit != NULL) make_junit(&junit, gate);
  if (o->markdown != NULL) make_markdown(&markdown, gate, exit_status);
  if (o->json != NULL) status = write_text(o->json, &json, error);
  if (status == DFLASH_OK && o->junit != NULL) status = write_text(o->junit, &junit, error);
  if (status == DFLASH_OK && o->markdown != NULL) status = write_text(o->markdown, &markdown, error);
  dflash_text_free(&junit);
  dflash_text_free(&markdown);
  return status;
}
