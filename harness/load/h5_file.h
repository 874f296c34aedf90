/* An HDF5 file open for reading, whatever format it holds. */
#ifndef DFLASH_LOAD_H5_FILE_H
#define DFLASH_LOAD_H5_FILE_H

#include "base/file.h"
#include "load/h5.h"

typedef struct DflashH5File {
  hid_t file;
  DflashNode root;
  DflashMapping mapping;
} DflashH5File;

/* Leaves a closed file on failure. Messages do not name the path. */
DflashStatus dflash_h5_file_open(const char *path, DflashH5File *file, DflashError *error);
void dflash_h5_file_close(DflashH5File *file);

/* format must be this text and version this number. */
DflashStatus dflash_h5_file_expect(const DflashH5File *file, const char *format, int64_t version, DflashError *error);

#endif
