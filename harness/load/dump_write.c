#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sha256.h"
#include "load/dump.h"
#include "load/writer.h"
#include "model/geometry.h"

struct DflashDumpWriter {
  DflashGoldenWriter file; /* its place, HDF5 handle and failures */
  DflashNode verdicts, geometries;
  DflashGeometry last;
  int64_t geometry_count, count;
  DflashSha256 *hash;
};

static DflashStatus write_frame(DflashDumpWriter *w, DflashError *error) {
  DflashStatus status = dflash_writer_open_file(&w->file, true, error);
  if (status == DFLASH_OK) status = dflash_write_text(&w->file.root, "format", DFLASH_DUMP_FORMAT, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&w->file.root, "version", DFLASH_DUMP_VERSION, error);
  if (status == DFLASH_OK) status = dflash_write_group(&w->file.root, "geometry", &w->geometries, error);
  return status == DFLASH_OK ? dflash_write_group(&w->file.root, "verdicts", &w->verdicts, error) : status;
}

DflashStatus dflash_dump_create(const char *path, DflashDumpWriter **writer, DflashError *error) {
  *writer = NULL;
  dflash_h5_quiet();
  DflashDumpWriter *w = calloc(1, sizeof *w);
  if (w == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path);
  w->file.file = w->file.root.id = w->verdicts.id = w->geometries.id = H5I_INVALID_HID;
  w->hash = dflash_sha256_open();
  DflashStatus status = w->hash != NULL ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory");
  if (status == DFLASH_OK) status = dflash_output_open(&w->file.output, path, error);
  if (status == DFLASH_OK) status = dflash_writer_finish(&w->file, write_frame(w, error), error);
  if (status == DFLASH_OK)
    *writer = w;
  else
    dflash_dump_abort(w);
  return status;
}

/* Entries of one golden come together: only the last geometry is looked at. */
static DflashStatus write_geometry(DflashDumpWriter *w, const DflashGeometry *geometry, DflashError *error) {
  char name[24];
  DflashNode node;
  if (w->geometry_count > 0 && dflash_geometry_equal(&w->last, geometry)) return DFLASH_OK;
  w->last = *geometry;
  snprintf(name, sizeof name, "%" PRId64, w->geometry_count++);
  DflashStatus status = dflash_write_group(&w->geometries, name, &node, error);
  if (status == DFLASH_OK) status = dflash_write_geometry_fields(&node, geometry, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_attributes(const DflashNode *node, const DflashDumpEntry *e, int64_t geometry,
                                     DflashError *error) {
  DflashStatus status = dflash_write_i64(node, "geometry", geometry, error);
  for (int i = 0; status == DFLASH_OK && i < DFLASH_DUMP_TEXTS; i++)
    status = dflash_write_text(node, dflash_dump_texts[i], e->texts[i], error);
  for (int i = 0; status == DFLASH_OK && i < DFLASH_DUMP_NUMBERS; i++)
    status = dflash_write_i64(node, dflash_dump_numbers[i], e->numbers[i], error);
  if (status == DFLASH_OK) status = dflash_write_f64(node, "score", e->score, error);
  return status == DFLASH_OK ? dflash_write_f64(node, "lambda", e->lambda, error) : status;
}

static DflashStatus write_values(const DflashNode *node, const char *name, int64_t rows, int64_t width,
                                 const float *data, DflashError *error) {
  const DflashArray array = {DFLASH_FILE_F32, 2, {rows, width}, data};
  return data != NULL ? dflash_write_array(node, name, &array, error) : DFLASH_OK;
}

static DflashStatus write_inputs(const DflashNode *parent, const DflashDumpEntry *e, DflashError *error) {
  DflashNode inputs;
  DflashStatus status = dflash_write_group(parent, "inputs", &inputs, error);
  for (int i = 0; status == DFLASH_OK && i < e->input_count; i++) {
    char name[24];
    DflashNode node;
    const DflashArray array = {DFLASH_FILE_F32, 2, {e->inputs[i].rows, e->inputs[i].width}, e->inputs[i].data};
    snprintf(name, sizeof name, "%d", i);
    status = dflash_write_dataset(&inputs, name, &array, &node, error);
    if (status == DFLASH_OK) status = dflash_write_text(&node, "source", e->inputs[i].source, error);
    dflash_node_close(&node);
  }
  dflash_node_close(&inputs);
  return status;
}

static DflashStatus write_entry(DflashDumpWriter *w, const DflashDumpEntry *e, DflashError *error) {
  char name[24];
  DflashNode node;
  DflashStatus status = write_geometry(w, e->geometry, error);
  if (status != DFLASH_OK) return status;
  snprintf(name, sizeof name, "%" PRId64, w->count++);
  status = dflash_write_group(&w->verdicts, name, &node, error);
  if (status == DFLASH_OK) status = write_attributes(&node, e, w->geometry_count - 1, error);
  if (status == DFLASH_OK) status = write_values(&node, "got", e->rows, e->width, e->got, error);
  if (status == DFLASH_OK) status = write_values(&node, "expected", e->rows, e->width, e->expected, error);
  if (status == DFLASH_OK) status = write_values(&node, "sigma", e->rows, e->width, e->sigma, error);
  if (status == DFLASH_OK) status = write_inputs(&node, e, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_dump_add(DflashDumpWriter *w, const DflashDumpEntry *entry, DflashError *error) {
  dflash_h5_quiet();
  DflashStatus status = dflash_dump_check(entry, error);
  if (status != DFLASH_OK) return status;
  status = dflash_writer_finish(&w->file, write_entry(w, entry, error), error);
  if (status == DFLASH_OK) dflash_dump_hash(w->hash, entry);
  return status;
}

static DflashStatus finish(DflashDumpWriter *w, int64_t left_out, DflashError *error) {
  char hex[65];
  dflash_sha256_close(w->hash, hex);
  w->hash = NULL;
  if (w->file.failed)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: an earlier write failed", w->file.output.path);
  DflashStatus status = dflash_write_i64(&w->file.root, "left_out", left_out, error);
  if (status == DFLASH_OK) status = dflash_write_text(&w->file.root, "contents_hash", hex, error);
  dflash_node_close(&w->verdicts);
  dflash_node_close(&w->geometries);
  if (status == DFLASH_OK) status = dflash_writer_close_file(&w->file, error);
  status = dflash_writer_finish(&w->file, status, error);
  return status == DFLASH_OK ? dflash_output_commit(&w->file.output, error) : status;
}

DflashStatus dflash_dump_commit(DflashDumpWriter *w, int64_t left_out, DflashError *error) {
  dflash_h5_quiet();
  DflashStatus status = finish(w, left_out, error);
  dflash_dump_abort(w);
  return status;
}

void dflash_dump_abort(DflashDumpWriter *w) {
  if (w == NULL) return;
  char hex[65];
  dflash_h5_quiet();
  if (w->hash != NULL) dflash_sha256_close(w->hash, hex);
  dflash_node_close(&w->verdicts);
  dflash_node_close(&w->geometries);
  dflash_writer_close_file(&w->file, NULL);
  dflash_output_abort(&w->file.output);
  free(w);
}
