#include "golden_copy.h"

#include <unistd.h>

#include "base/memory.h"

const char *const all_fixtures[6] = {FIXTURE("tiny-f32"),   FIXTURE("far-bf16"),   FIXTURE("kernel4-empty"),
                                     FIXTURE("odd-groups"), FIXTURE("operations"), FIXTURE("sidecar-rewind")};

const char *scratch_path(const char *name, char path[512]) {
  snprintf(path, 512, "%s/load-%ld-%s", DFLASH_SCRATCH_FOLDER, (long)getpid(), name);
  return path;
}

void copy_file(const char *from, const char *to) {
  char *data;
  uint64_t size;
  assert_int_equal(dflash_read_file(from, (uint64_t)1 << 30, &data, &size, NULL), DFLASH_OK);
  assert_int_equal(dflash_write_file(to, data, size, NULL), DFLASH_OK);
  free(data);
}

DflashGolden *open_golden(const char *path) {
  DflashError error = {0};
  DflashGolden *golden;
  if (dflash_golden_open(path, 1, &golden, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return golden;
}

void load_case(DflashGolden *golden, DflashCase *c) {
  DflashError error = {0};
  if (dflash_golden_case(golden, 0, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static DflashStatus copy_weights(DflashGolden *from, DflashGoldenWriter *writer, DflashError *error) {
  const DflashGeometry *geometry = dflash_golden_geometry(from);
  const DflashWeights *weights = dflash_golden_weights(from);
  DflashWeightSet set = {.weights = *weights, .layers = (DflashLayerWeights *)weights->layers};
  DflashStatus status = dflash_golden_write_weight(writer, "/target/head", &weights->head, error);
  /* in the reverse of the table's order: the order of calls must not show in the hashes */
  for (int64_t i = dflash_weight_count(geometry) - 1; i >= 0 && status == DFLASH_OK; i--) {
    DflashWeightEntry entry;
    dflash_weight_entry(geometry, i, &entry);
    status = dflash_golden_write_weight(writer, entry.name, dflash_weight_at(geometry, &set, i), error);
  }
  return status;
}

static DflashStatus copy_router(DflashGolden *from, DflashGoldenWriter *writer, DflashError *error) {
  int64_t count;
  float *rows;
  double *margins;
  const DflashRouter *router = dflash_golden_router(from);
  if (!router) return DFLASH_OK;
  DflashStatus status = dflash_golden_router_rows(from, &count, &rows, &margins, error);
  if (status == DFLASH_OK) status = dflash_golden_write_router(writer, router, count, rows, margins, error);
  free(rows);
  free(margins);
  return status;
}

DflashStatus write_copy(DflashGolden *from, const DflashCase *c, const char *path, DflashGoldenHashes *hashes,
                        DflashError *error) {
  DflashGoldenWriter *writer;
  DflashStatus status =
      dflash_golden_create(path, dflash_golden_geometry(from), dflash_golden_weights(from)->inv_freq, &writer, error);
  if (status != DFLASH_OK) return status;
  status = dflash_golden_write_attribute(writer, "note", dflash_golden_attribute(from, "note"), error);
  if (status == DFLASH_OK) status = copy_weights(from, writer, error);
  if (status == DFLASH_OK) status = copy_router(from, writer, error);
  if (status == DFLASH_OK) status = dflash_golden_write_case(writer, c, error);
  if (status == DFLASH_OK) return dflash_golden_commit(writer, hashes, error);
  dflash_golden_abort(writer);
  return status;
}

float *made_scale(int64_t count, float seed) {
  float *values = dflash_alloc((size_t)count, sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = seed + (float)i * 0x1p-10f;
  return values;
}

void add_scales(DflashCase *c, const DflashGeometry *g) {
  for (int64_t layer = 0; layer < c->layers; layer++) {
    DflashValue *value = dflash_case_value(c, DFLASH_STAGE_ATTN_MIX, layer);
    value->alone = made_scale(value->rows * value->width, 1);
    value->alone_owned = true;
    value = &c->held_v[layer];
    value->chain = made_scale(value->rows * value->width, (float)layer);
    value->chain_owned = true;
  }
  DflashValue *logits = dflash_case_value(c, DFLASH_STAGE_HEAD_LOGITS, 0);
  logits->chain = made_scale(logits->rows * logits->width, 9);
  logits->chain_owned = true;
  c->tokens.alone = made_scale(c->sizes.n_draft * g->selector_top, 3);
  c->tokens.chain = made_scale(c->sizes.n_draft * g->selector_top, 4);
}

DflashStatus read_everything(const char *path, DflashError *error) {
  DflashGolden *golden;
  DflashStatus status = dflash_golden_open(path, 1, &golden, error);
  for (int64_t i = 0; status == DFLASH_OK && i < dflash_golden_case_count(golden); i++) {
    DflashCase c;
    status = dflash_golden_case(golden, i, &c, error);
    if (status == DFLASH_OK) dflash_case_close(&c);
  }
  int64_t count;
  float *rows = NULL;
  double *margins = NULL;
  if (status == DFLASH_OK) status = dflash_golden_router_rows(golden, &count, &rows, &margins, error);
  free(rows);
  free(margins);
  dflash_golden_close(golden);
  assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
  return status;
}

/* ---- changes ---- */

hid_t open_copy(const char *fixture, const char *path) {
  copy_file(fixture, path);
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

static void set_attribute(hid_t file, const char *object, const char *name, hid_t type, hid_t space,
                          const void *value) {
  if (H5Aexists_by_name(file, object, name, H5P_DEFAULT) > 0) drop_attribute(file, object, name);
  hid_t attribute = H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attribute >= 0);
  if (value) assert_true(H5Awrite(attribute, type, value) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

void set_i64(hid_t file, const char *object, const char *name, int64_t value) {
  set_attribute(file, object, name, H5T_NATIVE_INT64, H5Screate(H5S_SCALAR), &value);
}

void set_f64(hid_t file, const char *object, const char *name, double value) {
  set_attribute(file, object, name, H5T_NATIVE_DOUBLE, H5Screate(H5S_SCALAR), &value);
}

void set_list(hid_t file, const char *object, const char *name, const int64_t *values, int count) {
  hsize_t size = (hsize_t)count;
  set_attribute(file, object, name, H5T_NATIVE_INT64, H5Screate_simple(1, &size, NULL), count ? values : NULL);
}

void set_text(hid_t file, const char *object, const char *name, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  set_attribute(file, object, name, type, H5Screate(H5S_SCALAR), (const void *)&text);
  H5Tclose(type);
}

void drop_attribute(hid_t file, const char *object, const char *name) {
  assert_true(H5Adelete_by_name(file, object, name, H5P_DEFAULT) >= 0);
}

void put_dataset(hid_t file, const char *path, hid_t type, int rank, const hsize_t *shape, hid_t list,
                 hid_t memory_type, const void *data) {
  if (H5Lexists(file, path, H5P_DEFAULT) > 0) assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
  hid_t space = rank < 0 ? H5Screate(H5S_NULL) : H5Screate_simple(rank, shape, NULL);
  hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  assert_true(dataset >= 0);
  if (data) assert_true(H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

void remake_f32(hid_t file, const char *path, hid_t type, hid_t list) {
  hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(dataset);
  hsize_t shape[H5S_MAX_RANK];
  int rank = H5Sget_simple_extent_dims(space, shape, NULL);
  float *values = malloc((size_t)H5Sget_simple_extent_npoints(space) * sizeof *values);
  assert_non_null(values);
  assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Sclose(space);
  H5Dclose(dataset);
  put_dataset(file, path, type, rank, shape, list, H5T_NATIVE_FLOAT, values);
  free(values);
}

void poke_f32(hid_t file, const char *path, size_t index, float value) {
  hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(dataset);
  size_t count = (size_t)H5Sget_simple_extent_npoints(space);
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  assert_true(index < count);
  assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  values[index] = value;
  assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  free(values);
  H5Sclose(space);
  H5Dclose(dataset);
}
