#include <string.h>

#include "base/error.h"
#include "load/writer.h"

/* Bytes; a cache line, and enough for any vector load. */
#define DATA_ALIGNMENT 64

/* What any reader since HDF5 1.8 understands. */
static hid_t access_list(DflashSink *sink) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return list;
  H5Pset_fclose_degree(list, H5F_CLOSE_SEMI);
  H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_alignment(list, 1, DATA_ALIGNMENT);
  if (dflash_sink_install(list, sink)) return list;
  dflash_h5_close(list);
  return H5I_INVALID_HID;
}

static hid_t create_file(const char *path, hid_t access) {
  hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  if (creation >= 0) H5Pset_obj_track_times(creation, 0);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
  dflash_h5_close(creation);
  return file;
}

static DflashStatus fail(const DflashGoldenWriter *writer, DflashError *error) {
  char text[160];
  const char *reason = writer->sink.reason ? strerror(writer->sink.reason) : dflash_h5_reason(text);
  return dflash_error_set(error, DFLASH_IO, "cannot be written: %s", reason);
}

DflashStatus dflash_writer_open_file(DflashGoldenWriter *writer, bool empty, DflashError *error) {
  const char *path = writer->output.temporary;
  hid_t access = access_list(&writer->sink);
  writer->file = empty ? create_file(path, access) : H5Fopen(path, H5F_ACC_RDWR, access);
  DflashStatus status = writer->file < 0 ? fail(writer, error) : DFLASH_OK;
  dflash_h5_close(access);
  return status == DFLASH_OK ? dflash_node_root(writer->file, &writer->root, error) : status;
}

DflashStatus dflash_writer_close_file(DflashGoldenWriter *writer, DflashError *error) {
  dflash_node_close(&writer->root);
  bool good = writer->file < 0 || H5Fclose(writer->file) >= 0;
  writer->file = H5I_INVALID_HID;
  return good && !writer->sink.reason ? DFLASH_OK : fail(writer, error);
}

DflashStatus dflash_writer_finish(DflashGoldenWriter *writer, DflashStatus status, DflashError *error) {
  if (status == DFLASH_OK && !writer->sink.reason) return DFLASH_OK;
  writer->failed = true;
  if (writer->sink.reason) status = fail(writer, error);
  dflash_error_prefix(error, "%s", writer->output.path);
  return status;
}
