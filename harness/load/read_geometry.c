#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/candidate.h"
#include "load/reader.h"
#include "model/geometry.h"

const char *const dflash_golden_texts[DFLASH_TEXT_COUNT] = {"generator",   "note",        "recipe",      "inputs_hash",
                                                            "values_hash", "scales_hash", "trunk_hash64"};

static DflashStatus check_format(const DflashNode *root, DflashError *error) {
  char *format;
  int64_t version;
  DflashStatus status = dflash_attribute_text(root, "format", &format, error);
  if (status == DFLASH_OK && strcmp(format, DFLASH_GOLDEN_FORMAT) != 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "/: attribute format is \"%.64s\", expected \"%s\"%s", format,
                              DFLASH_GOLDEN_FORMAT,
                              strcmp(format, DFLASH_CANDIDATE_FORMAT) == 0
                                  ? "; values of an engine are judged by 'dflash-harness compare GOLDEN FILE'"
                                  : "");
  free(format);
  if (status == DFLASH_OK) status = dflash_attribute_i64(root, "version", &version, error);
  if (status == DFLASH_OK && version != DFLASH_GOLDEN_VERSION)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "/: attribute version is %lld, expected %d",
                              (long long)version, DFLASH_GOLDEN_VERSION);
  return status;
}

DflashStatus dflash_read_header(DflashGolden *golden, DflashError *error) {
  DflashStatus status = check_format(&golden->root, error);
  for (int i = 0; i < DFLASH_TEXT_COUNT && status == DFLASH_OK; i++)
    if (dflash_attribute_has(&golden->root, dflash_golden_texts[i]))
      status = dflash_attribute_text(&golden->root, dflash_golden_texts[i], &golden->texts[i], error);
  return status;
}

static DflashStatus read_field(const DflashNode *node, const DflashField *field, DflashGeometry *geometry,
                               DflashError *error) {
  void *place = (char *)geometry + field->offset;
  if (field->may_be_absent && !dflash_attribute_has(node, field->name)) return DFLASH_OK;
  switch (field->kind) {
  case DFLASH_FIELD_I64:
    return dflash_attribute_i64(node, field->name, place, error);
  case DFLASH_FIELD_F64:
    return dflash_attribute_f64(node, field->name, place, error);
  default:
    return dflash_attribute_list(node, field->name, place, error);
  }
}

static DflashStatus check_finite(const char *path, const float *values, uint64_t count, DflashError *error) {
  for (uint64_t i = 0; i < count; i++)
    if (!(values[i] - values[i] == 0))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: element %llu is not finite", path,
                              (unsigned long long)i);
  return DFLASH_OK;
}

/* Read before the set is made: the file then holds as many values as the set takes memory for. */
static DflashStatus read_inv_freq(DflashGolden *golden, const DflashNode *node, DflashError *error) {
  const DflashWanted wanted = {DFLASH_ELEMENT_F32, 1, {golden->geometry.head_dim / 2}};
  DflashData data;
  DflashStatus status = dflash_dataset_read(node, "inv_freq", &wanted, &golden->mapping, &data, error);
  if (status == DFLASH_OK) status = check_finite("/geometry/inv_freq", data.data, data.count, error);
  if (status == DFLASH_OK) status = dflash_weight_set_open(&golden->geometry, &golden->set, error);
  if (status == DFLASH_OK) memcpy(golden->set.inv_freq, data.data, data.bytes);
  if (data.owned) free(data.data);
  return status;
}

DflashStatus dflash_read_geometry_fields(const DflashNode *node, DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; i < dflash_geometry_field_count() && status == DFLASH_OK; i++)
    status = read_field(node, dflash_geometry_field(i), geometry, error);
  return status == DFLASH_OK ? dflash_geometry_check(geometry, error) : status;
}

DflashStatus dflash_read_geometry(DflashGolden *golden, DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_node_open(&golden->root, "geometry", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = dflash_read_geometry_fields(&node, &golden->geometry, error);
  if (status == DFLASH_OK) status = read_inv_freq(golden, &node, error);
  dflash_node_close(&node);
  return status;
}
