#include "load/golden.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/reader.h"

static DflashStatus fail_open(const char *reason, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "not a readable HDF5 file: %s", reason);
}

static DflashStatus open_file(DflashGolden *golden, const char *path, DflashError *error) {
  char reason[160];
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a property list");
  H5Pset_fclose_degree(list, H5F_CLOSE_SEMI);
  /* A golden is read by many at once, also from places that cannot be locked. */
  H5Pset_file_locking(list, 0, 1);
  golden->file = H5Fopen(path, H5F_ACC_RDONLY, list);
  dflash_h5_reason(reason);
  dflash_h5_close(list);
  if (golden->file < 0) return fail_open(reason, error);
  hsize_t size;
  if (H5Fget_filesize(golden->file, &size) < 0 || size != golden->mapping.size)
    return fail_open("it changed while it was opened", error);
  return dflash_node_root(golden->file, &golden->root, error);
}

static DflashStatus read_all(DflashGolden *golden, const char *path, int check_values, DflashError *error) {
  DflashStatus status = open_file(golden, path, error);
  if (status == DFLASH_OK) status = dflash_read_header(golden, error);
  if (status == DFLASH_OK) status = dflash_read_geometry(golden, error);
  if (status == DFLASH_OK) status = dflash_read_weights(golden, check_values, error);
  if (status == DFLASH_OK) status = dflash_read_router(golden, error);
  if (status == DFLASH_OK) status = dflash_read_case_names(golden, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", golden->path);
  return status;
}

DflashStatus dflash_golden_open_as(const char *path, const char *shown, int check_values, DflashGolden **golden,
                                   DflashError *error) {
  *golden = NULL;
  dflash_h5_quiet();
  DflashGolden *opened = calloc(1, sizeof *opened);
  if (!opened || !(opened->path = strdup(shown))) {
    free(opened);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", shown);
  }
  opened->file = opened->root.id = H5I_INVALID_HID;
  DflashStatus status = dflash_map_file(path, &opened->mapping, error);
  if (status == DFLASH_OK) status = read_all(opened, path, check_values, error);
  if (status == DFLASH_OK)
    *golden = opened;
  else
    dflash_golden_close(opened);
  return status;
}

DflashStatus dflash_golden_open(const char *path, int check_values, DflashGolden **golden, DflashError *error) {
  return dflash_golden_open_as(path, path, check_values, golden, error);
}

static void free_all(void **list, int64_t count) {
  for (int64_t i = 0; list && i < count; i++) free(list[i]);
  free(list);
}

void dflash_golden_close(DflashGolden *golden) {
  if (!golden) return;
  dflash_h5_quiet();
  dflash_node_close(&golden->root);
  if (golden->file >= 0) H5Fclose(golden->file);
  if (golden->owned) free_all(golden->owned, dflash_weight_count(&golden->geometry) + 1);
  for (int i = 0; i < DFLASH_TEXT_COUNT; i++) free(golden->texts[i]);
  free_all((void **)golden->cases, golden->case_count);
  dflash_router_close(&golden->router);
  dflash_weight_set_close(&golden->set);
  dflash_unmap_file(&golden->mapping);
  free(golden->path);
  free(golden);
}

const DflashGeometry *dflash_golden_geometry(const DflashGolden *golden) { return &golden->geometry; }

const DflashWeights *dflash_golden_weights(const DflashGolden *golden) { return &golden->set.weights; }

const DflashRouter *dflash_golden_router(const DflashGolden *golden) {
  return golden->router.present ? &golden->router : NULL;
}

const char *dflash_golden_attribute(const DflashGolden *golden, const char *name) {
  for (int i = 0; i < DFLASH_TEXT_COUNT; i++)
    if (strcmp(dflash_golden_texts[i], name) == 0) return golden->texts[i] ? golden->texts[i] : "";
  return "";
}

int64_t dflash_golden_case_count(const DflashGolden *golden) { return golden->case_count; }

const char *dflash_golden_case_name(const DflashGolden *golden, int64_t index) {
  return index >= 0 && index < golden->case_count ? golden->cases[index] : NULL;
}

void dflash_golden_release_weights(DflashGolden *golden) {
  int64_t count = dflash_weight_count(&golden->geometry);
  for (int64_t i = 0; i < count; i++) {
    const DflashTensor *tensor = dflash_weight_at(&golden->geometry, &golden->set, i);
    dflash_map_release(tensor->data, tensor->bytes);
  }
  dflash_map_release(golden->set.weights.head.data, golden->set.weights.head.bytes);
}

DflashStatus dflash_golden_case(DflashGolden *golden, int64_t index, DflashCase *c, DflashError *error) {
  DflashNode cases, node = {.id = H5I_INVALID_HID};
  *c = (DflashCase){0};
  const char *name = dflash_golden_case_name(golden, index);
  if (!name)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: case %lld of %lld", golden->path, (long long)index,
                            (long long)golden->case_count);
  dflash_h5_quiet();
  DflashStatus status = dflash_case_open(c, &golden->geometry, name, error);
  if (status != DFLASH_OK) return status;
  status = dflash_node_open(&golden->root, "cases", DFLASH_NODE_GROUP, &cases, error);
  if (status == DFLASH_OK) status = dflash_node_open(&cases, name, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = dflash_read_case_inputs(golden, &node, c, error);
  if (status == DFLASH_OK) status = dflash_read_case_values(golden, &node, c, error);
  dflash_node_close(&node);
  dflash_node_close(&cases);
  if (status == DFLASH_OK) return DFLASH_OK;
  dflash_error_prefix(error, "%s", golden->path);
  dflash_case_close(c);
  return status;
}
