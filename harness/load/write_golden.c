#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/reader.h"
#include "load/writer.h"
#include "model/geometry.h"
#include "model/storage.h"

DflashStatus dflash_write_geometry_fields(const DflashNode *node, const DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; i < dflash_geometry_field_count() && status == DFLASH_OK; i++) {
    const DflashField *field = dflash_geometry_field(i);
    const void *place = (const char *)geometry + field->offset;
    const DflashList *list = place;
    if (field->kind == DFLASH_FIELD_I64)
      status = dflash_write_i64(node, field->name, *(const int64_t *)place, error);
    else if (field->kind == DFLASH_FIELD_F64)
      status = dflash_write_f64(node, field->name, *(const double *)place, error);
    else
      status = dflash_write_list(node, field->name, list->at, list->count, error);
  }
  return status;
}

static DflashStatus write_geometry(const DflashNode *root, const DflashGeometry *geometry, const float *inv_freq,
                                   DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_write_group(root, "geometry", &node, error);
  if (status == DFLASH_OK) status = dflash_write_geometry_fields(&node, geometry, error);
  const DflashArray array = {DFLASH_FILE_F32, 1, {geometry->head_dim / 2}, inv_freq};
  if (status == DFLASH_OK) status = dflash_write_array(&node, "inv_freq", &array, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_frame(DflashGoldenWriter *writer, const float *inv_freq, DflashError *error) {
  DflashNode cases;
  DflashStatus status = dflash_writer_open_file(writer, true, error);
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
  if (status == DFLASH_OK) status = dflash_writer_finish(opened, write_frame(opened, inv_freq, error), error);
  if (status == DFLASH_OK)
    *writer = opened;
  else
    dflash_golden_abort(opened);
  return status;
}

DflashStatus dflash_golden_write_attribute(DflashGoldenWriter *writer, const char *name, const char *text,
                                           DflashError *error) {
  static const char *const known[] = {"generator", "note", "recipe", "trunk_hash64"};
  dflash_h5_quiet();
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i]) == 0)
      return dflash_writer_finish(writer, dflash_write_text(&writer->root, name, text, error), error);
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "attribute %s: expected generator, note, recipe or trunk_hash64", name);
}

static DflashStatus compute_hashes(const DflashOutput *output, DflashGoldenHashes *hashes, DflashError *error) {
  DflashGolden *golden;
  DflashStatus status = dflash_golden_open_as(output->temporary, output->path, 0, &golden, error);
  if (status != DFLASH_OK) return status;
  status = dflash_golden_hashes(golden, hashes, error);
  dflash_golden_close(golden);
  return status;
}

static DflashStatus store_hashes(DflashGoldenWriter *writer, const DflashGoldenHashes *hashes, DflashError *error) {
  DflashStatus status = dflash_writer_open_file(writer, false, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "inputs_hash", hashes->inputs, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "values_hash", hashes->values, error);
  if (status == DFLASH_OK) status = dflash_write_text(&writer->root, "scales_hash", hashes->scales, error);
  return status == DFLASH_OK ? dflash_writer_close_file(writer, error) : status;
}

/* The file is read back for its hashes, so that what is missing shows before it gets its name. */
static DflashStatus commit(DflashGoldenWriter *writer, DflashGoldenHashes *hashes, DflashError *error) {
  if (writer->failed)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: an earlier write failed", writer->output.path);
  DflashStatus status = dflash_writer_finish(writer, dflash_writer_close_file(writer, error), error);
  if (status == DFLASH_OK) status = compute_hashes(&writer->output, hashes, error);
  if (status != DFLASH_OK) return status;
  status = dflash_writer_finish(writer, store_hashes(writer, hashes, error), error);
  return status == DFLASH_OK ? dflash_output_commit(&writer->output, error) : status;
}

DflashStatus dflash_golden_commit(DflashGoldenWriter *writer, DflashGoldenHashes *hashes, DflashError *error) {
  dflash_h5_quiet();
  DflashStatus status = commit(writer, hashes, error);
  dflash_golden_abort(writer);
  return status;
}

void dflash_golden_abort(DflashGoldenWriter *writer) {
  if (!writer) return;
  dflash_h5_quiet();
  dflash_writer_close_file(writer, NULL);
  dflash_output_abort(&writer->output);
  free(writer);
}
