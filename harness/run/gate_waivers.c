#include "run/gate_waivers.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/json.h"

#define FILE_LIMIT (UINT64_C(1) << 20)

static const char *const members[] = {"id", "device", "case", "stage", "until", "why", "score", "time_share"};

bool dflash_day_valid(const char *day) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int number[3] = {0}, part = 0;
  if (day == NULL || strlen(day) != 10 || day[4] != '-' || day[7] != '-') return false;
  for (int i = 0; i < 10; i++) {
    if (i == 4 || i == 7) {
      part++;
      continue;
    }
    if (day[i] < '0' || day[i] > '9') return false;
    number[part] = 10 * number[part] + (day[i] - '0');
  }
  const bool leap = (number[0] % 4 == 0 && number[0] % 100 != 0) || number[0] % 400 == 0;
  if (number[1] < 1 || number[1] > 12 || number[2] < 1) return false;
  return number[2] <= lengths[number[1] - 1] + (leap && number[1] == 2);
}

/* NULL when all is well, else what is wrong with a member. */
static const char *check_members(const cJSON *object) {
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    bool known = false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
      known = known || strcmp(item->string, members[i]) == 0;
    if (!known)
      return "has a member that is not known; there are id, device, case, stage, until, why, score, time_share";
    for (const cJSON *other = item->next; other != NULL; other = other->next)
      if (strcmp(other->string, item->string) == 0) return "has a member twice";
    const bool number = strcmp(item->string, "score") == 0 || strcmp(item->string, "time_share") == 0;
    if (number ? !cJSON_IsNumber(item) : !cJSON_IsString(item) || item->valuestring[0] == '\0')
      return number ? "has a score or time_share that is no number" : "has a text that is empty or none";
  }
  return NULL;
}

static double number_of(const cJSON *object, const char *name) {
  const cJSON *item = dflash_json_get(object, name);
  return item != NULL ? item->valuedouble : NAN;
}

static const char *check_waiver(const DflashWaiver *w) {
  if (w->id == NULL || w->device == NULL || w->until == NULL || w->why == NULL)
    return "needs id, device, until and why";
  if (w->case_name == NULL && w->stage == NULL) return "needs a case or a stage";
  if (!dflash_day_valid(w->until)) return "has an until that is no day such as 2027-01-31";
  if (isnan(w->score) && isnan(w->time_share)) return "needs a score or a time_share";
  if (!isnan(w->score) && !(w->score > 1 && isfinite(w->score))) return "has a score that is not above 1";
  if (!isnan(w->time_share) && !(w->time_share > 0 && w->time_share <= 10)) return "has a time_share outside 0 to 10";
  return NULL;
}

static DflashStatus refuse(const char *name, int64_t index, const char *id, const char *why, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: waiver %lld (%s) %s", name, (long long)index + 1,
                          id != NULL ? id : "no id", why);
}

static DflashStatus take(const cJSON *object, const char *name, DflashWaivers *waivers, DflashError *error) {
  const int64_t index = waivers->count;
  if (!cJSON_IsObject(object)) return refuse(name, index, NULL, "is no object", error);
  const char *wrong = check_members(object);
  if (wrong != NULL) return refuse(name, index, dflash_json_text(object, "id"), wrong, error);
  const DflashWaiver waiver = {.id = dflash_json_text(object, "id"),
                               .device = dflash_json_text(object, "device"),
                               .until = dflash_json_text(object, "until"),
                               .why = dflash_json_text(object, "why"),
                               .case_name = dflash_json_text(object, "case"),
                               .stage = dflash_json_text(object, "stage"),
                               .score = number_of(object, "score"),
                               .time_share = number_of(object, "time_share")};
  wrong = check_waiver(&waiver);
  if (wrong != NULL) return refuse(name, index, waiver.id, wrong, error);
  for (int64_t i = 0; i < index; i++)
    if (strcmp(waivers->at[i].id, waiver.id) == 0)
      return refuse(name, index, waiver.id, "has an id given twice", error);
  waivers->at[waivers->count++] = waiver;
  return DFLASH_OK;
}

DflashStatus dflash_waivers_parse(const char *text, uint64_t size, const char *name, DflashWaivers *waivers,
                                  DflashError *error) {
  *waivers = (DflashWaivers){0};
  DflashStatus status = dflash_json_parse(text, size, name, &waivers->file, error);
  const cJSON *list = dflash_json_get(waivers->file, "waivers"), *object;
  if (status != DFLASH_OK) return status;
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(waivers->file) != 1)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is not {\"waivers\": [...]} and nothing else", name);
  waivers->at = dflash_alloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *waivers->at);
  if (waivers->at == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for waivers", name);
  cJSON_ArrayForEach(object, list) if (status == DFLASH_OK) status = take(object, name, waivers, error);
  return status;
}

DflashStatus dflash_waivers_read(const char *path, DflashWaivers *waivers, DflashError *error) {
  char *text = NULL;
  uint64_t size = 0;
  *waivers = (DflashWaivers){0};
  DflashStatus status = dflash_read_file(path, FILE_LIMIT, &text, &size, error);
  if (status == DFLASH_OK) status = dflash_waivers_parse(text, size, path, waivers, error);
  free(text);
  return status;
}

void dflash_waivers_close(DflashWaivers *waivers) {
  cJSON_Delete(waivers->file);
  free(waivers->at);
  *waivers = (DflashWaivers){0};
}

static bool covers(const DflashWaiver *w, const DflashFault *fault) {
  const bool device = dflash_glob_match(w->device, fault->device) || dflash_glob_match(w->device, fault->device_name);
  const bool stage =
      w->stage == NULL || dflash_glob_match(w->stage, fault->stage) || dflash_glob_match(w->stage, fault->label);
  const bool measure = isnan(fault->score) ? fault->time_share <= w->time_share : fault->score <= w->score;
  return device && stage && measure && dflash_glob_match(w->case_name, fault->case_name);
}

DflashWaiver *dflash_waivers_find(DflashWaivers *waivers, const DflashFault *fault, const char *day,
                                  const DflashWaiver **expired) {
  for (int64_t i = 0; i < waivers->count; i++) {
    DflashWaiver *waiver = &waivers->at[i];
    if (!covers(waiver, fault)) continue;
    waiver->used = true;
    if (strcmp(day, waiver->until) <= 0) return waiver;
    *expired = waiver;
  }
  return NULL;
}
