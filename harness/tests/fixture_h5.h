/* Datasets of the committed golden files, read straight through HDF5. */
#ifndef DFLASH_TESTS_FIXTURE_H5_H
#define DFLASH_TESTS_FIXTURE_H5_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include "model/geometry.h"
#include "model/storage.h"
#include "model/weights.h"

/* The bytes of a dataset in the file's own type; free() releases. */
static inline void *fixture_read(hid_t file, const char *path, size_t *bytes) {
  hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
  assert_true(set >= 0);
  hid_t type = H5Dget_type(set), space = H5Dget_space(set);
  *bytes = (size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
  void *data = malloc(*bytes);
  assert_non_null(data);
  assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(set);
  return data;
}

static inline void fixture_storage(hid_t file, const char *path, char name[16]) {
  hid_t attribute = H5Aopen_by_name(file, path, "storage", H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attribute >= 0);
  hid_t type = H5Aget_type(attribute);
  char *text = NULL;
  assert_true(H5Aread(attribute, type, &text) >= 0);
  snprintf(name, 16, "%s", text);
  H5free_memory(text);
  H5Tclose(type);
  H5Aclose(attribute);
}

/* Every tensor of the set, byte for byte and storage for storage, against /weights of a golden file. */
static inline void fixture_compare_weights(const char *path, const DflashGeometry *geometry, DflashWeightSet *set) {
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(geometry, i, &entry);
    const DflashTensor *tensor = dflash_weight_at(geometry, set, i);
    char name[128], storage[16];
    snprintf(name, sizeof name, "/weights/%s", entry.name);
    fixture_storage(file, name, storage);
    assert_string_equal(dflash_storage_name(tensor->storage), storage);
    size_t bytes;
    void *expected = fixture_read(file, name, &bytes);
    assert_int_equal(tensor->bytes, bytes);
    assert_memory_equal(tensor->data, expected, bytes);
    free(expected);
  }
  H5Fclose(file);
}

static inline void fixture_compare_list(hid_t attribute, const DflashList *list) {
  hid_t space = H5Aget_space(attribute);
  hssize_t count = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  assert_int_equal(list->count, count);
  int64_t values[DFLASH_LIST_MAX] = {0};
  if (count > 0) assert_true(H5Aread(attribute, H5T_NATIVE_INT64, values) >= 0);
  for (hssize_t i = 0; i < count; i++) assert_int_equal(list->at[i], values[i]);
}

/* Every field that the golden's /geometry has, and inv_freq bit for bit. */
static inline void fixture_compare_geometry(const char *path, const DflashGeometry *geometry, const float *inv_freq) {
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    const void *value = (const char *)geometry + field->offset;
    hid_t attribute = H5Aopen_by_name(file, "/geometry", field->name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(attribute >= 0);
    int64_t integer = 0;
    double real = 0;
    if (field->kind == DFLASH_FIELD_LIST) fixture_compare_list(attribute, value);
    if (field->kind == DFLASH_FIELD_I64) {
      assert_true(H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0);
      assert_int_equal(*(const int64_t *)value, integer);
    }
    if (field->kind == DFLASH_FIELD_F64) {
      assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0);
      assert_memory_equal(value, &real, sizeof real);
    }
    H5Aclose(attribute);
  }
  size_t bytes;
  void *expected = fixture_read(file, "/geometry/inv_freq", &bytes);
  assert_int_equal(bytes, (size_t)geometry->head_dim / 2 * sizeof(float));
  assert_memory_equal(inv_freq, expected, bytes);
  free(expected);
  H5Fclose(file);
}

#endif
