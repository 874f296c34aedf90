/* Runs for tests of the history. */
#ifndef DFLASH_TESTS_HISTORY_RUNS_H
#define DFLASH_TESTS_HISTORY_RUNS_H

#include <time.h>

#include "records.h"

#include "base/text.h"
#include "store/fields.h"
#include "store/history.h"

#define HISTORY DFLASH_SCRATCH_FOLDER "/history-" HISTORY_NAME ".db" /* tests run side by side */
#define DAY 86400
#define FIRST_DAY 1790000000 /* 2026-09-21T14:13:20Z */

static inline void remove_history(const char *path) {
  char journal[300];
  snprintf(journal, sizeof journal, "%s-journal", path);
  unlink(path);
  unlink(journal);
}

static inline DflashHistory *open_history(const char *path, DflashHistoryAccess access) {
  DflashHistory *history = NULL;
  DflashError error = {0};
  if (dflash_history_open(path, access, &history, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return history;
}

/* Fails; the message begins with the path and holds the part. */
static inline void expect_refused(const char *path, DflashHistoryAccess access, DflashStatus status, const char *part) {
  DflashHistory *history = NULL;
  DflashError error = {0};
  assert_int_equal(dflash_history_open(path, access, &history, &error), status);
  assert_null(history);
  assert_memory_equal(error.message, path, strlen(path));
  if (!strstr(error.message, part)) fail_msg("'%s' lacks '%s'", error.message, part);
}

static inline void add(DflashText *lines, const char *text) {
  cJSON *record = make_record(text);
  char *line = dflash_record_line(record);
  dflash_text_append(lines, "{\"schema\":\"dflash-record\",\"version\":1,%s\n", line + 1);
  free(line);
  cJSON_Delete(record);
}

static inline void add_run(DflashText *lines, const char *command, int day, const char *revision) {
  char text[600], when[32];
  time_t seconds = FIRST_DAY + (time_t)day * DAY;
  struct tm utc;
  strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
  snprintf(text, sizeof text,
           "{'type':'run','id':'%s-%d','command':'dflash-harness %s a.h5','backend':'blas','tool':'dflash-harness 1',"
           "'environment':{'time':'%s','revision':'%s','dirty':'no','host':'h','cpu':'C 1','cpus_allowed':4,"
           "'memory_total_bytes':8589934592}}",
           command, day, command, when, revision);
  add(lines, text);
}

static inline void add_model(DflashText *lines, const char *backend) {
  char text[400];
  snprintf(text, sizeof text,
           "{'type':'model','file':'dir/a.h5','backend':'%s','device':'0','profile':'exact','device_name':'D',"
           "'driver':'d 7','backend_version':'3'}",
           backend);
  add(lines, text);
}

/* Verdicts of a case and its case record. */
static inline void add_case(DflashText *lines, const char *backend, const char *name, const char *outcome,
                            double score) {
  char text[600];
  snprintf(
      text, sizeof text,
      "{'type':'verdict','file':'dir/a.h5','case':'%s','backend':'%s','device':'0','profile':'exact','mode':'chain',"
      "'stage':'attn.mix','layer':2,'outcome':'%s','score':%.17g,'got':-0.125,'expected':1e-300}",
      name, backend, outcome, score);
  add(lines, text);
  snprintf(text, sizeof text,
           "{'type':'case','file':'dir/a.h5','case':'%s','backend':'%s','device':'0','profile':'exact',"
           "'modes':'alone,chain','inputs_hash':'ab12cd34ef','values_hash':'99','outcome':'%s','passed':%d,'failed':%d,"
           "'other':0,'largest_score':%.17g,'elapsed_s':0.5,'settings':'repeat=2 backend_file=ff00 values=1 scales=2'}",
           name, backend, outcome, strcmp(outcome, "pass") == 0, strcmp(outcome, "pass") != 0, score);
  add(lines, text);
}

static inline void add_bench(DflashText *lines, const char *backend, double median) {
  char text[900];
  snprintf(
      text, sizeof text,
      "{'type':'bench','file':'dir/a.h5','case':'main','backend':'%s','device':'0','profile':'exact',"
      "'stopped_by':'count','block':{'device':{'n':6,'min':1,'median':%.17g,'low':%.17g,'high':%.17g},"
      "'wall':{'median':%.17g},'cpu':{'median':7.5}},'stages':[{'stage':'attn.mix','layer':0,'time':{'median':3}}],"
      "'groups':[{'group':'head','ns':12},{'group':'select','ns':2.5}],'samples':[5,4,6,5,5,4],"
      "'state_before':{'other_users':1,'throttle':4},'state_after':{'other_users':3,'throttle':1},"
      "'environment':{'load':[1.5,2,3],'revision':'%s','dirty':'yes'}}",
      backend, median, median - 1, median + 1, median + 2, "beef");
  add(lines, text);
  snprintf(
      text, sizeof text,
      "{'type':'case','file':'dir/a.h5','case':'main','backend':'%s','device':'0','profile':'exact','modes':'bench',"
      "'inputs_hash':'ab12cd34ef','outcome':'pass','passed':1,'failed':0,'other':0,'largest_score':0.25,"
      "'settings':'cold backend_file=ff00'}",
      backend);
  add(lines, text);
}

static inline void add_summary(DflashText *lines, int exit) {
  char text[120];
  snprintf(text, sizeof text, "{'type':'summary','cases':1,'passed':1,'failed':0,'exit':%d,'elapsed_s':2.5}", exit);
  add(lines, text);
}

static inline DflashHistoryCounts import(DflashHistory *history, const DflashText *lines) {
  DflashHistoryCounts counts;
  DflashError error = {0};
  if (dflash_history_import_text(history, "lines", lines->data, lines->size, &counts, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  return counts;
}

static inline int append_line(void *context, const cJSON *record) {
  char *line = dflash_record_line(record);
  assert_non_null(line);
  dflash_text_append(context, "%s\n", line);
  free(line);
  return 0;
}

/* Everything that matches, as text. */
static inline DflashText export(DflashHistory *history, const DflashHistoryFilter *filter, int64_t results) {
  DflashText text = {0};
  DflashError error = {0};
  int64_t found;
  dflash_text_append(&text, "%s", "");
  if (dflash_history_export(history, filter, append_line, &text, &found, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  assert_int_equal(found, results);
  return text;
}

/* What import puts in and export gives back is the same text. */
static inline void expect_export(DflashHistory *history, const DflashHistoryFilter *filter, int64_t results,
                                 const DflashText *lines) {
  DflashText text = export(history, filter, results);
  assert_string_equal(text.data, lines->data);
  dflash_text_free(&text);
}

#endif
