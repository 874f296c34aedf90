#include "run/verdict.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stage_table.h"

DflashVerdict *dflash_verdict_add(DflashVerdicts *list, int mode, int32_t stage, int64_t layer, const char *check) {
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity > 0 ? 2 * list->capacity : 256;
    DflashVerdict *grown = realloc(list->at, (size_t)capacity * sizeof *grown);
    if (grown == NULL) {
      list->failed = true;
      if (list->count > 0) return &list->at[list->count - 1];
      abort(); /* not even the first verdict fits: the case's child ends, and its parent says so */
    }
    list->at = grown;
    list->capacity = capacity;
  }
  DflashVerdict *verdict = &list->at[list->count++];
  *verdict = (DflashVerdict){.mode = mode,
                             .stage = stage,
                             .layer = layer,
                             .check = check,
                             .outcome = DFLASH_OUTCOME_NOT_RUN,
                             .covered_by = DFLASH_STAGE_NONE};
  return verdict;
}

void dflash_verdict_note(DflashVerdict *verdict, int outcome, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(verdict->note, sizeof verdict->note, format, arguments);
  va_end(arguments);
  verdict->outcome = outcome;
}

void dflash_verdicts_close(DflashVerdicts *list) {
  free(list->at);
  memset(list, 0, sizeof *list);
}

const char *dflash_verdict_label(const DflashVerdict *verdict, char text[64]) {
  if (verdict->stage != DFLASH_STAGE_NONE) return dflash_stage_label(verdict->stage, verdict->layer, text);
  if (verdict->layer < 0)
    snprintf(text, 64, "%s", verdict->check);
  else
    snprintf(text, 64, "%s/%lld", verdict->check, (long long)verdict->layer);
  return text;
}

static bool same_place(const DflashVerdict *a, const DflashVerdict *b) {
  if (a->stage != b->stage || a->layer != b->layer) return false;
  return a->stage != DFLASH_STAGE_NONE || strcmp(a->check, b->check) == 0;
}

/* The same place in another mode passed on its own inputs. */
static bool passed_elsewhere(const DflashVerdicts *list, const DflashVerdict *verdict) {
  for (int64_t i = 0; i < list->count; i++) {
    const DflashVerdict *other = &list->at[i];
    if (other->mode == DFLASH_MODE_CHAIN || !same_place(other, verdict)) continue;
    if (other->outcome == DFLASH_OUTCOME_PASS || other->outcome == DFLASH_OUTCOME_NEAR_TIE) return true;
  }
  return false;
}

/* Position in data-flow order; checks that are no stage come last, held context after its stages. */
static int64_t flow_rank(const DflashVerdict *v) {
  if (v->stage == DFLASH_STAGE_NONE) return strncmp(v->check, "context", 7) == 0 ? 8 : INT64_MAX;
  if (v->stage <= DFLASH_STAGE_CONTEXT_K) return v->stage;
  if (v->stage >= DFLASH_STAGE_FINAL_NORM) return INT64_MAX / 2 + v->stage;
  return 64 * (v->layer + 1) + v->stage;
}

static int mode_rank(int mode) { return mode == DFLASH_MODE_CHAIN ? 1 : 0; }

const DflashVerdict *dflash_verdicts_first(const DflashVerdicts *list) {
  const DflashVerdict *first = NULL;
  for (int64_t i = 0; i < list->count; i++) {
    const DflashVerdict *v = &list->at[i];
    if (!dflash_outcome_is_failure(v->outcome)) continue;
    if (first == NULL || flow_rank(v) < flow_rank(first) ||
        (flow_rank(v) == flow_rank(first) && mode_rank(v->mode) < mode_rank(first->mode)))
      first = v;
  }
  return first;
}

void dflash_verdicts_inherit(DflashVerdicts *list) {
  const DflashVerdict *origin = dflash_verdicts_first(list);
  for (int64_t i = 0; i < list->count; i++) {
    DflashVerdict *v = &list->at[i];
    if (v->mode != DFLASH_MODE_CHAIN || !dflash_outcome_is_failure(v->outcome) || v == origin) continue;
    if (!passed_elsewhere(list, v)) continue;
    v->inherited = true;
    char label[64];
    if (v->note[0] == '\0')
      snprintf(v->note, sizeof v->note, "inherited: passes on its own inputs; first divergence is at %s",
               dflash_verdict_label(origin, label));
  }
}

