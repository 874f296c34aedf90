/* The writer's parts, between the files of this folder. */
#ifndef DFLASH_LOAD_WRITER_H
#define DFLASH_LOAD_WRITER_H

#include "base/file.h"
#include "load/golden.h"
#include "load/sink.h"

struct DflashGoldenWriter {
  DflashOutput output;
  hid_t file;
  DflashNode root;
  DflashGeometry geometry;
  DflashSink sink;
  bool failed; /* the file is not whole: only abort helps */
};

/* Little-endian types, in memory as in the file. */
typedef enum DflashFileType {
  DFLASH_FILE_F32,
  DFLASH_FILE_F64,
  DFLASH_FILE_I32,
  DFLASH_FILE_U16,
  DFLASH_FILE_U8,
  DFLASH_FILE_OPS
} DflashFileType;

typedef struct DflashArray {
  DflashFileType type;
  int rank;
  int64_t shape[3];
  const void *data; /* may be NULL when a size is 0 */
} DflashArray;

/* Opens the temporary file for HDF5, emptied or as it is. */
DflashStatus dflash_writer_open_file(DflashGoldenWriter *writer, bool empty, DflashError *error);
/* Closes it; DFLASH_IO when a write had failed. Safe when it is closed. */
DflashStatus dflash_writer_close_file(DflashGoldenWriter *writer, DflashError *error);
/* Every public write ends here, which names the file and turns a dropped write into DFLASH_IO: after a failure only
 * abort and a failing commit are left. */
DflashStatus dflash_writer_finish(DflashGoldenWriter *writer, DflashStatus status, DflashError *error);

DflashStatus dflash_write_group(const DflashNode *parent, const char *name, DflashNode *node, DflashError *error);
/* The group, made when it is not there yet. */
DflashStatus dflash_write_open_group(const DflashNode *parent, const char *name, DflashNode *node, DflashError *error);
DflashStatus dflash_write_dataset(const DflashNode *parent, const char *name, const DflashArray *array,
                                  DflashNode *node, DflashError *error);
/* The same, closed again. */
DflashStatus dflash_write_array(const DflashNode *parent, const char *name, const DflashArray *array,
                                DflashError *error);
DflashStatus dflash_write_i64(const DflashNode *node, const char *name, int64_t value, DflashError *error);
DflashStatus dflash_write_f64(const DflashNode *node, const char *name, double value, DflashError *error);
DflashStatus dflash_write_list(const DflashNode *node, const char *name, const int64_t *values, int64_t count,
                               DflashError *error);
DflashStatus dflash_write_geometry_fields(const DflashNode *node, const DflashGeometry *geometry, DflashError *error);
DflashStatus dflash_write_text(const DflashNode *node, const char *name, const char *text, DflashError *error);

#endif
