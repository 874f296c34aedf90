#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "store/fields.h"
#include "store/writer.h"
#include "store/xml.h"

/* One suite: a test case per mode, stage and layer, and one per case, which carries its time and the command that
 * reproduces a failure. */
typedef struct Junit {
  char *path, *timestamp; /* timestamp: NULL until a run tells it */
  DflashText properties, cases;
  int64_t tests, failures, errors, skipped;
  double elapsed_s;
} Junit;

/* Readers cut a class name into packages at dots: those inside a part would mislead them. */
static void append_part(DflashText *out, const char *part, const char *before) {
  if (!*part) return;
  dflash_text_append(out, "%s", before);
  for (; *part; part++) dflash_text_bytes(out, *part == '.' ? "_" : part, 1);
}

/* Without its folder: tests keep their names wherever the file lies. */
static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* backend-profile.file.case.mode */
static void append_class(DflashText *out, const cJSON *record, const char *mode) {
  DflashText name = {0};
  append_part(&name, dflash_field_text(record, "backend"), "");
  append_part(&name, dflash_field_text(record, "profile"), name.size ? "-" : "");
  append_part(&name, base_name(dflash_field_text(record, "file")), name.size ? "." : "");
  append_part(&name, dflash_field_text(record, "case"), name.size ? "." : "");
  append_part(&name, mode, name.size ? "." : "");
  dflash_xml_attribute(out, "classname", name.data ? name.data : "");
  out->failed |= name.failed;
  dflash_text_free(&name);
}

static void append_value(DflashText *out, const cJSON *record, const char *name) {
  const cJSON *item = dflash_field(record, name);
  if (cJSON_IsString(item)) dflash_text_append(out, "%s: %s\n", name, item->valuestring);
  if (cJSON_IsNumber(item)) dflash_text_append(out, "%s: %.9g\n", name, item->valuedouble);
}

/* What a person needs from a record that failed, a line each. */
static void append_details(DflashText *out, const cJSON *record) {
  static const char *const names[] = {"message",  "place",   "got",  "expected", "score",       "sigma",    "bad",
                                      "elements", "pattern", "note", "runs",     "failed_runs", "reproduce"};
  DflashText details = {0};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) append_value(&details, record, names[i]);
  if (dflash_field_true(record, "inherited"))
    dflash_text_append(&details, "inherited: fails in the chain, passes on its own inputs\n");
  dflash_xml_text(out, details.data ? details.data : "");
  out->failed |= details.failed;
  dflash_text_free(&details);
}

/* The first of message and note, else what a value was and should have been, else nothing. */
static void append_reason(DflashText *out, const cJSON *record) {
  const char *message = dflash_field_text(record, "message"), *note = dflash_field_text(record, "note");
  const char *place = dflash_field_text(record, "place");
  if (*message || *note) {
    dflash_text_append(out, ": %s", *message ? message : note);
  } else if (*place) {
    dflash_text_append(out, " at %s: got %.9g, expected %.9g, score %.3g", place, dflash_field_number(record, "got"),
                       dflash_field_number(record, "expected"), dflash_field_number(record, "score"));
  }
}

/* <skipped/>, <failure> or <error> with a message of one line. */
static void append_element(DflashText *out, const cJSON *record, const char *element) {
  DflashText message = {0};
  const char *outcome = dflash_field_text(record, "outcome"), *covered_by = dflash_field_text(record, "covered_by");
  bool skipped = strcmp(element, "skipped") == 0;
  dflash_text_append(&message, "%s%s%s", outcome, *covered_by ? " by " : "", covered_by);
  append_reason(&message, record);
  dflash_text_append(out, "<%s", element);
  if (!skipped) dflash_xml_attribute(out, "type", outcome);
  dflash_xml_attribute(out, "message", message.data ? message.data : "");
  dflash_text_append(out, ">");
  if (!skipped) append_details(out, record);
  dflash_text_append(out, "</%s>", element);
  out->failed |= message.failed;
  dflash_text_free(&message);
}

static void append_outcome(Junit *junit, const cJSON *record) {
  junit->tests++;
  switch (dflash_outcome_class(dflash_field_text(record, "outcome"))) {
  case DFLASH_OUTCOME_PASSED:
    return;
  case DFLASH_OUTCOME_SKIPPED:
    if (dflash_field_true(record, "required")) break;
    junit->skipped++;
    append_element(&junit->cases, record, "skipped");
    return;
  case DFLASH_OUTCOME_BROKEN:
    junit->errors++;
    append_element(&junit->cases, record, "error");
    return;
  case DFLASH_OUTCOME_FAILED:
    break;
  }
  junit->failures++;
  append_element(&junit->cases, record, "failure");
}

static void append_test(Junit *junit, const cJSON *record, const char *mode, const char *name) {
  double elapsed = dflash_field_number(record, "elapsed_s");
  dflash_text_append(&junit->cases, "    <testcase");
  append_class(&junit->cases, record, mode);
  dflash_xml_attribute(&junit->cases, "name", name);
  if (isfinite(elapsed)) {
    dflash_text_append(&junit->cases, " time=\"%.6f\"", elapsed);
    junit->elapsed_s += elapsed;
  }
  dflash_text_append(&junit->cases, ">");
  append_outcome(junit, record);
  dflash_text_append(&junit->cases, "</testcase>\n");
}

