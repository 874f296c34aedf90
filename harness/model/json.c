#include "model/json.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"

/* Bytes of the character at text[0], 0 when it is not well-formed UTF-8 (surrogates and overlong forms are not). */
static uint64_t utf8_length(const unsigned char *text, uint64_t size) {
  unsigned char first = text[0];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  uint64_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length > size) return 0;
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (text[1] < low || text[1] > high) return 0;
  for (uint64_t i = 2; i < length; i++)
    if (text[i] < 0x80 || text[i] > 0xbf) return 0;
  return length;
}

bool dflash_utf8_valid(const void *text, uint64_t size) {
  const unsigned char *bytes = text;
  for (uint64_t at = 0; at < size;) {
    uint64_t length = utf8_length(bytes + at, size - at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

static bool only_blanks(const char *begin, const char *end) {
  while (begin < end && strchr(" \t\r\n", *begin) != NULL) begin++;
  return begin == end;
}

DflashStatus dflash_json_parse(const char *text, uint64_t size, const char *what, cJSON **object, DflashError *error) {
  *object = NULL;
  if (size == 0) return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is empty, expected a JSON object", what);
  if (size > DFLASH_JSON_LIMIT)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s has %llu bytes of JSON, at most %llu are read", what,
                            (unsigned long long)size, (unsigned long long)DFLASH_JSON_LIMIT);
  if (memchr(text, 0, size) != NULL || !dflash_utf8_valid(text, size))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is not JSON text in UTF-8", what);
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(text, size, &end, 0);
  if (root != NULL && cJSON_IsObject(root) && only_blanks(end, text + size)) {
    *object = root;
    return DFLASH_OK;
  }
  if (root != NULL && !cJSON_IsObject(root)) end = text;
  cJSON_Delete(root);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is not one JSON object (stopped at byte %lld of %llu)", what,
                          (long long)(end == NULL ? 0 : end - text), (unsigned long long)size);
}

const cJSON *dflash_json_get(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
  return cJSON_IsNull(item) ? NULL : item;
}

const char *dflash_json_text(const cJSON *object, const char *key) {
  return cJSON_GetStringValue(dflash_json_get(object, key));
}

bool dflash_json_integer(const cJSON *item, int64_t *value) {
  const double limit = 9007199254740992.0; /* 2^53 */
  if (!cJSON_IsNumber(item)) return false;
  double number = item->valuedouble;
  if (!(number >= -limit && number <= limit) || number != floor(number)) return false;
  *value = (int64_t)number;
  return true;
}
