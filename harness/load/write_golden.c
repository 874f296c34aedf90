#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/reader.h"
#include "load/writer.h"
#include "model/geometry.h"
#include "model/storage.h"

/* Bytes; a cache line, and enough for any vector load. */
#define DATA_ALIGNMENT 64

/* What any reader since HDF5 1.8 understands. */
static hid_t access_list(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return list;
  H5Pset_fclose_degree(list, H5F_CLOSE_SEMI);
  H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_alignment(list, 1, DATA_ALIGNMENT);
  H5Pset_file_locking(list, 0, 1);
  return list;
}

static hid_t create_file(const char *path) {
  hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = access_list();
  if (creation >= 0) H5Pset_obj_track_times(creation, 0);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
  dflash_h5_close(access);
  dflash_h5_close(creation);
  return file;
}

static DflashStatus write_geometry(const DflashNode *root, const DflashGeometry *geometry, const float *inv_freq,
                                   DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_write_group(root, "geometry", &node, error);
  for (size_t i = 0; i < dflash_geometry_field_count() && status == DFLASH_OK; i++) {
    const DflashField *field = dflash_geometry_field(i);
    const void *place = (const char *)geometry + field->offset;
    const DflashList *list = place;
    if (field->kind == DFLASH_FIELD_I64)
      status = dflash_write_i64(&node, field->name, *(const int64_t *)place, error);
    else if (field->kind == DFLASH_FIELD_F64)
      status = dflash_write_f64(&node, field->name, *(const double *)place, error);
    else
      status = dflash_write_list(&node, field->name, list->at, list->count, error);
  }
  const DflashArray array = {DFLASH_FILE_F32, 1, {geometry->head_dim / 2}, inv_freq};
  if (status == DFLASH_OK) status = dflash_write_array(&node, "inv_freq", &array, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_frame(DflashGoldenWriter *writer, const float *inv_freq, DflashError *error) {
  DflashNode cases;
  char reason[160];
  writer->file = create_file(writer->output.temporary);
  if (writer->file < 0)
    return dflash_error_set(error, DFLASH_IO, "cannot be created: %s", dflash_h5_reason(reason));
  DflashStatus status = dflash_node_root(writer->file, &writer->root, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "format", DFLASH_GOLDEN_FORMAT, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&writer->root, "version", DFLASH_GOLDEN_VERSION, error);
  if (status == DFLASH_OK) status = write_geometry(&writer->root, &writer->geometry, inv_freq, error);
  if (status != DFLASH_OK) return status;
  status = dflash_write_group(&writer->root, "cases", &cases, error);
  dflash_node_close(&cases);
  return status;
}

DflashStatus dflash_golden_create(const char *path, const DflashGeometry *geometry, const float *inv_freq,
                                  DflashGoldenWriter **writer, DflashError *error) {
  *writer = NULL;
  dflash_h5_quiet();
  DflashStatus status = dflash_geometry_check(geometry, error);
  if (status != DFLASH_OK) return status;
  DflashGoldenWriter *opened = calloc(1, sizeof *opened);
  if (!opened) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path);
  opened->file = opened->root.id = H5I_INVALID_HID;
  opened->geometry = *geometry;
  status = dflash_output_open(&opened->output, path, error);
  if (status == DFLASH_OK) {
    status = write_frame(opened, inv_freq, error);
    if (status != DFLASH_OK) dflash_error_prefix(error, "%s", path);
  }
  if (status == DFLASH_OK)
    *writer = opened;
  else
    dflash_golden_abort(opened);
  return status;
}

/* Every write of the public interface ends here: after a failure only abort and a failing commit are left. */
static DflashStatus finish(DflashGoldenWriter *writer, DflashStatus status, DflashError *error) {
  if (status == DFLASH_OK) return DFLASH_OK;
  writer->failed = true;
  dflash_error_prefix(error, "%s", writer->output.path);
  return status;
}

DflashStatus dflash_golden_write_attribute(DflashGoldenWriter *writer, const char *name, const char *text,
                                           DflashError *error) {
  static const char *const known[] = {"generator", "note", "recipe"};
  dflash_h5_quiet();
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i]) == 0)
      return finish(writer, dflash_write_text(&writer->root, name, text, error), error);
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "attribute %s: expected generator, note or recipe", name);
}

static bool find_entry(const DflashGeometry *geometry, const char *name, DflashWeightEntry *entry) {
  if (strcmp(name, "/target/head") == 0) {
    dflash_weight_head_entry(geometry, entry);
    return true;
  }
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++) {
    dflash_weight_entry(geometry, i, entry);
    if (strcmp(name, entry->name) == 0) return true;
  }
  return false;
}

static DflashArray tensor_array(const DflashTensor *tensor) {
  DflashArray array = {DFLASH_FILE_U8, 1, {(int64_t)tensor->bytes}, tensor->data};
  if (tensor->storage == DFLASH_STORAGE_Q8_2F || tensor->storage == DFLASH_STORAGE_Q4TP) return array;
  array.type = tensor->storage == DFLASH_STORAGE_F32 ? DFLASH_FILE_F32 : DFLASH_FILE_U16;
  array.rank = tensor->rank;
  memcpy(array.shape, tensor->shape, sizeof array.shape);
  return array;
}

