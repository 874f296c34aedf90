#include "load/dataset.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/case.h"

static const struct {
  const char *name;
  size_t offset, size;
} op_members[] = {{"op", offsetof(DflashContextOp, op), 4},
                  {"pos", offsetof(DflashContextOp, pos), 8},
                  {"first_row", offsetof(DflashContextOp, first_row), 8},
                  {"n_rows", offsetof(DflashContextOp, n_rows), 8}};

enum { OP_MEMBERS = sizeof op_members / sizeof op_members[0] };

static DflashStatus check_members(const DflashNode *node, DflashError *error) {
  hid_t type = H5Dget_type(node->id);
  DflashStatus status = DFLASH_OK;
  for (int i = 0; i < OP_MEMBERS && status == DFLASH_OK; i++) {
    int index = type < 0 ? -1 : H5Tget_member_index(type, op_members[i].name);
    if (index < 0)
      status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: member %s missing", node->path, op_members[i].name);
    else if (H5Tget_member_class(type, (unsigned)index) != H5T_INTEGER)
      status =
          dflash_error_set(error, DFLASH_INVALID_DATA, "%s: member %s is no integer", node->path, op_members[i].name);
  }
  dflash_h5_close(type);
  return status;
}

static hid_t op_type(void) {
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(DflashContextOp));
  for (int i = 0; i < OP_MEMBERS && type >= 0; i++)
    H5Tinsert(type, op_members[i].name, op_members[i].offset,
              op_members[i].size == 4 ? H5T_NATIVE_INT32 : H5T_NATIVE_INT64);
  return type;
}

static hid_t memory_type(int element) {
  switch (element) {
  case DFLASH_ELEMENT_F32:
    return H5Tcopy(H5T_NATIVE_FLOAT);
  case DFLASH_ELEMENT_F64:
    return H5Tcopy(H5T_NATIVE_DOUBLE);
  case DFLASH_ELEMENT_I32:
    return H5Tcopy(H5T_NATIVE_INT32);
  case DFLASH_ELEMENT_U16:
    return H5Tcopy(H5T_NATIVE_UINT16);
  case DFLASH_ELEMENT_U8:
    return H5Tcopy(H5T_NATIVE_UINT8);
  default:
    return op_type();
  }
}

static DflashStatus read_through(const DflashNode *node, int element, void *data, DflashError *error) {
  hid_t type = memory_type(element), transfer = dflash_h5_strict_transfer();
  bool good = type >= 0 && transfer >= 0 && H5Dread(node->id, type, H5S_ALL, H5S_ALL, transfer, data) >= 0;
  char reason[160];
  dflash_h5_reason(reason);
  dflash_h5_close(transfer);
  dflash_h5_close(type);
  if (good) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be read as %s: %s", node->path,
                          dflash_element_name(element), reason);
}

static DflashStatus take_memory(const DflashNode *node, const DflashPlace *place, DflashData *out, DflashError *error) {
  *out = (DflashData){.count = place->count, .bytes = place->bytes, .owned = true};
  memcpy(out->shape, place->shape, sizeof out->shape);
  out->data = dflash_alloc(place->bytes > 0 ? place->bytes : 1, 1);
  if (out->data) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for %llu bytes", node->path,
                          (unsigned long long)place->bytes);
}

static DflashStatus read_owned(const DflashNode *node, const DflashWanted *wanted, const DflashPlace *place,
                               DflashData *out, DflashError *error) {
  DflashStatus status = wanted->element == DFLASH_ELEMENT_OPS ? check_members(node, error) : DFLASH_OK;
  if (status == DFLASH_OK) status = take_memory(node, place, out, error);
  if (status != DFLASH_OK || place->count == 0) return status;
  status = read_through(node, wanted->element, out->data, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  free(out->data);
  out->data = NULL;
  return status;
}

static DflashStatus load(const DflashNode *node, const DflashWanted *wanted, const DflashMapping *mapping, bool may_map,
                         DflashData *out, DflashError *error) {
  DflashStored found;
  DflashPlace place;
  *out = (DflashData){0};
  DflashStatus status = dflash_dataset_describe(node, &found, error);
  if (status == DFLASH_OK) status = dflash_stored_place(&found, wanted, node->path, mapping->size, &place, error);
  if (status != DFLASH_OK) return status;
  if (!may_map || place.how != DFLASH_PLACE_MAP) return read_owned(node, wanted, &place, out, error);
  *out = (DflashData){.data = (void *)(mapping->data + found.offset), .count = place.count, .bytes = place.bytes};
  memcpy(out->shape, place.shape, sizeof out->shape);
  return DFLASH_OK;
}

DflashStatus dflash_dataset_load(const DflashNode *node, const DflashWanted *wanted, const DflashMapping *mapping,
                                 DflashData *out, DflashError *error) {
  return load(node, wanted, mapping, true, out, error);
}

static DflashStatus open_and_load(const DflashNode *parent, const char *name, const DflashWanted *wanted,
                                  const DflashMapping *mapping, bool may_map, DflashData *out, DflashError *error) {
  DflashNode node;
  *out = (DflashData){0};
  DflashStatus status = dflash_node_open(parent, name, DFLASH_NODE_DATASET, &node, error);
  if (status == DFLASH_OK) status = load(&node, wanted, mapping, may_map, out, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_dataset_read(const DflashNode *parent, const char *name, const DflashWanted *wanted,
                                 const DflashMapping *mapping, DflashData *out, DflashError *error) {
  return open_and_load(parent, name, wanted, mapping, true, out, error);
}

DflashStatus dflash_dataset_copy(const DflashNode *parent, const char *name, const DflashWanted *wanted,
                                 const DflashMapping *mapping, DflashData *out, DflashError *error) {
  return open_and_load(parent, name, wanted, mapping, false, out, error);
}
