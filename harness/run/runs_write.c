/* Comparisons as records and as Markdown. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "run/runs_report.h"
#include "store/fields.h"
#include "store/store.h"

static const char *const unit_names[] = {"pairs", "together", "apart", "one each"};

static void add_number(cJSON *object, const char *name, double value) {
  if (!isnan(value)) cJSON_AddNumberToObject(object, name, value);
}

static void add_shift(cJSON *object, const DflashTimeShift *s) {
  add_number(object, "a_ns", s->a);
  add_number(object, "b_ns", s->b);
  add_number(object, "change", s->shift);
  add_number(object, "low", s->low);
  add_number(object, "high", s->high);
}

static void add_judged(cJSON *object, const DflashTimeShift *s) {
  add_shift(object, s);
  cJSON_AddNumberToObject(object, "p", s->p);
  cJSON_AddNumberToObject(object, "rate", s->rate);
  cJSON_AddStringToObject(object, "verdict", dflash_time_verdict_name(s->verdict));
}

static void add_parts(cJSON *record, const char *list, const DflashNamedPart *parts, int64_t count) {
  cJSON *array = cJSON_AddArrayToObject(record, list);
  for (int64_t i = 0; i < count; i++) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", parts[i].name);
    if (parts[i].part.item.weight > 0)
      add_judged(object, &parts[i].part.item.shift);
    else
      add_shift(object, &parts[i].part.item.shift);
    add_number(object, "of_block", parts[i].part.moved);
    cJSON_AddItemToArray(array, object);
  }
}

static void add_line(cJSON *record, const char *name, DflashText *line) {
  if (line->size > 0) cJSON_AddStringToObject(record, name, line->data);
  dflash_text_free(line);
}

static void add_texts(cJSON *record, const DflashCaseComparison *one) {
  DflashText assumed = {0}, made = {0}, line = {0};
  dflash_case_comparison_line(one, &line);
  add_line(record, "message", &line);
  dflash_case_comparison_assumed(one, &assumed);
  add_line(record, "assumed", &assumed);
  dflash_case_comparison_made(one, &made);
  add_line(record, "differs", &made);
}

static void add_keys(cJSON *record, const DflashCaseComparison *one) {
  char text[DFLASH_KEY_TEXT];
  const DflashResult *any = one->a[0] != NULL ? one->a[0] : one->b[0];
  for (int key = 0; key < DFLASH_KEY_COUNT; key++)
    cJSON_AddStringToObject(record, dflash_key_name(key), dflash_result_key(any, key, text));
  cJSON_AddStringToObject(record, "file", dflash_field_text(any->bench, "file"));
  if (one->a[0] != NULL && one->b[0] != NULL)
    cJSON_AddStringToObject(record, "backend_b", dflash_result_key(one->b[0], DFLASH_KEY_BACKEND, text));
}

cJSON *dflash_case_comparison_record(const DflashCaseComparison *one) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "comparison");
  add_keys(record, one);
  cJSON_AddStringToObject(record, "verdict", dflash_time_verdict_name(dflash_case_comparison_verdict(one)));
  add_texts(record, one);
  cJSON_AddNumberToObject(record, "a_count", (double)one->a_count);
  cJSON_AddNumberToObject(record, "b_count", (double)one->b_count);
  cJSON_AddNumberToObject(record, "left_out", (double)one->left_out);
  cJSON_AddStringToObject(record, "units", unit_names[one->units]);
  cJSON_AddNumberToObject(record, "rate", one->rate);
  cJSON_AddNumberToObject(record, "share", one->share);
  cJSON_AddNumberToObject(record, "between", one->between);
  if (one->why[0] != '\0') return record;
  cJSON_AddNumberToObject(record, "least", (double)one->whole.least);
  cJSON_AddNumberToObject(record, "least_group", (double)one->whole.least_parts);
  if (isfinite(one->whole.whole.visible)) cJSON_AddNumberToObject(record, "visible", one->whole.whole.visible);
  add_judged(cJSON_AddObjectToObject(record, "block"), &one->whole.whole);
  if (one->whole.place >= 0) cJSON_AddStringToObject(record, "place", one->groups[one->whole.place].name);
  add_parts(record, "groups", one->groups, one->group_count);
  add_parts(record, "stages", one->stages, one->stage_count);
  return record;
}

void dflash_runs_append(DflashText *out, const cJSON *record) {
  char *line = record != NULL ? dflash_record_line(record) : NULL;
  if (line != NULL) dflash_text_append(out, "%s\n", line);
  out->failed = out->failed || line == NULL;
  free(line);
}

void dflash_runs_append_new(DflashText *out, cJSON *record) {
  if (record != NULL) cJSON_AddStringToObject(record, "schema", DFLASH_RECORD_SCHEMA);
  if (record != NULL) cJSON_AddNumberToObject(record, "version", DFLASH_RECORD_VERSION);
  dflash_runs_append(out, record);
  cJSON_Delete(record);
}

DflashStatus dflash_runs_write(const char *path, const DflashRunsComparison *comparison, int exit_status,
                               DflashError *error) {
  DflashText out = {0};
  for (int64_t i = 0; i < comparison->count; i++)
    dflash_runs_append_new(&out, dflash_case_comparison_record(&comparison->cases[i]));
  cJSON *summary = cJSON_CreateObject();
  cJSON_AddStringToObject(summary, "type", "summary");
  cJSON_AddNumberToObject(summary, "cases", (double)comparison->count);
  cJSON_AddNumberToObject(summary, "exit", exit_status);
  dflash_runs_append_new(&out, summary);
  DflashStatus status = out.failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for records", path)
                                   : dflash_write_file(path, out.data, out.size, error);
  dflash_text_free(&out);
  return status;
}

static void append_markdown_row(DflashText *out, const char *name, const DflashTimeShift *s, double moved,
                                const char *verdict) {
  dflash_text_append(out, "| %s | %.6g | %.6g | %+.2f%% | ", name, s->a * 1e-6, s->b * 1e-6, 100 * s->shift);
  if (!isnan(s->low)) dflash_text_append(out, "%+.2f%% to %+.2f%%", 100 * s->low, 100 * s->high);
  dflash_text_append(out, " | %+.2f%% | %s |\n", 100 * moved, verdict);
}

static void append_markdown_case(DflashText *out, const DflashRunsComparison *comparison,
                                 const DflashCaseComparison *one) {
  dflash_text_append(out, "### ");
  dflash_case_comparison_title(one, out);
  dflash_text_append(out, "\n\n**");
  dflash_case_comparison_line(one, out);
  dflash_text_append(out, "**\n\n");
  if (one->why[0] != '\0') return;
  dflash_text_append(out, "| what | A, ms | B, ms | change | 95%% interval | of block | verdict |\n"
                          "|---|--:|--:|--:|---|--:|---|\n");
  append_markdown_row(out, "block", &one->whole.whole, one->whole.whole.shift,
                      dflash_time_verdict_name(one->whole.whole.verdict));
  for (int64_t i = 0; i < one->group_count; i++) {
    const DflashTimesPart *part = &one->groups[i].part;
    append_markdown_row(out, one->groups[i].name, &part->item.shift, part->moved,
                        part->item.weight > 0 ? dflash_time_verdict_name(part->item.shift.verdict) : "locates");
  }
  dflash_text_append(out, "\n- ");
  dflash_case_comparison_assumed(one, out);
  dflash_text_append(out, "\n- ");
  dflash_case_comparison_visible(comparison, one, out);
  dflash_text_append(out, "\n\n");
}

void dflash_runs_markdown(DflashText *out, const DflashRunsComparison *comparison) {
  for (int64_t i = 0; i < comparison->count; i++) append_markdown_case(out, comparison, &comparison->cases[i]);
}
