/* The container of CMF version 2: envelope, tensor directory, data. Used by sidecars and by the heads of targets.
 * Layout, little-endian: an envelope of 128 bytes (magic, version, flags, required features, six pairs of offset
 * and length, two hashes), then sections anywhere after it. A hash of 0 is not checked. */
#ifndef DFLASH_MODEL_CMF_H
#define DFLASH_MODEL_CMF_H

#include "dflash/status.h"
#include "dflash/tensor.h"

enum {
  DFLASH_CMF_VERSION = 2,
  DFLASH_CMF_ENVELOPE_BYTES = 128,
  DFLASH_CMF_RECORD_BYTES = 56,
  DFLASH_CMF_DIRECTORY_HEAD = 16, /* count and offset of the name pool */
  DFLASH_CMF_DATA_ALIGN = 4096,
  DFLASH_CMF_TENSOR_ALIGN = 64,
  DFLASH_CMF_RANK_MAX = 6
};
#define DFLASH_CMF_MAGIC "CMF\x01"

/* Offsets of the envelope's fields; a section's length follows its offset. */
enum {
  DFLASH_CMF_AT_VERSION = 4,
  DFLASH_CMF_AT_FLAGS = 8,
  DFLASH_CMF_AT_FEATURES = 12,
  DFLASH_CMF_AT_HEADER = 16,
  DFLASH_CMF_AT_DIRECTORY = 32,
  DFLASH_CMF_AT_DATA = 48,
  DFLASH_CMF_AT_HEADER_HASH = 112,
  DFLASH_CMF_AT_DIRECTORY_HASH = 120
};

enum {
  DFLASH_CMF_FEATURE_DIRECTORY = 1 << 0,
  DFLASH_CMF_FEATURE_MASKS = 1 << 1,
  DFLASH_CMF_FEATURE_TWO_FIELD = 1 << 2,
  DFLASH_CMF_FEATURE_LOOP_MASKS = 1 << 5,
  DFLASH_CMF_FEATURE_SKILL = 1 << 6
};

typedef struct DflashCmfRecord {
  const char *name; /* in the file, not terminated */
  uint16_t name_bytes;
  uint8_t dtype, rank;
  uint32_t shape[DFLASH_CMF_RANK_MAX];
  uint64_t offset, bytes, hash; /* as stored, not checked yet */
} DflashCmfRecord;

typedef struct DflashCmf {
  const char *header; /* JSON text in the file, its hash checked */
  uint64_t header_bytes;
  const unsigned char *data;
  uint64_t data_bytes;
  DflashCmfRecord *records; /* owned, in name order */
  uint64_t count;
} DflashCmf;

int dflash_cmf_is(const void *file, uint64_t size); /* 1 when it begins with the magic */

/* Envelope, sections, hashes of header and directory, and every record's name, rank and shape. The file must be
 * 8-byte aligned and outlive the result. */
DflashStatus dflash_cmf_parse(const void *file, uint64_t size, DflashCmf *cmf, DflashError *error);
void dflash_cmf_close(DflashCmf *cmf);

const DflashCmfRecord *dflash_cmf_find(const DflashCmf *cmf, const char *name); /* NULL: no such tensor */
/* The tensor of a record: dtype, rank and place are checked, nothing of its data is read. */
DflashStatus dflash_cmf_tensor(const DflashCmf *cmf, const DflashCmfRecord *record, DflashTensor *tensor,
                               DflashError *error);
/* The stored hash against the tensor's data. */
DflashStatus dflash_cmf_verify(const DflashCmfRecord *record, const DflashTensor *tensor, DflashError *error);

/* Part of dflash_cmf_parse: the records of a directory section, into cmf->records. */
DflashStatus dflash_cmf_directory(const unsigned char *section, uint64_t size, DflashCmf *cmf, DflashError *error);

/* Loads of unaligned little-endian numbers; every host of this project is little-endian. */
uint16_t dflash_cmf_u16(const unsigned char *at);
uint32_t dflash_cmf_u32(const unsigned char *at);
uint64_t dflash_cmf_u64(const unsigned char *at);

#endif
