#include <string.h>

#include "base/error.h"
#include "load/dataset.h"

static hid_t plain_type(H5T_class_t kind, size_t size, bool is_signed) {
  if (kind == H5T_FLOAT) return size == 4 ? H5T_IEEE_F32LE : size == 8 ? H5T_IEEE_F64LE : H5I_INVALID_HID;
  switch (size) {
  case 1:
    return is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
  case 2:
    return is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
  case 4:
    return is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
  case 8:
    return is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
  default:
    return H5I_INVALID_HID;
  }
}

static bool describe_type(hid_t type, DflashStored *found) {
  if (type < 0) return false;
  H5T_class_t kind = H5Tget_class(type);
  found->number = kind == H5T_FLOAT      ? DFLASH_NUMBER_FLOAT
                  : kind == H5T_INTEGER  ? DFLASH_NUMBER_INTEGER
                  : kind == H5T_COMPOUND ? DFLASH_NUMBER_COMPOUND
                                         : DFLASH_NUMBER_OTHER;
  found->size = H5Tget_size(type);
  found->is_signed = kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  char name[48];
  const char *text = dflash_h5_type_name(type, name);
  memcpy(found->type_name, text, strlen(text) + 1);
  if (found->number != DFLASH_NUMBER_FLOAT && found->number != DFLASH_NUMBER_INTEGER) return found->size > 0;
  hid_t plain = plain_type(kind, found->size, found->is_signed);
  found->plain = plain >= 0 && H5Tequal(type, plain) > 0;
  return found->size > 0;
}

static bool describe_space(hid_t space, DflashStored *found) {
  if (space < 0) return false;
  if (H5Sget_simple_extent_type(space) == H5S_NULL) {
    found->rank = -1;
    return true;
  }
  hsize_t shape[H5S_MAX_RANK];
  found->rank = H5Sget_simple_extent_dims(space, shape, NULL);
  for (int i = 0; i < found->rank && i < DFLASH_STORED_RANK; i++) found->shape[i] = shape[i];
  return found->rank >= 0;
}

/* The product of chunks along each dimension, against the number that the file holds. */
static bool chunks_whole(hid_t dataset, hid_t list, hid_t space) {
  hsize_t shape[H5S_MAX_RANK], chunk[H5S_MAX_RANK], held, expected = 1;
  int rank = H5Sget_simple_extent_dims(space, shape, NULL);
  if (rank < 1 || H5Pget_chunk(list, rank, chunk) != rank) return false;
  for (int i = 0; i < rank; i++) {
    if (chunk[i] == 0) return false;
    if (__builtin_mul_overflow(expected, shape[i] / chunk[i] + (shape[i] % chunk[i] != 0), &expected)) return false;
  }
  return H5Dget_num_chunks(dataset, space, &held) >= 0 && held == expected;
}

static bool describe_layout(hid_t dataset, hid_t space, DflashStored *found) {
  hid_t list = H5Dget_create_plist(dataset);
  if (list < 0) return false;
  H5D_layout_t layout = H5Pget_layout(list);
  found->layout = layout == H5D_CONTIGUOUS ? DFLASH_LAYOUT_CONTIGUOUS
                  : layout == H5D_COMPACT  ? DFLASH_LAYOUT_COMPACT
                  : layout == H5D_CHUNKED  ? DFLASH_LAYOUT_CHUNKED
                                           : DFLASH_LAYOUT_OTHER;
  found->external = H5Pget_external_count(list) != 0;
  found->whole = layout == H5D_CHUNKED && found->rank >= 1 && chunks_whole(dataset, list, space);
  dflash_h5_close(list);
  haddr_t offset = layout == H5D_CONTIGUOUS ? H5Dget_offset(dataset) : HADDR_UNDEF;
  found->offset = offset == HADDR_UNDEF ? DFLASH_NO_OFFSET : offset;
  found->allocated = H5Dget_storage_size(dataset);
  return true;
}

DflashStatus dflash_dataset_describe(const DflashNode *node, DflashStored *found, DflashError *error) {
  *found = (DflashStored){0};
  hid_t type = H5Dget_type(node->id), space = H5Dget_space(node->id);
  bool good = describe_type(type, found) && describe_space(space, found) && describe_layout(node->id, space, found);
  dflash_h5_close(space);
  dflash_h5_close(type);
  if (good) return DFLASH_OK;
  char reason[160];
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: cannot be described: %s", node->path,
                          dflash_h5_reason(reason));
}
