/* Geometry as the JSON object of a sidecar's header. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>

#include "base/error.h"
#include "model/geometry.h"

/* Doubles below this are exact integers when they have no fraction; 2^53 itself may be a rounded 2^53 + 1. */
static const double integer_limit = 9007199254740992.0;

static const char *type_name(const cJSON *item) {
  switch (item->type & 0xff) {
  case cJSON_False:
  case cJSON_True:
    return "a boolean";
  case cJSON_NULL:
    return "null";
  case cJSON_Number:
    return "a number";
  case cJSON_String:
    return "a string";
  case cJSON_Array:
    return "an array";
  default:
    return "an object";
  }
}

static DflashStatus read_integer(const cJSON *item, const char *name, int64_t *value, DflashError *error) {
  if (!cJSON_IsNumber(item))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry key '%s' holds %s, expected an integer", name,
                            type_name(item));
  double number = item->valuedouble;
  if (!(fabs(number) < integer_limit) || number != floor(number))
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "geometry key '%s' holds %.17g, expected an integer below 2^53 in magnitude", name, number);
  *value = (int64_t)number;
  return DFLASH_OK;
}

static DflashStatus read_real(const cJSON *item, const char *name, double *value, DflashError *error) {
  if (!cJSON_IsNumber(item))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry key '%s' holds %s, expected a number", name,
                            type_name(item));
  *value = item->valuedouble;
  return DFLASH_OK;
}

static DflashStatus read_list(const cJSON *item, const char *name, DflashList *list, DflashError *error) {
  if (!cJSON_IsArray(item))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry key '%s' holds %s, expected an array of integers",
                            name, type_name(item));
  list->count = 0;
  const cJSON *entry;
  cJSON_ArrayForEach(entry, item) {
    if (list->count == DFLASH_LIST_MAX)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry key '%s' has more than %d entries", name,
                              DFLASH_LIST_MAX);
    DflashStatus status = read_integer(entry, name, &list->at[list->count], error);
    if (status != DFLASH_OK) return status;
    list->count++;
  }
  return DFLASH_OK;
}

static DflashStatus read_field(const cJSON *item, const DflashField *field, DflashGeometry *geometry,
                               DflashError *error) {
  void *target = (char *)geometry + field->offset;
  switch (field->kind) {
  case DFLASH_FIELD_I64:
    return read_integer(item, field->name, target, error);
  case DFLASH_FIELD_F64:
    return read_real(item, field->name, target, error);
  default:
    return read_list(item, field->name, target, error);
  }
}

DflashStatus dflash_geometry_from_json(const cJSON *object, DflashGeometry *geometry, DflashError *error) {
  if (!cJSON_IsObject(object))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry is %s, expected a JSON object",
                            object ? type_name(object) : "absent");
  DflashGeometry read = {0};
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field->name);
    if (!item && field->may_be_absent) continue;
    if (!item) return dflash_error_set(error, DFLASH_INVALID_DATA, "geometry key '%s' is absent", field->name);
    DflashStatus status = read_field(item, field, &read, error);
    if (status != DFLASH_OK) return status;
  }
  DflashStatus status = dflash_geometry_check(&read, error);
  if (status == DFLASH_OK) *geometry = read;
  return status;
}

static cJSON *list_to_json(const DflashList *list) {
  cJSON *array = cJSON_CreateArray();
  for (int64_t i = 0; array && i < list->count; i++) {
    cJSON *entry = cJSON_CreateNumber((double)list->at[i]);
    if (entry && cJSON_AddItemToArray(array, entry)) continue;
    cJSON_Delete(entry);
    cJSON_Delete(array);
    return NULL;
  }
  return array;
}

static cJSON *field_to_json(const DflashField *field, const DflashGeometry *geometry) {
  const void *source = (const char *)geometry + field->offset;
  switch (field->kind) {
  case DFLASH_FIELD_I64:
    return cJSON_CreateNumber((double)*(const int64_t *)source);
  case DFLASH_FIELD_F64:
    return cJSON_CreateNumber(*(const double *)source);
  default:
    return list_to_json(source);
  }
}

static int is_empty_list(const DflashField *field, const DflashGeometry *geometry) {
  return field->kind == DFLASH_FIELD_LIST &&
         ((const DflashList *)(const void *)((const char *)geometry + field->offset))->count == 0;
}

cJSON *dflash_geometry_to_json(const DflashGeometry *geometry) {
  cJSON *object = cJSON_CreateObject();
  for (size_t i = 0; object && i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    if (is_empty_list(field, geometry)) continue;
    cJSON *item = field_to_json(field, geometry);
    if (item && cJSON_AddItemToObject(object, field->name, item)) continue;
    cJSON_Delete(item);
    cJSON_Delete(object);
    return NULL;
  }
  return object;
}
