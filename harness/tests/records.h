/* Records for tests of the store. */
#ifndef DFLASH_TESTS_RECORDS_H
#define DFLASH_TESTS_RECORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/file.h"
#include "store/store.h"

/* A record from JSON text with ' for ". */
static inline cJSON *make_record(const char *text) {
  char *json = strdup(text);
  assert_non_null(json);
  for (char *c = json; *c; c++)
    if (*c == '\'') *c = '"';
  cJSON *record = cJSON_Parse(json);
  if (!record) fail_msg("no JSON: %s", json);
  free(json);
  return record;
}

static inline void put_record(DflashStore *store, const char *text) {
  cJSON *record = make_record(text);
  DflashError error = {0};
  if (dflash_store_record(store, record, &error) != DFLASH_OK) fail_msg("%s", error.message);
  cJSON_Delete(record);
}

static inline DflashStore *open_store(const DflashStoreOptions *options) {
  DflashStore *store;
  DflashError error = {0};
  if (dflash_store_open(options, &store, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return store;
}

/* free() releases. */
static inline char *text_of_file(const char *path) {
  char *text;
  uint64_t size;
  DflashError error = {0};
  if (dflash_read_file(path, 64 << 20, &text, &size, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_int_equal(strlen(text), size);
  return text;
}

static inline int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) count++;
  return count;
}

#define RUN_RECORD "{'type':'run','command':'dflash-harness verify a.h5','environment':{'cpu':'c','load':[1,2]}}"
#define SHARED "'file':'dir/a.h5','backend':'blas','device':'cpu','profile':'exact','inputs_hash':'ab12'"
#define VERDICT_PASS                                                                         \
  "{'type':'verdict'," SHARED                                                                \
  ",'case':'one','mode':'alone','stage':'attn.mix','layer':2,'outcome':'pass','score':0.25," \
  "'elements':96,'bad':0}"
#define VERDICT_MISMATCH                                                                                          \
  "{'type':'verdict'," SHARED ",'case':'one','mode':'chain','stage':'mlp.kernel','layer':2,'outcome':'mismatch'," \
  "'score':41.25,'elements':96,'bad':17,'place':'row 3, side 1, tap 0, group 12','got':0.5,'expected':0.125,"     \
  "'pattern':'one row (3)'}"
#define CASE_PASS(name)                                                       \
  "{'type':'case'," SHARED ",'case':'" name                                   \
  "','modes':'alone,chain','outcome':'pass','passed':1,'failed':0,'other':0," \
  "'largest_score':0.25,'elapsed_s':0.5}"
#define CASE_MISMATCH                                                                                                  \
  "{'type':'case'," SHARED ",'case':'one','modes':'alone,chain','outcome':'mismatch','message':'mlp.kernel/2 is off'," \
  "'passed':1,'failed':1,'other':0,'largest_score':0.25,'elapsed_s':0.5,'reproduce':'dflash-harness verify dir/a.h5'}"
#define SUMMARY_RECORD \
  "{'type':'summary','cases':1,'passed':1,'failed':0,'skipped':0,'not_run':0,'exit':0,'elapsed_s':0.75}"

#endif