static void append_verdict(Junit *junit, const cJSON *record) {
  char label[128];
  append_test(junit, record, dflash_field_text(record, "mode"), dflash_record_label(record, label, sizeof label));
}

static void append_property(DflashText *out, const cJSON *item) {
  char *printed = cJSON_IsString(item) ? NULL : dflash_record_line(item);
  dflash_text_append(out, "      <property");
  dflash_xml_attribute(out, "name", item->string);
  dflash_xml_attribute(out, "value", printed ? printed : item->valuestring ? item->valuestring : "");
  dflash_text_append(out, "/>\n");
  free(printed);
}

static void keep_timestamp(Junit *junit, const char *time) {
  if (!*time || junit->timestamp) return;
  junit->timestamp = strdup(time);
  junit->properties.failed |= !junit->timestamp;
}

static void append_run(Junit *junit, const cJSON *record) {
  static const char *const own[] = {"command", "tool", "backend"};
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
    const cJSON *item = dflash_field(record, own[i]);
    if (item) append_property(&junit->properties, item);
  }
  const cJSON *item, *environment = dflash_field(record, "environment");
  keep_timestamp(junit, dflash_field_text(environment, "time"));
  cJSON_ArrayForEach(item, environment) append_property(&junit->properties, item);
}

static void append_totals(DflashText *xml, const Junit *junit) {
  dflash_text_append(xml,
                     " name=\"dflash-harness\" tests=\"%lld\" failures=\"%lld\" errors=\"%lld\" skipped=\"%lld\" "
                     "time=\"%.6f\"",
                     (long long)junit->tests, (long long)junit->failures, (long long)junit->errors,
                     (long long)junit->skipped, junit->elapsed_s);
}

static DflashStatus write_whole(const Junit *junit, DflashError *error) {
  DflashText xml = {0};
  dflash_text_append(&xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
  append_totals(&xml, junit);
  dflash_text_append(&xml, ">\n  <testsuite");
  append_totals(&xml, junit);
  if (junit->timestamp) dflash_xml_attribute(&xml, "timestamp", junit->timestamp);
  dflash_text_append(&xml, ">\n");
  if (junit->properties.size)
    dflash_text_append(&xml, "    <properties>\n%s    </properties>\n", junit->properties.data);
  dflash_text_bytes(&xml, junit->cases.data, junit->cases.size);
  dflash_text_append(&xml, "  </testsuite>\n</testsuites>\n");
  DflashStatus status = DFLASH_OK;
  if (xml.failed || junit->cases.failed || junit->properties.failed)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its text", junit->path);
  else
    status = dflash_write_file(junit->path, xml.data, xml.size, error);
  dflash_text_free(&xml);
  return status;
}

static void append_record(Junit *junit, const cJSON *record) {
  if (dflash_record_is(record, "run")) append_run(junit, record);
  if (dflash_record_is(record, "verdict")) append_verdict(junit, record);
  if (dflash_record_is(record, "case")) append_test(junit, record, "", "case");
  if (dflash_record_is(record, "bad_input"))
    append_test(junit, record, "", dflash_field(record, "file") ? "read" : "command line");
}

static DflashStatus junit_record(void *self, const cJSON *record, DflashError *error) {
  append_record(self, record);
  return dflash_record_is(record, "case") ? write_whole(self, error) : DFLASH_OK;
}

/* Kept cases are many: one write follows them all. */
static DflashStatus junit_replayed(void *self, const cJSON *record, DflashError *error) {
  (void)error; /* memory that is out shows at the write */
  append_record(self, record);
  return DFLASH_OK;
}

static void release(Junit *junit) {
  dflash_text_free(&junit->properties);
  dflash_text_free(&junit->cases);
  free(junit->timestamp);
  free(junit->path);
  free(junit);
}

static DflashStatus junit_close(void *self, DflashError *error) {
  DflashStatus status = write_whole(self, error);
  release(self);
  return status;
}

/* Written at once, so that a path that cannot be written is known before the work is done. */
DflashStatus dflash_junit_open(const char *path, const DflashResume *resume, const char *kept, DflashWriter *writer,
                               DflashError *error) {
  Junit *junit = calloc(1, sizeof *junit);
  if (junit) junit->path = strdup(path);
  if (!junit || !junit->path) {
    free(junit);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its writer", path);
  }
  DflashWriter replay = {.self = junit, .record = junit_replayed};
  DflashStatus status = dflash_resume_replay(resume, kept, &replay, error);
  if (status == DFLASH_OK) status = write_whole(junit, error);
  if (status == DFLASH_OK)
    *writer = (DflashWriter){.self = junit, .record = junit_record, .close = junit_close};
  else
    release(junit);
  return status;
}
