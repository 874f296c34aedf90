#include "base/error.h"
#include "model/cmf.h"
#include "model/sidecar.h"
#include "model/storage.h"

#define NAME(record) (int)(record)->name_bytes, (record)->name

static DflashStatus check_type(const DflashCmfRecord *record, DflashError *error) {
  if (dflash_storage_name(record->dtype) == NULL)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "tensor %.*s has dtype %u; known are f32 0, f16 1, bf16 2, q8_2f 9, q4tp 15", NAME(record),
                            record->dtype);
  if (record->rank < 1 || record->rank > 3)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.*s has ndim %u, expected 1 to 3", NAME(record),
                            record->rank);
  return DFLASH_OK;
}

static DflashStatus check_place(const DflashCmf *cmf, const DflashCmfRecord *record, DflashError *error) {
  if (record->offset % DFLASH_CMF_TENSOR_ALIGN != 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.*s begins at %llu of the data, no multiple of %d",
                            NAME(record), (unsigned long long)record->offset, DFLASH_CMF_TENSOR_ALIGN);
  if (record->offset > cmf->data_bytes || record->bytes > cmf->data_bytes - record->offset)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "tensor %.*s, %llu bytes at %llu, ends past the data section's %llu bytes", NAME(record),
                            (unsigned long long)record->bytes, (unsigned long long)record->offset,
                            (unsigned long long)cmf->data_bytes);
  return DFLASH_OK;
}

DflashStatus dflash_cmf_tensor(const DflashCmf *cmf, const DflashCmfRecord *record, DflashTensor *tensor,
                               DflashError *error) {
  DflashStatus status = check_type(record, error);
  if (status == DFLASH_OK) status = check_place(cmf, record, error);
  if (status != DFLASH_OK) return status;
  *tensor = (DflashTensor){.storage = record->dtype, .rank = record->rank, .bytes = record->bytes};
  for (int i = 0; i < record->rank; i++) tensor->shape[i] = record->shape[i];
  tensor->data = cmf->data + record->offset;
  return DFLASH_OK;
}

DflashStatus dflash_cmf_verify(const DflashCmfRecord *record, const DflashTensor *tensor, DflashError *error) {
  if (record->hash == 0) return DFLASH_OK;
  uint64_t found = dflash_hash64(tensor->data, tensor->bytes);
  if (found == record->hash) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.*s is damaged: its hash is %016llx, stored is %016llx",
                          NAME(record), (unsigned long long)found, (unsigned long long)record->hash);
}
