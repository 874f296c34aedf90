/* What a self test found, for a person and as records. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "run/selftest_parts.h"
#include "run/verdict.h"
#include "store/store.h"
#include "store/table.h"

enum { KINDS_MOST = 32 };

typedef struct Counts {
  const char *kind;
  int64_t defects, found, placed, end, end_found, excused;
} Counts;

typedef struct Summary {
  Counts kinds[KINDS_MOST], all;
  int kind_count;
  int64_t lawful, correct, alarms; /* trials of lawful variants and of the base alone, and those that failed */
  int64_t declined;                /* of those, in profiles that the base has not */
  int64_t broken;                  /* trials that could not be judged */
  double smallest, largest;        /* score of a defect that was found, of a correct run that passed */
  const char *smallest_of, *largest_at;
} Summary;

static Counts *counts_of(Summary *s, const char *kind) {
  for (int i = 0; i < s->kind_count; i++)
    if (strcmp(s->kinds[i].kind, kind) == 0) return &s->kinds[i];
  if (s->kind_count == KINDS_MOST) return &s->kinds[KINDS_MOST - 1];
  s->kinds[s->kind_count] = (Counts){.kind = kind};
  return &s->kinds[s->kind_count++];
}

static void count_defect(Summary *s, Counts *c, const DflashSelfTrial *t) {
  bool found = dflash_self_found(t);
  if (t->end) {
    c->end++;
    c->end_found += found;
    return;
  }
  c->defects++;
  c->found += found;
  c->placed += dflash_self_placed(t);
  c->excused += t->defect->hidden != NULL;
  if (!found || t->result.score >= s->smallest) return;
  s->smallest = t->result.score;
  s->smallest_of = t->defect->id;
}

static void count_correct(Summary *s, const DflashSelfTrial *t) {
  s->correct += t->defect == NULL;
  s->lawful += t->defect != NULL;
  s->alarms += dflash_self_found(t);
  if (t->end || t->result.largest_passing <= s->largest) return;
  s->largest = t->result.largest_passing;
  s->largest_at = t->defect != NULL ? t->defect->id : t->golden->name;
}

/* A correct run in a profile that the base has not: no alarm, and no proof either. */
static bool declined(const DflashSelfTrial *t) {
  return t->ran && t->error.status == DFLASH_UNSUPPORTED && (t->defect == NULL || t->defect->lawful);
}

static void summarise(const DflashSelfTest *test, Summary *s) {
  *s = (Summary){.smallest = INFINITY, .smallest_of = "none", .largest_at = "none"};
  for (int64_t i = 0; i < test->trial_count; i++) {
    const DflashSelfTrial *t = &test->trials[i];
    if (declined(t)) {
      s->declined++;
      continue;
    }
    bool judged = dflash_self_judged(t);
    s->broken += !judged;
    if (t->defect == NULL || t->defect->lawful) {
      if (judged) count_correct(s, t);
      continue;
    }
    count_defect(s, counts_of(s, t->defect->kind), t);
    count_defect(s, &s->all, t);
  }
}

static void print_row(DflashTable *table, const char *name, const Counts *c) {
  bool whole = c->found == c->defects, end = c->end_found == c->end;
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%s", name);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->defects);
  dflash_table_cell(table, whole ? DFLASH_COLOUR_NONE : DFLASH_COLOUR_BAD, "%lld", (long long)c->found);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->placed);
  dflash_table_cell(table, end ? DFLASH_COLOUR_NONE : DFLASH_COLOUR_BAD, "%lld of %lld", (long long)c->end_found,
                    (long long)c->end);
  dflash_table_cell(table, DFLASH_COLOUR_NONE, "%lld", (long long)c->excused);
}

static void print_table(const Summary *s) {
  DflashTable table = {.columns = "lrrrrr"};
  dflash_table_head(&table, "class,defects,found,at the stage,from end values,hidden there");
  for (int i = 0; i < s->kind_count; i++) print_row(&table, s->kinds[i].kind, &s->kinds[i]);
  print_row(&table, "all", &s->all);
  dflash_table_print(&table, stdout, 2, false);
}

static const char *why_not(const DflashSelfTrial *t) {
  if (!t->ran) return "did not run";
  return t->error.status != DFLASH_OK ? t->error.message : "nothing was judged";
}

/* Every trial that did not end as it should, by name. */
static void print_trial(const DflashSelfTrial *t, int verbose) {
  const char *id = t->defect != NULL ? t->defect->id : "no defect";
  bool correct = t->defect == NULL || t->defect->lawful, found = dflash_self_found(t);
  const char *what = t->end ? ", end values" : t->timing ? ", timed" : "";
  if (declined(t)) return;
  if (!dflash_self_judged(t))
    printf("  cannot tell: %s on %s%s: %s\n", id, t->golden->name, what, why_not(t));
  else if (correct && found)
    printf("  false alarm: %s on %s%s: %s\n", id, t->golden->name, what, t->result.message);
  else if (!correct && !found)
    printf("  missed: %s on %s%s; %s\n", id, t->golden->name, what, t->defect->about);
  else if (!correct && !t->end && !dflash_self_placed(t))
    printf("  elsewhere: %s on %s: expected at %s; %s\n", id, t->golden->name, t->defect->stage, t->result.message);
  else if (!correct && !t->end && t->result.score < 2)
    printf("  faint: %s on %s: score %.3g; %s\n", id, t->golden->name, t->result.score, t->result.message);
  else if (verbose && !correct)
    printf("  found: %s on %s%s: %s\n", id, t->golden->name, what, t->result.message);
}

