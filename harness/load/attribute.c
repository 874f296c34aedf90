#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/h5.h"

/* Text longer than this is no description or recipe. */
#define TEXT_MAX ((size_t)16 << 20)

typedef struct Attribute {
  hid_t id, type, space;
  const DflashNode *node;
  const char *name;
} Attribute;

bool dflash_attribute_has(const DflashNode *node, const char *name) { return H5Aexists(node->id, name) > 0; }

static void attribute_close(Attribute *attribute) {
  dflash_h5_close(attribute->space);
  dflash_h5_close(attribute->type);
  dflash_h5_close(attribute->id);
}

static DflashStatus fail(const Attribute *attribute, DflashError *error, const char *text) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: attribute %s: %s", dflash_node_path(attribute->node),
                          attribute->name, text);
}

static DflashStatus fail_type(const Attribute *attribute, const char *expected, DflashError *error) {
  char found[48];
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: attribute %s is %s, expected %s",
                          dflash_node_path(attribute->node), attribute->name,
                          dflash_h5_type_name(attribute->type, found), expected);
}

static DflashStatus attribute_open(const DflashNode *node, const char *name, Attribute *attribute, DflashError *error) {
  *attribute = (Attribute){H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, node, name};
  if (!dflash_attribute_has(node, name)) return fail(attribute, error, "missing");
  attribute->id = H5Aopen(node->id, name, H5P_DEFAULT);
  if (attribute->id < 0) return fail(attribute, error, "cannot be opened");
  attribute->type = H5Aget_type(attribute->id);
  attribute->space = H5Aget_space(attribute->id);
  if (attribute->type < 0 || attribute->space < 0) return fail(attribute, error, "cannot be described");
  return DFLASH_OK;
}

/* Elements of a list: none, a scalar, or one dimension; -1 otherwise. */
static hssize_t element_count(const Attribute *attribute) {
  switch (H5Sget_simple_extent_type(attribute->space)) {
  case H5S_NULL:
    return 0;
  case H5S_SCALAR:
    return 1;
  case H5S_SIMPLE:
    return H5Sget_simple_extent_ndims(attribute->space) == 1 ? H5Sget_simple_extent_npoints(attribute->space) : -1;
  default:
    return -1;
  }
}

static DflashStatus expect_one(const Attribute *attribute, DflashError *error) {
  hssize_t count = element_count(attribute);
  if (count == 1) return DFLASH_OK;
  return fail(attribute, error, count < 0 ? "not a scalar" : count == 0 ? "no value" : "several values, expected one");
}

/* Unsigned values above the signed range would be clipped, so they are read as they are. */
static DflashStatus read_integers(const Attribute *attribute, hssize_t count, int64_t *values, DflashError *error) {
  if (H5Tget_class(attribute->type) != H5T_INTEGER || H5Tget_size(attribute->type) > sizeof *values)
    return fail_type(attribute, "i64", error);
  if (count == 0) return DFLASH_OK;
  bool is_unsigned = H5Tget_sign(attribute->type) == H5T_SGN_NONE;
  if (H5Aread(attribute->id, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, values) < 0)
    return fail(attribute, error, "cannot be read");
  for (hssize_t i = 0; is_unsigned && i < count; i++)
    if (values[i] < 0) return fail(attribute, error, "beyond 63 bits");
  return DFLASH_OK;
}

DflashStatus dflash_attribute_i64(const DflashNode *node, const char *name, int64_t *value, DflashError *error) {
  Attribute attribute;
  DflashStatus status = attribute_open(node, name, &attribute, error);
  if (status == DFLASH_OK) status = expect_one(&attribute, error);
  if (status == DFLASH_OK) status = read_integers(&attribute, 1, value, error);
  attribute_close(&attribute);
  return status;
}

