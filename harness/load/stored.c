#include "load/stored.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/case.h"

/* Deflate ends near 1032 to 1: data that claims to shrink further is not there. */
#define FILTER_RATIO 2048

uint64_t dflash_element_size(int element) {
  switch (element) {
  case DFLASH_ELEMENT_F32:
  case DFLASH_ELEMENT_I32:
    return 4;
  case DFLASH_ELEMENT_F64:
    return 8;
  case DFLASH_ELEMENT_U16:
    return 2;
  case DFLASH_ELEMENT_U8:
    return 1;
  default:
    return sizeof(DflashContextOp);
  }
}

const char *dflash_element_name(int element) {
  static const char *const names[] = {"f32", "f64", "i32", "u16", "u8", "compound"};
  return names[element];
}

const char *dflash_shape_text(const int64_t *shape, int rank, char text[96]) {
  size_t used = (size_t)snprintf(text, 96, "[");
  for (int i = 0; i < rank; i++) {
    const char *comma = i > 0 ? ", " : "";
    if (shape[i] == DFLASH_ANY)
      used += (size_t)snprintf(text + used, 96 - used, "%s*", comma);
    else
      used += (size_t)snprintf(text + used, 96 - used, "%s%lld", comma, (long long)shape[i]);
  }
  snprintf(text + used, 96 - used, "]");
  return text;
}

/* Floats widen exactly and never narrow; integers of any width are read with a range check; bits are bits. */
static bool type_fits(const DflashStored *found, int element) {
  uint64_t size = found->size;
  switch (element) {
  case DFLASH_ELEMENT_F32:
  case DFLASH_ELEMENT_F64:
    return found->number == DFLASH_NUMBER_FLOAT && (size == 2 || size == 4 || size == dflash_element_size(element));
  case DFLASH_ELEMENT_I32:
    return found->number == DFLASH_NUMBER_INTEGER && size <= 8;
  case DFLASH_ELEMENT_U16:
  case DFLASH_ELEMENT_U8:
    return found->number == DFLASH_NUMBER_INTEGER && !found->is_signed && size == dflash_element_size(element);
  default:
    return found->number == DFLASH_NUMBER_COMPOUND;
  }
}

static bool type_is_exact(const DflashStored *found, int element) {
  if (found->number == DFLASH_NUMBER_COMPOUND) return false;
  bool sign_fits = found->number == DFLASH_NUMBER_FLOAT || found->is_signed == (element == DFLASH_ELEMENT_I32);
  return sign_fits && found->plain && found->size == dflash_element_size(element);
}

static bool shape_fits(const DflashStored *found, const DflashWanted *wanted) {
  if (found->rank != wanted->rank) return false;
  for (int i = 0; i < wanted->rank; i++) {
    if (found->shape[i] > INT64_MAX) return false;
    if (wanted->shape[i] != DFLASH_ANY && (int64_t)found->shape[i] != wanted->shape[i]) return false;
  }
  return true;
}

static DflashStatus fail_shape(const DflashStored *found, const DflashWanted *wanted, const char *path,
                               DflashError *error) {
  char have[96] = "no dataspace", want[96];
  int64_t shape[DFLASH_STORED_RANK];
  for (int i = 0; i < DFLASH_STORED_RANK; i++)
    shape[i] = found->shape[i] > INT64_MAX ? INT64_MAX : (int64_t)found->shape[i];
  if (found->rank >= 0)
    dflash_shape_text(shape, found->rank < DFLASH_STORED_RANK ? found->rank : DFLASH_STORED_RANK, have);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: shape %s%s, expected %s", path, have,
                          found->rank > DFLASH_STORED_RANK ? " and more" : "",
                          dflash_shape_text(wanted->shape, wanted->rank, want));
}

static bool count_elements(const DflashStored *found, int element, DflashPlace *place) {
  int64_t count = 1, bytes, stored;
  for (int i = 0; i < found->rank; i++) {
    place->shape[i] = (int64_t)found->shape[i];
    if (!dflash_mul_i64(count, place->shape[i], &count)) return false;
  }
  if (!dflash_mul_i64(count, (int64_t)dflash_element_size(element), &bytes)) return false;
  if (found->size > INT64_MAX || !dflash_mul_i64(count, (int64_t)found->size, &stored)) return false;
  place->count = (uint64_t)count;
  place->bytes = (uint64_t)bytes;
  return true;
}

static DflashStatus check_contiguous(const DflashStored *found, uint64_t stored, const char *path, uint64_t file_size,
                                     DflashError *error) {
  if (found->offset == DFLASH_NO_OFFSET)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: holds no data, expected %llu bytes", path,
                            (unsigned long long)stored);
  if (found->offset <= file_size && stored <= file_size - found->offset) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %llu bytes at offset %llu, past the end of the file at %llu",
                          path, (unsigned long long)stored, (unsigned long long)found->offset,
                          (unsigned long long)file_size);
}

/* Compact and chunked data: as much of the file as the claimed size needs at the least. */
static DflashStatus check_allocated(const DflashStored *found, uint64_t stored, const char *path, uint64_t file_size,
                                    DflashError *error) {
  if (found->layout == DFLASH_LAYOUT_CHUNKED && !found->whole)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: chunks are missing, expected all of them", path);
  uint64_t ratio = found->layout == DFLASH_LAYOUT_CHUNKED ? FILTER_RATIO : 1;
  if (found->allocated <= file_size && stored / ratio <= found->allocated) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %llu bytes in the file cannot hold %llu", path,
                          (unsigned long long)found->allocated, (unsigned long long)stored);
}

static DflashStatus check_extent(const DflashStored *found, const DflashPlace *place, const char *path,
                                 uint64_t file_size, DflashError *error) {
  uint64_t stored = place->count * found->size;
  if (found->external || found->layout == DFLASH_LAYOUT_OTHER)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: data in another file or virtual, expected its own", path);
  return found->layout == DFLASH_LAYOUT_CONTIGUOUS ? check_contiguous(found, stored, path, file_size, error)
                                                   : check_allocated(found, stored, path, file_size, error);
}

DflashStatus dflash_stored_place(const DflashStored *found, const DflashWanted *wanted, const char *path,
                                 uint64_t file_size, DflashPlace *place, DflashError *error) {
  *place = (DflashPlace){0};
  if (!type_fits(found, wanted->element))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: type %s, expected %s", path, found->type_name,
                            dflash_element_name(wanted->element));
  if (!shape_fits(found, wanted)) return fail_shape(found, wanted, path, error);
  if (!count_elements(found, wanted->element, place))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: its sizes overflow", path);
  if (place->count == 0) return DFLASH_OK;
  DflashStatus status = check_extent(found, place, path, file_size, error);
  if (status != DFLASH_OK) return status;
  uint64_t alignment = wanted->element == DFLASH_ELEMENT_F64 ? 8 : 4;
  bool mapped = found->layout == DFLASH_LAYOUT_CONTIGUOUS && type_is_exact(found, wanted->element) &&
                found->offset % alignment == 0;
  place->how = mapped ? DFLASH_PLACE_MAP : DFLASH_PLACE_READ;
  return DFLASH_OK;
}