static cJSON *trial_record(const DflashSelfTrial *t) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "defect");
  cJSON_AddStringToObject(record, "defect", t->defect != NULL ? t->defect->id : "");
  if (t->defect != NULL) {
    cJSON_AddStringToObject(record, "class", t->defect->kind);
    cJSON_AddStringToObject(record, "origin", t->defect->origin);
    if (t->defect->stage != NULL) cJSON_AddStringToObject(record, "expected_stage", t->defect->stage);
    if (t->defect->hidden != NULL) cJSON_AddStringToObject(record, "hidden", t->defect->hidden);
    cJSON_AddBoolToObject(record, "lawful", t->defect->lawful);
  }
  cJSON_AddStringToObject(record, "golden", t->golden->name);
  cJSON_AddStringToObject(record, "profile", dflash_profile_name(t->golden->profile));
  cJSON_AddBoolToObject(record, "end_values", t->end);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(t->result.outcome));
  cJSON_AddBoolToObject(record, "found", dflash_self_found(t));
  dflash_record_number(record, "largest_score", t->result.largest_passing);
  if (!dflash_self_found(t)) return record;
  cJSON_AddStringToObject(record, "stage", t->result.stage);
  cJSON_AddStringToObject(record, "mode", t->result.mode);
  dflash_record_number(record, "score", t->result.score);
  cJSON_AddStringToObject(record, "message", t->result.message);
  return record;
}

static DflashStatus write_records(const DflashSelfTest *test, DflashError *error) {
  const DflashStoreOptions options = {.json_path = test->options->run->json};
  DflashStore *store = NULL;
  if (options.json_path == NULL) return DFLASH_OK;
  DflashStatus status = dflash_store_open(&options, &store, error);
  if (status != DFLASH_OK) return status;
  for (int64_t i = 0; status == DFLASH_OK && i < test->trial_count; i++) {
    cJSON *record = trial_record(&test->trials[i]);
    status = record != NULL ? dflash_store_record(store, record, error)
                            : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
    cJSON_Delete(record);
  }
  DflashStatus closed = dflash_store_close(store, status == DFLASH_OK ? error : NULL);
  return status == DFLASH_OK ? closed : status;
}

/* Shares of the draws on which each defect was found; those below a twentieth with the golden that finds them. */
static void print_rates(const DflashSelfTest *test) {
  DflashTable table = {.columns = "lrrll"};
  dflash_table_head(&table, "defect,draws,found,share,golden that finds it");
  int64_t alarms = test->rates[test->defect_count].found, correct = test->rates[test->defect_count].tried;
  for (int64_t i = 0; i < test->defect_count; i++) {
    const DflashDefect *d = test->defects[i];
    const DflashSelfRate *r = &test->rates[i];
    if (d->lawful) {
      alarms += r->found;
      correct += r->tried;
      continue;
    }
    bool rare = r->tried == 0 || 20 * r->found < r->tried;
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s", d->id);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%lld", (long long)r->tried);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%lld", (long long)r->found);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%.1f%%",
                      r->tried > 0 ? 100.0 * (double)r->found / (double)r->tried : 0);
    dflash_table_cell(&table, DFLASH_COLOUR_NONE, "%s%s", rare ? d->goldens : "", d->timing ? " (timing)" : "");
  }
  dflash_table_print(&table, stdout, 2, false);
  printf("over %lld drawn goldens: %lld false alarms in %lld correct runs\n", (long long)test->options->draws,
         (long long)alarms, (long long)correct);
}

static int64_t drawn_alarms(const DflashSelfTest *test) {
  int64_t alarms = 0;
  for (int64_t i = 0; test->rates != NULL && i <= test->defect_count; i++) {
    bool correct = i == test->defect_count || test->defects[i]->lawful;
    alarms += test->rates[i].broken + (correct ? test->rates[i].found : 0);
  }
  return alarms;
}

static void print_summary(const Summary *s) {
  const Counts *c = &s->all;
  printf("mutation score: %lld of %lld defects found, %lld at the stage (%.1f%%); from end values %lld of %lld"
         " (%.1f%%), %lld hidden there\n",
         (long long)c->found, (long long)c->defects, (long long)c->placed,
         c->defects > 0 ? 100.0 * (double)c->placed / (double)c->defects : 0.0, (long long)c->end_found,
         (long long)c->end, c->end > 0 ? 100.0 * (double)c->end_found / (double)c->end : 0.0, (long long)c->excused);
  printf(
      "false alarms: %lld in %lld correct runs, %lld of lawful variants among them; %lld more are in profiles that the"
      " base has not\n",
      (long long)s->alarms, (long long)(s->correct + s->lawful), (long long)s->lawful, (long long)s->declined);
  printf("largest score of a correct run: %.3g (%s); smallest of a defect: %.3g (%s)\n", s->largest, s->largest_at,
         s->smallest, s->smallest_of);
}

int dflash_self_report(const DflashSelfTest *test) {
  Summary s;
  DflashError error = {0};
  summarise(test, &s);
  bool good = s.all.found == s.all.defects && s.alarms == 0 && s.broken == 0 && s.all.end_found == s.all.end &&
              100 * s.all.placed >= 95 * s.all.defects && s.smallest >= 2 && s.largest <= 0.7 &&
              drawn_alarms(test) == 0;
  if (!test->options->run->quiet || !good) {
    if (s.all.defects > 0) print_table(&s);
    for (int64_t i = 0; i < test->trial_count; i++) print_trial(&test->trials[i], test->options->run->verbose);
    if (test->rates != NULL) print_rates(test);
    print_summary(&s);
  }
  DflashStatus status = write_records(test, &error);
  if (status == DFLASH_OK) return good ? DFLASH_EXIT_OK : DFLASH_EXIT_WRONG;
  dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  return dflash_status_exit(status);
}