int dflash_verdicts_outcome(const DflashVerdicts *list, int allow_missing) {
  const DflashVerdict *first = dflash_verdicts_first(list);
  if (first != NULL) return first->outcome;
  bool passed = false, untrusted = false, unsupported = false;
  for (int64_t i = 0; i < list->count; i++) {
    int outcome = list->at[i].outcome;
    passed |= outcome == DFLASH_OUTCOME_PASS || outcome == DFLASH_OUTCOME_NEAR_TIE;
    untrusted |= outcome == DFLASH_OUTCOME_NOT_TRUSTED;
    unsupported |= outcome == DFLASH_OUTCOME_UNSUPPORTED;
  }
  if (unsupported && !(passed && allow_missing)) return DFLASH_OUTCOME_UNSUPPORTED;
  if (passed) return DFLASH_OUTCOME_PASS;
  if (untrusted) return DFLASH_OUTCOME_NOT_TRUSTED;
  return DFLASH_OUTCOME_NOT_RUN;
}

void dflash_verdict_message(const DflashVerdict *v, char *text, size_t size) {
  char label[64];
  dflash_verdict_label(v, label);
  const DflashComparison *c = &v->comparison;
  if (v->compared && c->place[0] != '\0' && c->bad > 0)
    snprintf(text, size,
             "%s (%s): %s at %s: got %.9g, expected %.9g, score %.3g; %lld of %lld elements off, %s%s%s%s%s%s", label,
             dflash_mode_name(v->mode), dflash_outcome_name(v->outcome), c->place, (double)c->got, (double)c->expected,
             c->score, (long long)c->bad, (long long)c->elements, c->pattern, c->cause[0] != '\0' ? " (usually: " : "",
             c->cause, c->cause[0] != '\0' ? ")" : "", v->note[0] != '\0' ? "; " : "", v->note);
  else
    snprintf(text, size, "%s (%s): %s%s%s", label, dflash_mode_name(v->mode), dflash_outcome_name(v->outcome),
             v->note[0] != '\0' ? ": " : "", v->note);
}

void dflash_record_number(cJSON *object, const char *name, double value) {
  if (isnan(value))
    cJSON_AddStringToObject(object, name, "nan");
  else if (isinf(value))
    cJSON_AddStringToObject(object, name, value > 0 ? "inf" : "-inf");
  else
    cJSON_AddNumberToObject(object, name, value);
}

static void add_comparison(cJSON *record, const DflashComparison *c) {
  dflash_record_number(record, "score", c->score);
  cJSON_AddNumberToObject(record, "elements", (double)c->elements);
  cJSON_AddNumberToObject(record, "bad", (double)c->bad);
  cJSON_AddStringToObject(record, "place", c->place);
  dflash_record_number(record, "got", (double)c->got);
  dflash_record_number(record, "expected", (double)c->expected);
  dflash_record_number(record, "sigma", c->sigma);
  cJSON_AddStringToObject(record, "pattern", c->pattern);
  if (c->cause[0] != '\0') cJSON_AddStringToObject(record, "cause", c->cause);
  dflash_record_number(record, "max_abs", c->metrics.max_abs);
  dflash_record_number(record, "max_rel", c->metrics.max_rel);
  dflash_record_number(record, "nmse", c->metrics.nmse);
  dflash_record_number(record, "cosine", c->metrics.cosine);
  dflash_record_number(record, "max_ulp", c->metrics.max_ulp);
}

cJSON *dflash_verdict_record(const DflashVerdict *v) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "verdict");
  cJSON_AddStringToObject(record, "mode", dflash_mode_name(v->mode));
  cJSON_AddStringToObject(record, "stage", v->stage != DFLASH_STAGE_NONE ? dflash_stage_row(v->stage)->name : v->check);
  bool layered =
      v->stage != DFLASH_STAGE_NONE ? dflash_stage_row(v->stage)->scope == DFLASH_SCOPE_LAYER : v->layer >= 0;
  if (layered) cJSON_AddNumberToObject(record, "layer", (double)v->layer);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(v->outcome));
  if (v->compared) add_comparison(record, &v->comparison);
  cJSON_AddBoolToObject(record, "inherited", v->inherited);
  if (v->covered_by != DFLASH_STAGE_NONE)
    cJSON_AddStringToObject(record, "covered_by", dflash_stage_row(v->covered_by)->name);
  if (v->note[0] != '\0') cJSON_AddStringToObject(record, "note", v->note);
  if (v->runs > 1) {
    cJSON_AddNumberToObject(record, "runs", (double)v->runs);
    cJSON_AddNumberToObject(record, "failed_runs", (double)v->failed_runs);
  }
  return record;
}
