#include "run/dump_judge.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "load/dump.h"
#include "model/stage_table.h"
#include "run/offline.h"
#include "run/reproduce.h"

/* ---- which files are dumps ---- */

typedef struct Kind {
  bool read, is_dump;
} Kind;

/* Of a file that cannot be read nothing is sent. */
static int probe(void *context, DflashChild *child) {
  bool is_dump;
  dflash_child_hush(child, 1);
  if (dflash_dump_recognise(context, &is_dump, NULL) != DFLASH_OK) return 0;
  cJSON *record = cJSON_CreateObject();
  cJSON_AddBoolToObject(record, "is_dump", is_dump);
  dflash_child_send(child, record);
  cJSON_Delete(record);
  return 0;
}

static int take_probe(void *context, cJSON *record) {
  *(Kind *)context = (Kind){true, cJSON_IsTrue(cJSON_GetObjectItem(record, "is_dump"))};
  return 0;
}

int64_t dflash_dump_files(const DflashRunOptions *o, int64_t *unreadable) {
  int64_t count = 0;
  *unreadable = 0;
  for (int64_t i = 0; i < o->file_count; i++) {
    Kind kind = {0};
    DflashChildResult result;
    DflashError error = {0};
    void *path = (void *)o->files[i]; /* read only */
    if (dflash_isolate(probe, path, o->timeout_s, take_probe, &kind, &result, &error) != DFLASH_OK) continue;
    count += kind.is_dump;
    *unreadable += !kind.read;
  }
  return count;
}

/* ---- judging ---- */

static int mode_of(const DflashDumpEntry *e) {
  unsigned modes = 0;
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    if (dflash_modes_parse(e->texts[DFLASH_DUMP_MODE], &modes, NULL) == DFLASH_OK && modes == 1u << mode) return mode;
  return -1;
}

static bool selected(const DflashRunOptions *o, const DflashDumpEntry *e) {
  const char *check, *name = e->texts[DFLASH_DUMP_STAGE];
  int32_t stage = dflash_dump_stage(name, &check);
  char label[64];
  dflash_stage_label(stage, e->numbers[DFLASH_DUMP_LAYER], label);
  const int mode = mode_of(e);
  if (o->modes != 0 && (mode < 0 || (o->modes & 1u << mode) == 0)) return false;
  if (o->layer >= 0 &&
      (dflash_stage_row(stage)->scope != DFLASH_SCOPE_LAYER || e->numbers[DFLASH_DUMP_LAYER] != o->layer))
    return false;
  return dflash_glob_match(o->stages, name) || (check == NULL && dflash_glob_match(o->stages, label));
}

/* What is judged now counts; where the dump says something else, the note tells. */
static void note_changes(DflashVerdict *v, const DflashDumpEntry *e) {
  const char *then = e->texts[DFLASH_DUMP_OUTCOME];
  size_t used = (size_t)snprintf(v->note, sizeof v->note, "%s", e->texts[DFLASH_DUMP_NOTE]);
  if (used >= sizeof v->note) used = sizeof v->note - 1;
  const char *gap = used > 0 ? "; " : "";
  if (strcmp(then, dflash_outcome_name(v->outcome)) != 0)
    snprintf(v->note + used, sizeof v->note - used, "%sthe dump says %s", gap, then);
  else if (e->lambda != DFLASH_LAMBDA)
    snprintf(v->note + used, sizeof v->note - used, "%sjudged with lambda %g then", gap, e->lambda);
}

static void judge_entry(DflashVerdicts *verdicts, const DflashDumpEntry *e) {
  const char *check;
  int32_t stage = dflash_dump_stage(e->texts[DFLASH_DUMP_STAGE], &check);
  int64_t layer = e->numbers[DFLASH_DUMP_LAYER];
  bool layered = dflash_stage_row(stage)->scope == DFLASH_SCOPE_LAYER;
  DflashVerdict *v = dflash_verdict_add(verdicts, mode_of(e), check != NULL ? DFLASH_STAGE_NONE : stage,
                                        check != NULL && !layered ? -1 : layer, check);
  const DflashCompareCall call = {.geometry = e->geometry,
                                  .stage = stage,
                                  .rows = e->rows,
                                  .width = e->width,
                                  .position = e->numbers[DFLASH_DUMP_POSITION],
                                  .got = e->got,
                                  .golden = e->expected,
                                  .sigma = e->sigma};
  dflash_compare_values(&call, &v->comparison);
  v->compared = true;
  v->inherited = e->numbers[DFLASH_DUMP_INHERITED] == 1;
  v->outcome = e->numbers[DFLASH_DUMP_DAMAGE] != 0 ? DFLASH_OUTCOME_OVERRUN : v->comparison.outcome;
  note_changes(v, e);
}

