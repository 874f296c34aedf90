#include "base/error.h"
#include "load/writer.h"

/* Writes and closes space and type too. */
static DflashStatus write_value(const DflashNode *node, const char *name, hid_t type, hid_t space, const void *value,
                                DflashError *error) {
  char reason[160];
  hid_t attribute = H5Acreate2(node->id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  bool good = attribute >= 0 && (!value || H5Awrite(attribute, type, value) >= 0);
  DflashStatus status = DFLASH_OK;
  if (!good)
    status = dflash_error_set(error, DFLASH_IO, "%s: attribute %s cannot be written: %s", dflash_node_path(node), name,
                              dflash_h5_reason(reason));
  dflash_h5_close(attribute);
  dflash_h5_close(space);
  dflash_h5_close(type);
  return status;
}

DflashStatus dflash_write_i64(const DflashNode *node, const char *name, int64_t value, DflashError *error) {
  return write_value(node, name, H5Tcopy(H5T_STD_I64LE), H5Screate(H5S_SCALAR), &value, error);
}

DflashStatus dflash_write_f64(const DflashNode *node, const char *name, double value, DflashError *error) {
  return write_value(node, name, H5Tcopy(H5T_IEEE_F64LE), H5Screate(H5S_SCALAR), &value, error);
}

DflashStatus dflash_write_list(const DflashNode *node, const char *name, const int64_t *values, int64_t count,
                               DflashError *error) {
  hsize_t size = (hsize_t)count;
  return write_value(node, name, H5Tcopy(H5T_STD_I64LE), H5Screate_simple(1, &size, NULL), count > 0 ? values : NULL,
                     error);
}

/* Of variable length in UTF-8: h5py shows it as a string, and it has no limit of 64 KiB. */
DflashStatus dflash_write_text(const DflashNode *node, const char *name, const char *text, DflashError *error) {
  hid_t type = H5Tcopy(H5T_C_S1);
  if (type >= 0) {
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
  }
  return write_value(node, name, type, H5Screate(H5S_SCALAR), (const void *)&text, error);
}
