#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/fields.h"

static bool is_utf8(const char *text) {
  while (*text) {
    size_t length = dflash_utf8_length(text);
    if (length == 0) return false;
    text += length;
  }
  return true;
}

static bool repair(char **text) {
  if (!*text || is_utf8(*text)) return true;
  DflashText valid = {0};
  dflash_text_utf8(&valid, *text);
  if (valid.failed) {
    dflash_text_free(&valid);
    return false;
  }
  free(*text);
  *text = valid.data;
  return true;
}

/* JSON has no literal for these. */
static bool spell_nonfinite(cJSON *item) {
  if (!cJSON_IsNumber(item) || isfinite(item->valuedouble)) return true;
  item->valuestring = strdup(isnan(item->valuedouble) ? "nan" : item->valuedouble > 0 ? "inf" : "-inf");
  if (item->valuestring) item->type = cJSON_String;
  return item->valuestring != NULL;
}

static bool make_printable(cJSON *item) {
  if (!spell_nonfinite(item) || !repair(&item->valuestring) || !repair(&item->string)) return false;
  for (cJSON *child = item->child; child; child = child->next)
    if (!make_printable(child)) return false;
  return true;
}

char *dflash_record_line(const cJSON *record) {
  cJSON *copy = cJSON_Duplicate(record, 1);
  char *line = copy && make_printable(copy) ? cJSON_PrintUnformatted(copy) : NULL;
  cJSON_Delete(copy);
  return line;
}
