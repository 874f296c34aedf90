#include "load/h5_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static DflashStatus fail_open(const char *reason, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "not a readable HDF5 file: %s", reason);
}

static DflashStatus open_file(DflashH5File *file, const char *path, DflashError *error) {
  char reason[160];
  hsize_t size;
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a property list");
  H5Pset_fclose_degree(list, H5F_CLOSE_SEMI);
  H5Pset_file_locking(list, 0, 1); /* read by many at once, also from places that cannot be locked */
  file->file = H5Fopen(path, H5F_ACC_RDONLY, list);
  dflash_h5_reason(reason);
  dflash_h5_close(list);
  if (file->file < 0) return fail_open(reason, error);
  if (H5Fget_filesize(file->file, &size) < 0 || size != file->mapping.size)
    return fail_open("it changed while it was opened", error);
  return dflash_node_root(file->file, &file->root, error);
}

DflashStatus dflash_h5_file_open(const char *path, DflashH5File *file, DflashError *error) {
  *file = (DflashH5File){.file = H5I_INVALID_HID, .root = {.id = H5I_INVALID_HID}};
  dflash_h5_quiet();
  DflashStatus status = dflash_map_file(path, &file->mapping, error);
  if (status != DFLASH_OK) return status;
  status = open_file(file, path, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  dflash_h5_file_close(file);
  dflash_error_prefix(error, "%s", path);
  return status;
}

void dflash_h5_file_close(DflashH5File *file) {
  dflash_h5_quiet();
  dflash_node_close(&file->root);
  if (file->file >= 0) H5Fclose(file->file);
  file->file = H5I_INVALID_HID;
  dflash_unmap_file(&file->mapping);
}

DflashStatus dflash_h5_file_expect(const DflashH5File *file, const char *format, int64_t version, DflashError *error) {
  char *found;
  int64_t number = 0;
  DflashStatus status = dflash_attribute_text(&file->root, "format", &found, error);
  if (status == DFLASH_OK && strcmp(found, format) != 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "/: attribute format is \"%.64s\", expected \"%s\"", found,
                              format);
  free(found);
  if (status == DFLASH_OK) status = dflash_attribute_i64(&file->root, "version", &number, error);
  if (status == DFLASH_OK && number != version)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "/: attribute version is %lld, expected %lld",
                              (long long)number, (long long)version);
  return status;
}
