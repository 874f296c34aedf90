#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "load/dataset.h"
#include "load/dump.h"
#include "load/h5_file.h"
#include "load/reader.h"

#define MOST_LEFT_OUT (INT64_C(1) << 53)

/* What an entry owns beside what lies in the mapping. */
typedef struct Owned {
  DflashData data[3 + DFLASH_STAGE_INPUTS];
  int count;
} Owned;

struct DflashDump {
  DflashH5File file;
  DflashGeometry *geometries;
  DflashDumpEntry *entries;
  Owned *owned;
  int64_t geometry_count, count, left_out;
};

static DflashStatus no_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a dump's entries");
}

/* Children are named by their numbers, 0 and on; a file holds fewer than it has bytes. */
static DflashStatus count_children(const DflashDump *dump, const DflashNode *node, int64_t *count, DflashError *error) {
  H5G_info_t info;
  if (H5Gget_info(node->id, &info) < 0 || info.nlinks > dump->file.mapping.size)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be listed", node->path);
  *count = (int64_t)info.nlinks;
  return DFLASH_OK;
}

static DflashStatus open_child(const DflashNode *parent, int64_t index, int kind, DflashNode *node,
                               DflashError *error) {
  char name[24];
  snprintf(name, sizeof name, "%" PRId64, index);
  return dflash_node_open(parent, name, kind, node, error);
}

static DflashStatus read_geometries(DflashDump *dump, DflashError *error) {
  DflashNode parent, node;
  DflashStatus status = dflash_node_open(&dump->file.root, "geometry", DFLASH_NODE_GROUP, &parent, error);
  if (status == DFLASH_OK) status = count_children(dump, &parent, &dump->geometry_count, error);
  if (status == DFLASH_OK) {
    dump->geometries = calloc((size_t)dump->geometry_count + 1, sizeof *dump->geometries);
    if (dump->geometries == NULL) status = no_memory(error);
  }
  for (int64_t i = 0; status == DFLASH_OK && i < dump->geometry_count; i++) {
    status = open_child(&parent, i, DFLASH_NODE_GROUP, &node, error);
    if (status == DFLASH_OK) status = dflash_read_geometry_fields(&node, &dump->geometries[i], error);
    dflash_node_close(&node);
  }
  dflash_node_close(&parent);
  return status;
}

static DflashStatus read_attributes(const DflashDump *dump, const DflashNode *node, DflashDumpEntry *e,
                                    DflashError *error) {
  int64_t geometry = -1;
  DflashStatus status = dflash_attribute_i64(node, "geometry", &geometry, error);
  if (status == DFLASH_OK && (geometry < 0 || geometry >= dump->geometry_count))
    status =
        dflash_error_set(error, DFLASH_INVALID_DATA, "%s: geometry %" PRId64 " is not there", node->path, geometry);
  if (status != DFLASH_OK) return status;
  e->geometry = &dump->geometries[geometry];
  for (int i = 0; status == DFLASH_OK && i < DFLASH_DUMP_TEXTS; i++) {
    char *text;
    status = dflash_attribute_text(node, dflash_dump_texts[i], &text, error);
    e->texts[i] = text;
  }
  for (int i = 0; status == DFLASH_OK && i < DFLASH_DUMP_NUMBERS; i++)
    status = dflash_attribute_i64(node, dflash_dump_numbers[i], &e->numbers[i], error);
  if (status == DFLASH_OK) status = dflash_attribute_f64(node, "score", &e->score, error);
  return status == DFLASH_OK ? dflash_attribute_f64(node, "lambda", &e->lambda, error) : status;
}

