#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/cmf.h"
#include "model/sidecar.h"

#define KNOWN_FEATURES                                                                      \
  (DFLASH_CMF_FEATURE_DIRECTORY | DFLASH_CMF_FEATURE_MASKS | DFLASH_CMF_FEATURE_TWO_FIELD | \
   DFLASH_CMF_FEATURE_LOOP_MASKS | DFLASH_CMF_FEATURE_SKILL)

typedef struct Section {
  const char *name;
  uint64_t offset, bytes;
} Section;

uint16_t dflash_cmf_u16(const unsigned char *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

uint32_t dflash_cmf_u32(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

uint64_t dflash_cmf_u64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

int dflash_cmf_is(const void *file, uint64_t size) { return size >= 4 && memcmp(file, DFLASH_CMF_MAGIC, 4) == 0; }

static DflashStatus check_envelope(const unsigned char *file, uint64_t size, DflashError *error) {
  if (!dflash_cmf_is(file, size))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "not a CMF file: it does not begin with 43 4D 46 01");
  if (size < DFLASH_CMF_ENVELOPE_BYTES)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "envelope: the file has %llu bytes, an envelope has %d",
                            (unsigned long long)size, DFLASH_CMF_ENVELOPE_BYTES);
  uint32_t version = dflash_cmf_u32(file + DFLASH_CMF_AT_VERSION);
  if (version != DFLASH_CMF_VERSION)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "envelope: version is %u, expected %d", version,
                            DFLASH_CMF_VERSION);
  uint32_t unknown = dflash_cmf_u32(file + DFLASH_CMF_AT_FEATURES) & ~(uint32_t)KNOWN_FEATURES;
  if (unknown != 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "envelope: required_features has unknown bits 0x%x", unknown);
  return DFLASH_OK;
}

/* A section that must be there: inside the file and behind the envelope. */
static DflashStatus read_section(const unsigned char *file, uint64_t size, int at, Section *section,
                                 DflashError *error) {
  section->offset = dflash_cmf_u64(file + at);
  section->bytes = dflash_cmf_u64(file + at + 8);
  if (section->offset == 0 || section->bytes == 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "the %s section is absent", section->name);
  if (section->offset < DFLASH_CMF_ENVELOPE_BYTES)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "the %s section begins at %llu, inside the envelope of %d bytes", section->name,
                            (unsigned long long)section->offset, DFLASH_CMF_ENVELOPE_BYTES);
  if (section->offset > size || section->bytes > size - section->offset)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "the %s section, %llu bytes at %llu, ends past the file's %llu bytes", section->name,
                            (unsigned long long)section->bytes, (unsigned long long)section->offset,
                            (unsigned long long)size);
  return DFLASH_OK;
}

/* Both lie inside the file, so that the sums do not overflow. */
static int sections_overlap(const Section *a, const Section *b) {
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static DflashStatus check_layout(const Section *sections, int count, DflashError *error) {
  for (int i = 0; i < count; i++)
    for (int j = i + 1; j < count; j++)
      if (sections_overlap(&sections[i], &sections[j]))
        return dflash_error_set(error, DFLASH_INVALID_DATA, "the %s and %s sections overlap", sections[i].name,
                                sections[j].name);
  const Section *data = &sections[count - 1];
  if (data->offset % DFLASH_CMF_DATA_ALIGN != 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "the data section begins at %llu, no multiple of %d",
                            (unsigned long long)data->offset, DFLASH_CMF_DATA_ALIGN);
  return DFLASH_OK;
}

static DflashStatus check_hash(const unsigned char *file, const Section *section, int at, DflashError *error) {
  uint64_t stored = dflash_cmf_u64(file + at);
  if (stored == 0) return DFLASH_OK;
  uint64_t found = dflash_hash64(file + section->offset, section->bytes);
  if (found == stored) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "the %s section is damaged: its hash is %016llx, stored is %016llx", section->name,
                          (unsigned long long)found, (unsigned long long)stored);
}

static DflashStatus read_sections(const unsigned char *file, uint64_t size, Section sections[3], DflashError *error) {
  const int at[3] = {DFLASH_CMF_AT_HEADER, DFLASH_CMF_AT_DIRECTORY, DFLASH_CMF_AT_DATA};
  for (int i = 0; i < 3; i++) {
    DflashStatus status = read_section(file, size, at[i], &sections[i], error);
    if (status != DFLASH_OK) return status;
  }
  DflashStatus status = check_layout(sections, 3, error);
  if (status == DFLASH_OK) status = check_hash(file, &sections[0], DFLASH_CMF_AT_HEADER_HASH, error);
  if (status == DFLASH_OK) status = check_hash(file, &sections[1], DFLASH_CMF_AT_DIRECTORY_HASH, error);
  return status;
}

DflashStatus dflash_cmf_parse(const void *file, uint64_t size, DflashCmf *cmf, DflashError *error) {
  const unsigned char *bytes = file;
  *cmf = (DflashCmf){0};
  if ((uintptr_t)file % 8 != 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "the file lies at an address that is no multiple of 8");
  DflashStatus status = check_envelope(bytes, size, error);
  if (status != DFLASH_OK) return status;
  Section sections[3] = {{.name = "header"}, {.name = "directory"}, {.name = "data"}};
  status = read_sections(bytes, size, sections, error);
  if (status != DFLASH_OK) return status;
  cmf->header = (const char *)bytes + sections[0].offset;
  cmf->header_bytes = sections[0].bytes;
  cmf->data = bytes + sections[2].offset;
  cmf->data_bytes = sections[2].bytes;
  return dflash_cmf_directory(bytes + sections[1].offset, sections[1].bytes, cmf, error);
}

void dflash_cmf_close(DflashCmf *cmf) {
  free(cmf->records);
  *cmf = (DflashCmf){0};
}
