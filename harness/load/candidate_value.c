#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/candidate_parts.h"
#include "load/dataset.h"
#include "model/storage.h"

static int64_t as_size(uint64_t size) { return size > INT64_MAX ? INT64_MAX : (int64_t)size; }

int64_t dflash_candidate_rows(const DflashCandidateShape *wanted, int rank, const uint64_t *shape) {
  bool plain = rank == 2 && as_size(shape[1]) == wanted->width;
  bool headed = rank == 3 && wanted->heads > 0 && as_size(shape[1]) == wanted->heads &&
                as_size(shape[2]) == wanted->width / wanted->heads;
  return (plain || headed) && as_size(shape[0]) <= wanted->rows ? as_size(shape[0]) : -1;
}

static int compare_rows(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

const char *dflash_candidate_rows_fault(const int64_t *rows, int64_t count, int64_t all) {
  const char *fault = NULL;
  int64_t *sorted = malloc((size_t)(count > 0 ? count : 1) * sizeof *sorted);
  if (sorted == NULL) return "too many for this machine's memory";
  memcpy(sorted, rows, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare_rows);
  for (int64_t i = 0; i < count && fault == NULL; i++) {
    if (sorted[i] < 0 || sorted[i] >= all) fault = "outside of the value's rows";
    if (i > 0 && sorted[i] == sorted[i - 1]) fault = "named twice";
  }
  free(sorted);
  return fault;
}

static DflashStatus fail_shape(const DflashNode *node, const DflashStored *found, const DflashCandidateShape *wanted,
                               DflashError *error) {
  char have[96], heads[64] = "";
  int64_t shape[DFLASH_STORED_RANK];
  int rank = found->rank < 0 ? 0 : found->rank > DFLASH_STORED_RANK ? DFLASH_STORED_RANK : found->rank;
  for (int i = 0; i < rank; i++) shape[i] = as_size(found->shape[i]);
  if (wanted->heads > 0)
    snprintf(heads, sizeof heads, " or [%lld, %lld, %lld]", (long long)wanted->rows, (long long)wanted->heads,
             (long long)(wanted->width / wanted->heads));
  return dflash_error_set(
      error, DFLASH_INVALID_DATA, "%s: shape %s, expected [%lld, %lld]%s, or fewer rows and the attribute rows",
      node->path, dflash_shape_text(shape, rank, have), (long long)wanted->rows, (long long)wanted->width, heads);
}

/* An HDF5 float of 16 bits may be either kind: the bias of its exponent tells. */
static int float_storage(const DflashNode *node, const DflashStored *found) {
  if (found->size != 2) return DFLASH_KEPT_F32;
  hid_t type = H5Dget_type(node->id);
  size_t bias = type >= 0 ? H5Tget_ebias(type) : 0;
  dflash_h5_close(type);
  return bias == 127 ? DFLASH_KEPT_BF16 : DFLASH_KEPT_F16;
}

/* u16 holds the bits of what its attribute dtype names. */
static DflashStatus bits_storage(const DflashNode *node, int *storage, DflashError *error) {
  char *dtype;
  if (!dflash_attribute_has(node, "dtype"))
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "%s: u16 without the attribute dtype; valid: \"bf16\" or \"f16\"", node->path);
  DflashStatus status = dflash_attribute_text(node, "dtype", &dtype, error);
  if (status != DFLASH_OK) return status;
  *storage = strcmp(dtype, "bf16") == 0 ? DFLASH_KEPT_BF16 : DFLASH_KEPT_F16;
  if (*storage == DFLASH_KEPT_F16 && strcmp(dtype, "f16") != 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA,
                              "%s: attribute dtype is \"%.32s\"; valid: \"bf16\" or \"f16\"", node->path, dtype);
  free(dtype);
  return status;
}

static DflashStatus widen(const DflashData *bits, int storage, DflashCandidateValue *value, DflashError *error) {
  const uint16_t *from = bits->data;
  value->data = malloc((size_t)(bits->count > 0 ? bits->count : 1) * sizeof *value->data);
  if (value->data == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for values");
  for (uint64_t i = 0; i < bits->count; i++)
    value->data[i] = storage == DFLASH_KEPT_BF16 ? dflash_bf16_value(from[i]) : dflash_f16_value(from[i]);
  return DFLASH_OK;
}

static DflashStatus read_data(const DflashCandidate *candidate, const DflashNode *parent, const char *name,
                              const DflashStored *found, DflashCandidateValue *value, DflashError *error) {
  bool bits = found->number == DFLASH_NUMBER_INTEGER;
  DflashWanted wanted = {bits ? DFLASH_ELEMENT_U16 : DFLASH_ELEMENT_F32, found->rank, {0}};
  for (int i = 0; i < found->rank && i < 3; i++) wanted.shape[i] = as_size(found->shape[i]);
  DflashData data;
  DflashStatus status = dflash_dataset_copy(parent, name, &wanted, &candidate->file.mapping, &data, error);
  if (status != DFLASH_OK) return status;
  if (!bits) {
    value->data = data.data;
    return DFLASH_OK;
  }
  status = widen(&data, value->storage, value, error);
  free(data.data);
  return status;
}

static DflashStatus read_rows(const DflashNode *node, const DflashCandidateShape *shape, DflashCandidateValue *value,
                              DflashError *error) {
  if (!dflash_attribute_has(node, "rows")) {
    if (value->count == shape->rows) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %lld of %lld rows, and no attribute rows that says which",
                            node->path, (long long)value->count, (long long)shape->rows);
  }
  value->rows = malloc((size_t)(value->count > 0 ? value->count : 1) * sizeof *value->rows);
  if (value->rows == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", node->path);
  DflashStatus status = dflash_attribute_integers(node, "rows", value->rows, value->count, error);
  if (status != DFLASH_OK) return status;
  const char *fault = dflash_candidate_rows_fault(value->rows, value->count, shape->rows);
  if (fault == NULL) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: attribute rows: one is %s (0 to %lld)", node->path, fault,
                          (long long)shape->rows - 1);
}

static DflashStatus read_open(const DflashCandidate *candidate, const DflashNode *parent, const char *name,
                              const DflashNode *node, const DflashCandidateShape *shape, DflashCandidateValue *value,
                              DflashError *error) {
  DflashStored found;
  DflashStatus status = dflash_dataset_describe(node, &found, error);
  if (status != DFLASH_OK) return status;
  bool known = (found.number == DFLASH_NUMBER_FLOAT && (found.size == 2 || found.size == 4)) ||
               (found.number == DFLASH_NUMBER_INTEGER && !found.is_signed && found.size == 2);
  if (!known)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: type %s, expected f32, f16, or u16 with the bits of bf16",
                            node->path, found.type_name);
  value->storage = float_storage(node, &found);
  if (found.number == DFLASH_NUMBER_INTEGER) status = bits_storage(node, &value->storage, error);
  if (status != DFLASH_OK) return status;
  value->count = dflash_candidate_rows(shape, found.rank, found.shape);
  if (value->count < 0) return fail_shape(node, &found, shape, error);
  status = read_rows(node, shape, value, error);
  return status == DFLASH_OK ? read_data(candidate, parent, name, &found, value, error) : status;
}

DflashStatus dflash_candidate_value(const DflashCandidate *candidate, const DflashNode *parent, const char *name,
                                    const DflashCandidateShape *shape, DflashCandidateValue *value,
                                    DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_node_open(parent, name, DFLASH_NODE_DATASET, &node, error);
  if (status == DFLASH_OK) status = read_open(candidate, parent, name, &node, shape, value, error);
  dflash_node_close(&node);
  return status;
}
