#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/cmf.h"
#include "model/json.h"

/* The parts of a directory section, inside it. */
typedef struct Directory {
  const unsigned char *records;
  uint64_t count;
  const char *pool;
  uint64_t pool_bytes;
} Directory;

static DflashStatus split(const unsigned char *section, uint64_t size, Directory *directory, DflashError *error) {
  if (size < DFLASH_CMF_DIRECTORY_HEAD)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "directory: %llu bytes, at least %d are needed",
                            (unsigned long long)size, DFLASH_CMF_DIRECTORY_HEAD);
  uint64_t count = dflash_cmf_u64(section), pool = dflash_cmf_u64(section + 8);
  uint64_t room = (size - DFLASH_CMF_DIRECTORY_HEAD) / DFLASH_CMF_RECORD_BYTES;
  if (count > room)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "directory: count is %llu, the section has room for %llu records",
                            (unsigned long long)count, (unsigned long long)room);
  uint64_t end = DFLASH_CMF_DIRECTORY_HEAD + count * DFLASH_CMF_RECORD_BYTES;
  if (pool < end || pool > size)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "directory: the name pool begins at %llu, valid is %llu to %llu", (unsigned long long)pool,
                            (unsigned long long)end, (unsigned long long)size);
  *directory = (Directory){section + DFLASH_CMF_DIRECTORY_HEAD, count, (const char *)section + pool, size - pool};
  return DFLASH_OK;
}

static DflashStatus read_name(const Directory *directory, uint64_t index, DflashCmfRecord *record, DflashError *error) {
  const unsigned char *at = directory->records + index * DFLASH_CMF_RECORD_BYTES;
  uint32_t offset = dflash_cmf_u32(at);
  record->name_bytes = dflash_cmf_u16(at + 4);
  if (offset > directory->pool_bytes || record->name_bytes > directory->pool_bytes - offset)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "directory: record %llu's name, %u bytes at %u, ends past the name pool's %llu bytes",
                            (unsigned long long)index, record->name_bytes, offset,
                            (unsigned long long)directory->pool_bytes);
  record->name = directory->pool + offset;
  if (!dflash_utf8_valid(record->name, record->name_bytes))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "directory: record %llu's name is not UTF-8",
                            (unsigned long long)index);
  return DFLASH_OK;
}

static DflashStatus read_record(const Directory *directory, uint64_t index, DflashCmfRecord *record,
                                DflashError *error) {
  const unsigned char *at = directory->records + index * DFLASH_CMF_RECORD_BYTES;
  DflashStatus status = read_name(directory, index, record, error);
  if (status != DFLASH_OK) return status;
  record->dtype = at[6];
  record->rank = at[7];
  if (record->rank > DFLASH_CMF_RANK_MAX)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "directory: record %llu's ndim is %u, at most %d are valid",
                            (unsigned long long)index, record->rank, DFLASH_CMF_RANK_MAX);
  for (int i = 0; i < DFLASH_CMF_RANK_MAX; i++) {
    record->shape[i] = dflash_cmf_u32(at + 8 + 4 * i);
    if (i >= record->rank && record->shape[i] != 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA,
                              "directory: record %llu's shape[%d] is %u, expected 0 past its ndim of %u",
                              (unsigned long long)index, i, record->shape[i], record->rank);
  }
  record->offset = dflash_cmf_u64(at + 32);
  record->bytes = dflash_cmf_u64(at + 40);
  record->hash = dflash_cmf_u64(at + 48);
  return DFLASH_OK;
}

static int compare_names(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes) {
  int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
  return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_records(const void *a, const void *b) {
  const DflashCmfRecord *x = a, *y = b;
  return compare_names(x->name, x->name_bytes, y->name, y->name_bytes);
}

static DflashStatus sort_records(DflashCmf *cmf, DflashError *error) {
  if (cmf->count > 1) qsort(cmf->records, cmf->count, sizeof *cmf->records, compare_records);
  for (uint64_t i = 1; i < cmf->count; i++)
    if (compare_records(&cmf->records[i - 1], &cmf->records[i]) == 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "directory: tensor %.*s is there twice",
                              (int)cmf->records[i].name_bytes, cmf->records[i].name);
  return DFLASH_OK;
}

DflashStatus dflash_cmf_directory(const unsigned char *section, uint64_t size, DflashCmf *cmf, DflashError *error) {
  Directory directory = {0};
  DflashStatus status = split(section, size, &directory, error);
  if (status != DFLASH_OK) return status;
  cmf->records = dflash_alloc(directory.count + 1, sizeof *cmf->records);
  if (cmf->records == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "directory: out of memory");
  uint64_t names = 0; /* names that do not share bytes bound the time that validating and sorting them takes */
  for (uint64_t i = 0; i < directory.count && status == DFLASH_OK; i++) {
    status = read_record(&directory, i, &cmf->records[i], error);
    names += cmf->records[i].name_bytes;
    if (status == DFLASH_OK && names > directory.pool_bytes)
      status = dflash_error_set(error, DFLASH_INVALID_DATA, "directory: names overlap in the pool of %llu bytes",
                                (unsigned long long)directory.pool_bytes);
  }
  cmf->count = directory.count;
  if (status == DFLASH_OK) status = sort_records(cmf, error);
  if (status != DFLASH_OK) dflash_cmf_close(cmf);
  return status;
}

const DflashCmfRecord *dflash_cmf_find(const DflashCmf *cmf, const char *name) {
  uint64_t low = 0, high = cmf->count, bytes = strlen(name);
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    const DflashCmfRecord *record = &cmf->records[middle];
    int order = compare_names(name, bytes, record->name, record->name_bytes);
    if (order == 0) return record;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}
