#include "base/text.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and a NUL. */
static bool reserve(DflashText *text, size_t more) {
  if (text->failed) return false;
  size_t needed;
  if (__builtin_add_overflow(text->size, more, &needed) || needed > PTRDIFF_MAX / 2) {
    text->failed = true;
    return false;
  }
  if (text->data && needed < text->capacity) return true;
  size_t capacity = text->capacity ? text->capacity : 64;
  while (capacity <= needed) capacity *= 2;
  char *data = realloc(text->data, capacity);
  text->failed = !data;
  if (!data) return false;
  text->data = data;
  text->capacity = capacity;
  return true;
}

void dflash_text_bytes(DflashText *text, const char *data, size_t bytes) {
  if (!reserve(text, bytes)) return;
  if (bytes > 0) memcpy(text->data + text->size, data, bytes);
  text->size += bytes;
  text->data[text->size] = '\0';
}

void dflash_text_append(DflashText *text, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  if (length < 0) {
    text->failed = true;
  } else if (reserve(text, (size_t)length)) {
    vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
    text->size += (size_t)length;
  }
  va_end(again);
  va_end(arguments);
}

void dflash_text_free(DflashText *text) {
  free(text->data);
  *text = (DflashText){0};
}

void dflash_text_clean(char *text) {
  for (unsigned char *c = (unsigned char *)text; *c; c++) {
    if (*c < 0x20 || *c == 0x7f) *c = '?';
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) c[0] = c[1] = '?';
  }
}

static bool match_one(const char *pattern, size_t length, const char *name) {
  char *copy = strndup(pattern, length);
  bool matches = copy && fnmatch(copy, name, 0) == 0;
  free(copy);
  return matches;
}

bool dflash_glob_match(const char *patterns, const char *name) {
  if (!patterns || !*patterns) return true;
  for (const char *begin = patterns; *begin;) {
    size_t length = strcspn(begin, ",");
    if (length > 0 && match_one(begin, length, name)) return true;
    begin += length;
    if (*begin == ',') begin++;
  }
  return false;
}