DflashStatus dflash_attribute_list(const DflashNode *node, const char *name, DflashList *list, DflashError *error) {
  Attribute attribute;
  DflashStatus status = attribute_open(node, name, &attribute, error);
  hssize_t count = status == DFLASH_OK ? element_count(&attribute) : 0;
  if (status == DFLASH_OK && count < 0) status = fail(&attribute, error, "not a list");
  if (status == DFLASH_OK && count > DFLASH_LIST_MAX) status = fail(&attribute, error, "more than 256 values");
  /* An empty list may be of any type: there is nothing to read. */
  if (status == DFLASH_OK && count > 0) status = read_integers(&attribute, count, list->at, error);
  if (status == DFLASH_OK) list->count = count;
  attribute_close(&attribute);
  return status;
}

DflashStatus dflash_attribute_integers(const DflashNode *node, const char *name, int64_t *values, int64_t count,
                                       DflashError *error) {
  Attribute attribute;
  DflashStatus status = attribute_open(node, name, &attribute, error);
  if (status == DFLASH_OK && element_count(&attribute) != count)
    status = fail(&attribute, error, "not as many values as the dataset has rows");
  if (status == DFLASH_OK) status = read_integers(&attribute, (hssize_t)count, values, error);
  attribute_close(&attribute);
  return status;
}

DflashStatus dflash_attribute_f64(const DflashNode *node, const char *name, double *value, DflashError *error) {
  Attribute attribute;
  DflashStatus status = attribute_open(node, name, &attribute, error);
  if (status == DFLASH_OK) status = expect_one(&attribute, error);
  if (status == DFLASH_OK && (H5Tget_class(attribute.type) != H5T_FLOAT || H5Tget_size(attribute.type) > sizeof *value))
    status = fail_type(&attribute, "f64", error);
  if (status == DFLASH_OK && H5Aread(attribute.id, H5T_NATIVE_DOUBLE, value) < 0)
    status = fail(&attribute, error, "cannot be read");
  attribute_close(&attribute);
  return status;
}

static DflashStatus copy_variable(const Attribute *attribute, char **text, DflashError *error) {
  char *found = NULL;
  if (H5Aread(attribute->id, attribute->type, (void *)&found) < 0) return fail(attribute, error, "cannot be read");
  size_t size = found ? strnlen(found, TEXT_MAX + 1) : 0;
  DflashStatus status = DFLASH_OK;
  if (size > TEXT_MAX) status = fail(attribute, error, "longer than 16 MiB");
  if (status == DFLASH_OK && !(*text = strndup(found ? found : "", size)))
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for %zu bytes", attribute->name, size);
  H5free_memory(found);
  return status;
}

static void strip_padding(hid_t type, char *text) {
  if (H5Tget_strpad(type) != H5T_STR_SPACEPAD) return;
  for (size_t size = strlen(text); size > 0 && text[size - 1] == ' '; size--) text[size - 1] = '\0';
}

static DflashStatus copy_fixed(const Attribute *attribute, char **text, DflashError *error) {
  size_t size = H5Tget_size(attribute->type);
  if (size > TEXT_MAX) return fail(attribute, error, "longer than 16 MiB");
  char *copy = calloc(size + 1, 1);
  if (!copy) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for %zu bytes", attribute->name, size);
  if (H5Aread(attribute->id, attribute->type, copy) < 0) {
    free(copy);
    return fail(attribute, error, "cannot be read");
  }
  strip_padding(attribute->type, copy);
  *text = copy;
  return DFLASH_OK;
}

DflashStatus dflash_attribute_text(const DflashNode *node, const char *name, char **text, DflashError *error) {
  Attribute attribute;
  *text = NULL;
  DflashStatus status = attribute_open(node, name, &attribute, error);
  if (status == DFLASH_OK) status = expect_one(&attribute, error);
  if (status == DFLASH_OK && H5Tget_class(attribute.type) != H5T_STRING)
    status = fail_type(&attribute, "a string", error);
  if (status == DFLASH_OK)
    status = H5Tis_variable_str(attribute.type) > 0 ? copy_variable(&attribute, text, error)
                                                    : copy_fixed(&attribute, text, error);
  attribute_close(&attribute);
  return status;
}
