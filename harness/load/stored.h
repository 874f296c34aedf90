/* What a file says about a dataset, and what may be done with it: decided without HDF5, before memory is taken. */
#ifndef DFLASH_LOAD_STORED_H
#define DFLASH_LOAD_STORED_H

#include <stdbool.h>
#include <stdint.h>

#include "dflash/status.h"

enum {
  DFLASH_ELEMENT_F32,
  DFLASH_ELEMENT_F64,
  DFLASH_ELEMENT_I32,
  DFLASH_ELEMENT_U16,
  DFLASH_ELEMENT_U8,
  DFLASH_ELEMENT_OPS /* a compound, read by the names of its members */
};

enum { DFLASH_NUMBER_FLOAT, DFLASH_NUMBER_INTEGER, DFLASH_NUMBER_COMPOUND, DFLASH_NUMBER_OTHER };
enum { DFLASH_LAYOUT_CONTIGUOUS, DFLASH_LAYOUT_COMPACT, DFLASH_LAYOUT_CHUNKED, DFLASH_LAYOUT_OTHER };

/* A dimension that is only found in the file. */
#define DFLASH_ANY (-1)
#define DFLASH_STORED_RANK 4
#define DFLASH_NO_OFFSET UINT64_MAX

typedef struct DflashStored {
  int number;    /* DFLASH_NUMBER_* */
  uint64_t size; /* bytes of an element in the file */
  bool is_signed;
  bool plain; /* little-endian IEEE or two's complement, every bit used */
  char type_name[48];
  int rank;                           /* -1: a null dataspace */
  uint64_t shape[DFLASH_STORED_RANK]; /* the first dimensions */
  int layout;                         /* DFLASH_LAYOUT_* */
  bool external;                      /* data in another file */
  uint64_t offset;                    /* of contiguous data in the file, DFLASH_NO_OFFSET when nothing was written */
  uint64_t allocated;                 /* bytes of the file that hold the data */
  bool whole;                         /* chunked: every chunk is there */
} DflashStored;

typedef struct DflashWanted {
  int element; /* DFLASH_ELEMENT_* */
  int rank;
  int64_t shape[3]; /* entries may be DFLASH_ANY */
} DflashWanted;

enum { DFLASH_PLACE_EMPTY, DFLASH_PLACE_MAP, DFLASH_PLACE_READ };

typedef struct DflashPlace {
  int how; /* DFLASH_PLACE_* */
  int64_t shape[3];
  uint64_t count, bytes; /* elements, and bytes of them in memory */
} DflashPlace;

uint64_t dflash_element_size(int element);
const char *dflash_element_name(int element);

/* Type, shape and extent of `found` against what is wanted; DFLASH_INVALID_DATA names path, found and expected.
 * Mapped are contiguous plain data of the exact type, 4-byte aligned (8 for f64) inside the file. */
DflashStatus dflash_stored_place(const DflashStored *found, const DflashWanted *wanted, const char *path,
                                 uint64_t file_size, DflashPlace *place, DflashError *error);

/* "[8, 64]"; "*" for DFLASH_ANY. */
const char *dflash_shape_text(const int64_t *shape, int rank, char text[96]);

#endif