static DflashStatus read_values(const DflashDump *dump, const DflashNode *parent, const char *name, DflashDumpEntry *e,
                                Owned *owned, const float **values, DflashError *error) {
  const bool first = e->rows == 0;
  const DflashWanted wanted = {DFLASH_ELEMENT_F32, 2, {first ? DFLASH_ANY : e->rows, first ? DFLASH_ANY : e->width}};
  DflashData *data = &owned->data[owned->count];
  DflashStatus status = dflash_dataset_read(parent, name, &wanted, &dump->file.mapping, data, error);
  if (status != DFLASH_OK) return status;
  owned->count++;
  *values = data->data;
  e->rows = data->shape[0];
  e->width = data->shape[1];
  if (data->count > 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s/%s: no values", parent->path, name);
}

static DflashStatus read_input(const DflashDump *dump, const DflashNode *parent, DflashDumpEntry *e, Owned *owned,
                               DflashError *error) {
  const DflashWanted wanted = {DFLASH_ELEMENT_F32, 2, {DFLASH_ANY, DFLASH_ANY}};
  DflashNode node;
  DflashData *data = &owned->data[owned->count];
  char *source = NULL;
  DflashStatus status = open_child(parent, e->input_count, DFLASH_NODE_DATASET, &node, error);
  if (status == DFLASH_OK) status = dflash_attribute_text(&node, "source", &source, error);
  if (status == DFLASH_OK) status = dflash_dataset_load(&node, &wanted, &dump->file.mapping, data, error);
  dflash_node_close(&node);
  if (status != DFLASH_OK) {
    free(source);
    return status;
  }
  owned->count++;
  e->inputs[e->input_count++] = (DflashDumpInput){source, data->shape[0], data->shape[1], data->data};
  return DFLASH_OK;
}

static DflashStatus read_inputs(const DflashDump *dump, const DflashNode *parent, DflashDumpEntry *e, Owned *owned,
                                DflashError *error) {
  DflashNode node;
  int64_t count = 0;
  DflashStatus status = dflash_node_open(parent, "inputs", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = count_children(dump, &node, &count, error);
  if (status == DFLASH_OK && count > DFLASH_STAGE_INPUTS)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %" PRId64 " inputs, at most %d", node.path, count,
                              DFLASH_STAGE_INPUTS);
  while (status == DFLASH_OK && e->input_count < count) status = read_input(dump, &node, e, owned, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_entry(const DflashDump *dump, const DflashNode *node, DflashDumpEntry *e, Owned *owned,
                               DflashError *error) {
  DflashStatus status = read_attributes(dump, node, e, error);
  if (status == DFLASH_OK) status = read_values(dump, node, "got", e, owned, &e->got, error);
  if (status == DFLASH_OK) status = read_values(dump, node, "expected", e, owned, &e->expected, error);
  if (status == DFLASH_OK && dflash_node_has(node, "sigma"))
    status = read_values(dump, node, "sigma", e, owned, &e->sigma, error);
  if (status == DFLASH_OK) status = read_inputs(dump, node, e, owned, error);
  if (status != DFLASH_OK) return status;
  return dflash_dump_check(e, error) == DFLASH_OK ? DFLASH_OK : dflash_error_prefix(error, "%s", node->path);
}

static DflashStatus read_entries(DflashDump *dump, DflashError *error) {
  DflashNode parent, node;
  int64_t count = 0;
  DflashStatus status = dflash_node_open(&dump->file.root, "verdicts", DFLASH_NODE_GROUP, &parent, error);
  if (status == DFLASH_OK) status = count_children(dump, &parent, &count, error);
  if (status == DFLASH_OK) {
    dump->entries = calloc((size_t)count + 1, sizeof *dump->entries);
    dump->owned = calloc((size_t)count + 1, sizeof *dump->owned);
    if (dump->entries == NULL || dump->owned == NULL) status = no_memory(error);
  }
  while (status == DFLASH_OK && dump->entries != NULL && dump->owned != NULL && dump->count < count) {
    int64_t i = dump->count++;
    status = open_child(&parent, i, DFLASH_NODE_GROUP, &node, error);
    if (status == DFLASH_OK) status = read_entry(dump, &node, &dump->entries[i], &dump->owned[i], error);
    dflash_node_close(&node);
  }
  dflash_node_close(&parent);
  return status;
}

static DflashStatus check_hash(const DflashDump *dump, DflashError *error) {
  char hex[65], *stored;
  DflashStatus status = dflash_attribute_text(&dump->file.root, "contents_hash", &stored, error);
  if (status != DFLASH_OK) return status;
  DflashSha256 *hash = dflash_sha256_open();
  for (int64_t i = 0; hash != NULL && i < dump->count; i++) dflash_dump_hash(hash, &dump->entries[i]);
  dflash_sha256_close(hash, hex); /* "" without a hash */
  bool same = hex[0] != '\0' && strcmp(hex, stored) == 0;
  free(stored);
  if (same) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "contents_hash does not match the contents: the dump was changed");
}

/* How many more there were can be any number that is counted. */
static DflashStatus read_left_out(DflashDump *dump, DflashError *error) {
  DflashStatus status = dflash_attribute_i64(&dump->file.root, "left_out", &dump->left_out, error);
  if (status != DFLASH_OK || (dump->left_out >= 0 && dump->left_out <= MOST_LEFT_OUT)) return status;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "/: attribute left_out is %" PRId64 "; valid: 0 to 2^53",
                          dump->left_out);
}

static DflashStatus read_all(DflashDump *dump, DflashError *error) {
  DflashStatus status = dflash_h5_file_expect(&dump->file, DFLASH_DUMP_FORMAT, DFLASH_DUMP_VERSION, error);
  if (status == DFLASH_OK) status = read_left_out(dump, error);
  if (status == DFLASH_OK) status = read_geometries(dump, error);
  if (status == DFLASH_OK) status = read_entries(dump, error);
  return status == DFLASH_OK ? check_hash(dump, error) : status;
}

DflashStatus dflash_dump_recognise(const char *path, bool *is_dump, DflashError *error) {
  DflashH5File file;
  char *format = NULL;
  *is_dump = false;
  DflashStatus status = dflash_h5_file_open(path, &file, error);
  if (status != DFLASH_OK) return status;
  status = dflash_attribute_text(&file.root, "format", &format, error);
  if (status == DFLASH_OK) *is_dump = strcmp(format, DFLASH_DUMP_FORMAT) == 0;
  free(format);
  dflash_h5_file_close(&file);
  return status;
}

DflashStatus dflash_dump_open(const char *path, DflashDump **dump, DflashError *error) {
  *dump = NULL;
  DflashDump *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return no_memory(error);
  DflashStatus status = dflash_h5_file_open(path, &opened->file, error);
  if (status == DFLASH_OK && read_all(opened, error) != DFLASH_OK) status = dflash_error_prefix(error, "%s", path);
  if (status == DFLASH_OK)
    *dump = opened;
  else
    dflash_dump_close(opened);
  return status;
}

static void close_entry(DflashDumpEntry *e, Owned *owned) {
  for (int i = 0; i < DFLASH_DUMP_TEXTS; i++) free((char *)e->texts[i]);
  for (int i = 0; i < e->input_count; i++) free((char *)e->inputs[i].source);
  for (int i = 0; i < owned->count; i++)
    if (owned->data[i].owned) free(owned->data[i].data);
}

void dflash_dump_close(DflashDump *dump) {
  if (dump == NULL) return;
  for (int64_t i = 0; i < dump->count; i++) close_entry(&dump->entries[i], &dump->owned[i]);
  free(dump->entries);
  free(dump->owned);
  free(dump->geometries);
  dflash_h5_file_close(&dump->file);
  free(dump);
}

int64_t dflash_dump_count(const DflashDump *dump) { return dump->count; }

int64_t dflash_dump_left_out(const DflashDump *dump) { return dump->left_out; }

const DflashDumpEntry *dflash_dump_at(const DflashDump *dump, int64_t index) { return &dump->entries[index]; }