/* Entries of one case of one run follow each other. */
static bool same_case(const DflashDumpEntry *a, const DflashDumpEntry *b) {
  static const int parts[] = {DFLASH_DUMP_GOLDEN, DFLASH_DUMP_CASE, DFLASH_DUMP_BACKEND, DFLASH_DUMP_DEVICE,
                              DFLASH_DUMP_PROFILE};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (strcmp(a->texts[parts[i]], b->texts[parts[i]]) != 0) return false;
  return true;
}

/* Of what was asked for, the first failure stands by itself, wherever its error came from. */
static void lead(DflashVerdicts *verdicts, int64_t first) {
  static const char inherited[] = "inherited: ";
  DflashVerdict *v = &verdicts->at[first];
  v->inherited = false;
  if (strncmp(v->note, inherited, sizeof inherited - 1) == 0)
    memmove(v->note, v->note + sizeof inherited - 1, strlen(v->note + sizeof inherited - 1) + 1);
}

/* The entries that are judged, in the order of their verdicts: the one with this index, from `at` on. */
static const DflashDumpEntry *judged_entry(const DflashRunOptions *o, const DflashDump *dump, int64_t at,
                                           int64_t index) {
  for (;; at++)
    if (selected(o, dflash_dump_at(dump, at)) && index-- == 0) return dflash_dump_at(dump, at);
}

/* e: the entry that fails first, or any of the case. */
static DflashStatus report_case(DflashOffline *offline, const DflashDumpEntry *e, const DflashVerdicts *verdicts,
                                DflashError *error) {
  unsigned modes = 0;
  char text[32];
  for (int64_t i = 0; i < verdicts->count; i++) modes |= 1u << verdicts->at[i].mode;
  DflashOfflineCase c = {.name = e->texts[DFLASH_DUMP_CASE],
                         .modes = dflash_modes_text(modes, text),
                         .backend = e->texts[DFLASH_DUMP_BACKEND],
                         .device = e->texts[DFLASH_DUMP_DEVICE],
                         .profile = e->texts[DFLASH_DUMP_PROFILE]};
  if (e->texts[DFLASH_DUMP_REPRODUCE][0] != '\0') c.reproduce = e->texts[DFLASH_DUMP_REPRODUCE];
  return dflash_offline_case(offline, &c, verdicts, error);
}

/* The entries from *at on that belong to one case. */
static DflashStatus judge_case(DflashOffline *offline, const DflashDump *dump, int64_t *at, DflashError *error) {
  const int64_t begin = *at;
  const DflashDumpEntry *first = dflash_dump_at(dump, begin);
  bool wanted = dflash_glob_match(offline->options->cases, first->texts[DFLASH_DUMP_CASE]);
  DflashVerdicts verdicts = {0};
  DflashStatus status = DFLASH_OK;
  dflash_offline_known(offline, first->texts[DFLASH_DUMP_CASE]);
  for (; *at < dflash_dump_count(dump) && same_case(first, dflash_dump_at(dump, *at)); (*at)++)
    if (wanted && selected(offline->options, dflash_dump_at(dump, *at)))
      judge_entry(&verdicts, dflash_dump_at(dump, *at));
  const DflashVerdict *failure = dflash_verdicts_first(&verdicts);
  if (verdicts.count > 0 && failure != NULL) {
    const int64_t index = failure - verdicts.at;
    lead(&verdicts, index);
    first = judged_entry(offline->options, dump, begin, index);
  }
  if (wanted) status = report_case(offline, first, &verdicts, error);
  dflash_verdicts_close(&verdicts);
  return status;
}

static DflashStatus check_modes(const DflashDump *dump, const char *file, DflashError *error) {
  for (int64_t i = 0; i < dflash_dump_count(dump); i++)
    if (mode_of(dflash_dump_at(dump, i)) < 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: entry %lld: mode \"%.32s\" is unknown", file,
                              (long long)i, dflash_dump_at(dump, i)->texts[DFLASH_DUMP_MODE]);
  return DFLASH_OK;
}

static DflashStatus judge_dump(DflashOffline *offline, DflashError *error) {
  DflashDump *dump;
  DflashStatus status = dflash_dump_open(offline->file, &dump, error);
  if (status != DFLASH_OK) return status;
  status = check_modes(dump, offline->file, error);
  for (int64_t at = 0; status == DFLASH_OK && at < dflash_dump_count(dump);)
    status = judge_case(offline, dump, &at, error);
  dflash_child_hush(offline->child, 0);
  if (status == DFLASH_OK && dflash_dump_left_out(dump) > 0)
    dflash_log(DFLASH_LOG_WARNING, "%s: leaves out %lld more failing values, which did not fit", offline->file,
               (long long)dflash_dump_left_out(dump));
  dflash_dump_close(dump);
  return status;
}

int dflash_run_dumps(const DflashRunOptions *o) { return dflash_offline_run(o, o->file_count, "dump", judge_dump); }
