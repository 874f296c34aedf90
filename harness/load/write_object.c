#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "load/writer.h"

static DflashStatus fail(const char *path, DflashError *error) {
  char reason[160];
  return dflash_error_set(error, DFLASH_IO, "%s: cannot be written: %s", path[0] ? path : "/",
                          dflash_h5_reason(reason));
}

/* No time stamps and no fill values: equal calls give equal bytes. */
static hid_t creation_list(hid_t kind) {
  hid_t list = H5Pcreate(kind);
  if (list < 0) return list;
  H5Pset_obj_track_times(list, 0);
  if (kind == H5P_DATASET_CREATE) {
    H5Pset_layout(list, H5D_CONTIGUOUS);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  }
  return list;
}

static DflashStatus join_path(const DflashNode *parent, const char *name, DflashNode *node, DflashError *error) {
  node->id = H5I_INVALID_HID;
  int length = snprintf(node->path, sizeof node->path, "%s/%s", parent->path, name);
  if (length < 0 || (size_t)length >= sizeof node->path)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: path too long", node->path);
  if (dflash_node_has(parent, name))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: written twice", node->path);
  return DFLASH_OK;
}

DflashStatus dflash_write_group(const DflashNode *parent, const char *name, DflashNode *node, DflashError *error) {
  DflashStatus status = join_path(parent, name, node, error);
  if (status != DFLASH_OK) return status;
  hid_t list = creation_list(H5P_GROUP_CREATE);
  node->id = H5Gcreate2(parent->id, name, H5P_DEFAULT, list, H5P_DEFAULT);
  status = node->id < 0 ? fail(node->path, error) : DFLASH_OK;
  dflash_h5_close(list);
  return status;
}

DflashStatus dflash_write_open_group(const DflashNode *parent, const char *name, DflashNode *node, DflashError *error) {
  if (dflash_node_has(parent, name)) return dflash_node_open(parent, name, DFLASH_NODE_GROUP, node, error);
  return dflash_write_group(parent, name, node, error);
}

static hid_t op_type(void) {
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(DflashContextOp));
  if (type < 0) return type;
  H5Tinsert(type, "op", HOFFSET(DflashContextOp, op), H5T_STD_I32LE);
  H5Tinsert(type, "pos", HOFFSET(DflashContextOp, pos), H5T_STD_I64LE);
  H5Tinsert(type, "first_row", HOFFSET(DflashContextOp, first_row), H5T_STD_I64LE);
  H5Tinsert(type, "n_rows", HOFFSET(DflashContextOp, n_rows), H5T_STD_I64LE);
  return type;
}

static hid_t memory_type(DflashFileType type) {
  switch (type) {
  case DFLASH_FILE_F32:
    return H5Tcopy(H5T_IEEE_F32LE);
  case DFLASH_FILE_F64:
    return H5Tcopy(H5T_IEEE_F64LE);
  case DFLASH_FILE_I32:
    return H5Tcopy(H5T_STD_I32LE);
  case DFLASH_FILE_U16:
    return H5Tcopy(H5T_STD_U16LE);
  case DFLASH_FILE_U8:
    return H5Tcopy(H5T_STD_U8LE);
  default:
    return op_type();
  }
}

static hid_t create_dataset(const DflashNode *parent, const char *name, const DflashArray *array, hid_t memory) {
  hsize_t shape[3];
  for (int i = 0; i < array->rank; i++) shape[i] = (hsize_t)array->shape[i];
  hid_t space = H5Screate_simple(array->rank, shape, NULL), list = creation_list(H5P_DATASET_CREATE);
  hid_t type = H5Tcopy(memory);
  if (array->type == DFLASH_FILE_OPS && type >= 0) H5Tpack(type);
  hid_t dataset = H5Dcreate2(parent->id, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  dflash_h5_close(type);
  dflash_h5_close(list);
  dflash_h5_close(space);
  return dataset;
}

static bool is_empty(const DflashArray *array) {
  for (int i = 0; i < array->rank; i++)
    if (array->shape[i] == 0) return true;
  return false;
}

/* The types in memory and in the file are one, so that HDF5 passes the caller's bytes on as they are. */
DflashStatus dflash_write_dataset(const DflashNode *parent, const char *name, const DflashArray *array,
                                  DflashNode *node, DflashError *error) {
  DflashStatus status = join_path(parent, name, node, error);
  if (status != DFLASH_OK) return status;
  hid_t memory = memory_type(array->type);
  node->id = create_dataset(parent, name, array, memory);
  bool good = node->id >= 0;
  if (good && !is_empty(array)) good = H5Dwrite(node->id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->data) >= 0;
  if (!good) status = fail(node->path, error);
  dflash_h5_close(memory);
  if (!good) dflash_node_close(node);
  return status;
}

DflashStatus dflash_write_array(const DflashNode *parent, const char *name, const DflashArray *array,
                                DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_write_dataset(parent, name, array, &node, error);
  dflash_node_close(&node);
  return status;
}
