#include "model/sidecar_tensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"

typedef struct Found {
  int64_t index;
  DflashWeightEntry entry;
  const DflashCmfRecord *record;
  DflashTensor tensor;
} Found;

static DflashStatus find_tensor(const DflashCmf *cmf, Found *found, DflashError *error) {
  char name[sizeof DFLASH_SIDECAR_PREFIX + sizeof found->entry.name];
  snprintf(name, sizeof name, DFLASH_SIDECAR_PREFIX "%s", found->entry.name);
  found->record = dflash_cmf_find(cmf, name);
  if (found->record == NULL)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %s is missing from the directory", name);
  DflashStatus status = dflash_cmf_tensor(cmf, found->record, &found->tensor, error);
  return status == DFLASH_OK ? dflash_weight_check(&found->entry, &found->tensor, error) : status;
}

static int compare_places(const void *a, const void *b) {
  const DflashCmfRecord *x = ((const Found *)a)->record, *y = ((const Found *)b)->record;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Every range lies inside the data section, so that the sum does not overflow. */
static DflashStatus check_overlap(const Found *found, int64_t count, DflashError *error) {
  for (int64_t i = 1; i < count; i++)
    if (found[i - 1].record->offset + found[i - 1].record->bytes > found[i].record->offset)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "tensors %s and %s overlap", found[i - 1].entry.name,
                              found[i].entry.name);
  return DFLASH_OK;
}

static DflashStatus check_data(const Found *found, int64_t count, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++) {
    status = dflash_cmf_verify(found[i].record, &found[i].tensor, error);
    if (status == DFLASH_OK) status = dflash_tensor_check(&found[i].tensor, found[i].entry.name, error);
  }
  return status;
}

static DflashStatus find_all(const DflashCmf *cmf, const DflashGeometry *geometry, Found *found, int64_t count,
                             DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++) {
    found[i].index = i;
    dflash_weight_entry(geometry, i, &found[i].entry);
    status = find_tensor(cmf, &found[i], error);
  }
  return status;
}

/* The set is made last: only then is it known that the file holds tensors as large as its geometry claims. */
static DflashStatus fill_set(const DflashGeometry *geometry, const Found *found, int64_t count, DflashWeightSet *set,
                             DflashError *error) {
  DflashStatus status = dflash_weight_set_open(geometry, set, error);
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++)
    *dflash_weight_at(geometry, set, found[i].index) = found[i].tensor;
  return status;
}

DflashStatus dflash_sidecar_tensors(const DflashCmf *cmf, const DflashGeometry *geometry, DflashWeightSet *set,
                                    DflashError *error) {
  int64_t count = dflash_weight_count(geometry);
  *set = (DflashWeightSet){0};
  Found *found = dflash_alloc((size_t)count, sizeof *found);
  if (found == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "tensors: out of memory");
  DflashStatus status = find_all(cmf, geometry, found, count, error);
  if (status == DFLASH_OK) qsort(found, (size_t)count, sizeof *found, compare_places);
  if (status == DFLASH_OK) status = check_overlap(found, count, error);
  if (status == DFLASH_OK) status = check_data(found, count, error);
  if (status == DFLASH_OK) status = fill_set(geometry, found, count, set, error);
  free(found);
  return status;
}
