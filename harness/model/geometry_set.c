/* A field from the text that a user typed. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model/geometry.h"

static const DflashField *find_field(const char *name) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++)
    if (strcmp(dflash_geometry_field(i)->name, name) == 0) return dflash_geometry_field(i);
  return NULL;
}

static DflashStatus unknown_field(const char *name, DflashError *error) {
  DflashText known = {0};
  for (size_t i = 0; i < dflash_geometry_field_count(); i++)
    dflash_text_append(&known, "%s%s", i ? ", " : "", dflash_geometry_field(i)->name);
  DflashStatus status =
      dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "geometry has no field '%.64s'; its fields are %s", name,
                       known.failed ? "those of the manual" : known.data);
  dflash_text_free(&known);
  return status;
}

/* One number that ends at `end`. */
static bool parse_entry(const char *begin, const char *end, int64_t *value) {
  char text[32];
  size_t length = (size_t)(end - begin);
  if (length >= sizeof text) return false;
  memcpy(text, begin, length);
  text[length] = '\0';
  return dflash_parse_i64(text, value);
}

static bool parse_list(const char *text, DflashList *list) {
  list->count = 0;
  if (*text == '\0') return true;
  for (;; text++) {
    const char *end = text + strcspn(text, ",");
    if (list->count == DFLASH_LIST_MAX || !parse_entry(text, end, &list->at[list->count])) return false;
    list->count++;
    text = end;
    if (*text == '\0') return true;
  }
}

static DflashStatus bad_value(const DflashField *field, const char *value, DflashError *error) {
  static const char *const expected[] = {
      [DFLASH_FIELD_I64] = "a whole number, for example 5120",
      [DFLASH_FIELD_F64] = "a number, for example 1e-6",
      [DFLASH_FIELD_LIST] = "at most 256 whole numbers joined by commas, for example 5,19,33, or nothing"};
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "geometry field %s is '%.64s'; expected %s", field->name,
                          value, expected[field->kind]);
}

DflashStatus dflash_geometry_set(DflashGeometry *geometry, const char *name, const char *value, DflashError *error) {
  const DflashField *field = find_field(name);
  if (!field) return unknown_field(name, error);
  void *target = (char *)geometry + field->offset;
  DflashList list = {0};
  switch (field->kind) {
  case DFLASH_FIELD_I64:
    return dflash_parse_i64(value, target) ? DFLASH_OK : bad_value(field, value, error);
  case DFLASH_FIELD_F64:
    return dflash_parse_f64(value, target) ? DFLASH_OK : bad_value(field, value, error);
  default:
    break;
  }
  if (!parse_list(value, &list)) return bad_value(field, value, error);
  *(DflashList *)target = list;
  return DFLASH_OK;
}