static DflashStatus write_tensor(const DflashNode *parent, const char *name, const DflashTensor *tensor,
                                 DflashError *error) {
  DflashNode node;
  const DflashArray array = tensor_array(tensor);
  DflashStatus status = dflash_write_dataset(parent, name, &array, &node, error);
  if (status == DFLASH_OK)
    status = dflash_write_text(&node, "storage", dflash_storage_name(tensor->storage), error);
  if (status == DFLASH_OK) status = dflash_write_list(&node, "shape", tensor->shape, tensor->rank, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_golden_write_weight(DflashGoldenWriter *writer, const char *name, const DflashTensor *tensor,
                                        DflashError *error) {
  DflashWeightEntry entry;
  DflashNode group;
  bool is_head = strcmp(name, "/target/head") == 0;
  dflash_h5_quiet();
  if (!find_entry(&writer->geometry, name, &entry))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "weight %s: this geometry has none of that name", name);
  DflashStatus status = dflash_weight_check(&entry, tensor, error);
  if (status != DFLASH_OK) return status;
  if (!tensor->data) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "weight %s: no data", name);
  status = dflash_write_open_group(&writer->root, is_head ? "target" : "weights", &group, error);
  if (status == DFLASH_OK) status = write_tensor(&group, is_head ? "head" : name, tensor, error);
  dflash_node_close(&group);
  return finish(writer, status, error);
}

static DflashStatus write_subspace(const DflashNode *router, const char *name, const DflashSubspace *subspace,
                                   int64_t hidden, DflashError *error) {
  DflashNode node;
  const DflashArray mean = {DFLASH_FILE_U16, 1, {hidden}, subspace->mean};
  const DflashArray basis = {DFLASH_FILE_U16, 2, {subspace->rank, hidden}, subspace->basis};
  DflashStatus status = dflash_write_group(router, name, &node, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&node, "phi_layer", subspace->phi_layer, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "mean", &mean, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "basis", &basis, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_router(const DflashNode *root, const DflashRouter *router, const DflashArray *rows,
                                 const DflashArray *margins, DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_write_group(root, "router", &node, error);
  if (status == DFLASH_OK) status = write_subspace(&node, "block", &router->block, router->hidden, error);
  if (status == DFLASH_OK) status = write_subspace(&node, "chain", &router->chain, router->hidden, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "rows", rows, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "margin", margins, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_golden_write_router(DflashGoldenWriter *writer, const DflashRouter *router, int64_t count,
                                        const float *rows, const double *margins, DflashError *error) {
  dflash_h5_quiet();
  if (!router->present || router->hidden != writer->geometry.hidden || count < 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "router: hidden is %lld and rows %lld, expected %lld and 0 "
                            "or more", (long long)router->hidden, (long long)count,
                            (long long)writer->geometry.hidden);
  const DflashArray row_array = {DFLASH_FILE_F32, 2, {count, router->hidden}, rows};
  const DflashArray margin_array = {DFLASH_FILE_F64, 1, {count}, margins};
  return finish(writer, write_router(&writer->root, router, &row_array, &margin_array, error), error);
}

/* ---- the end ---- */

/* After a failed write HDF5 cannot flush what it still holds: closing by reference drops the file all the same. */
static bool close_file(DflashGoldenWriter *writer) {
  bool good = true;
  dflash_node_close(&writer->root);
  if (writer->file >= 0 && H5Fclose(writer->file) < 0) {
    good = false;
    H5Idec_ref(writer->file);
  }
  writer->file = H5I_INVALID_HID;
  return good;
}

static DflashStatus compute_hashes(const DflashOutput *output, char inputs[65], char values[65], DflashError *error) {
  DflashGolden *golden;
  DflashStatus status = dflash_golden_open_as(output->temporary, output->path, 0, &golden, error);
  if (status != DFLASH_OK) return status;
  status = dflash_golden_hashes(golden, inputs, values, error);
  dflash_golden_close(golden);
  return status;
}

static DflashStatus fail_write(const DflashGoldenWriter *writer, DflashError *error) {
  char reason[160];
  return dflash_error_set(error, DFLASH_IO, "%s: cannot be written: %s", writer->output.path,
                          dflash_h5_reason(reason));
}

static DflashStatus store_hashes(DflashGoldenWriter *writer, const char *inputs, const char *values,
                                 DflashError *error) {
  hid_t access = access_list();
  writer->file = H5Fopen(writer->output.temporary, H5F_ACC_RDWR, access);
  dflash_h5_close(access);
  if (writer->file < 0) return fail_write(writer, error);
  DflashStatus status = dflash_node_root(writer->file, &writer->root, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "inputs_hash", inputs, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "values_hash", values, error);
  if (status != DFLASH_OK) return dflash_error_prefix(error, "%s", writer->output.path), status;
  return close_file(writer) ? DFLASH_OK : fail_write(writer, error);
}

/* The file is read back for its hashes, so that what is missing shows before it gets its name. */
DflashStatus dflash_golden_commit(DflashGoldenWriter *writer, char inputs_hash[65], char values_hash[65],
                                  DflashError *error) {
  DflashStatus status = DFLASH_OK;
  dflash_h5_quiet();
  if (writer->failed)
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: an earlier write failed", writer->output.path);
  if (status == DFLASH_OK && !close_file(writer)) status = fail_write(writer, error);
  if (status == DFLASH_OK) status = compute_hashes(&writer->output, inputs_hash, values_hash, error);
  if (status == DFLASH_OK) status = store_hashes(writer, inputs_hash, values_hash, error);
  if (status == DFLASH_OK) status = dflash_output_commit(&writer->output, error);
  dflash_golden_abort(writer);
  return status;
}

void dflash_golden_abort(DflashGoldenWriter *writer) {
  if (!writer) return;
  dflash_h5_quiet();
  close_file(writer);
  dflash_output_abort(&writer->output);
  free(writer);
}
