/* Hashes over paths, types, shapes and little-endian bytes, as docs/golden-format.md defines them. No HDF5 here.
 *
 * A list collects the items of one part of a golden in any order; feeding sorts them by path.
 */
#ifndef DFLASH_LOAD_HASH_H
#define DFLASH_LOAD_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "model/case.h"
#include "model/router.h"
#include "model/weights.h"

typedef struct DflashHashItem {
  char *path;
  const char *type; /* "f32", "i64", "text", ... */
  int rank;
  int64_t shape[3];
  uint64_t bytes;
  const void *data; /* NULL: in `inside` */
  union {
    int64_t integer;
    double real;
  } inside;
  void *owned; /* released with the list */
} DflashHashItem;

typedef struct DflashHashList {
  DflashHashItem *items;
  size_t count, capacity;
  bool failed; /* memory was out */
} DflashHashList;

/* Data are not copied: they stay where they are until the list is fed or closed. */
void dflash_hash_geometry(DflashHashList *list, const DflashGeometry *geometry, const float *inv_freq);
/* path: "/weights/NAME". */
void dflash_hash_tensor(DflashHashList *list, const char *path, const DflashTensor *tensor);
void dflash_hash_router(DflashHashList *list, const DflashRouter *router, int64_t count, const float *rows);
void dflash_hash_margins(DflashHashList *list, int64_t count, const double *margins);
void dflash_hash_case_inputs(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c);
void dflash_hash_case_values(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c);
void dflash_hash_case_scales(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c);

/* Puts the items into the hash in path order and empties the list; false when memory was out. */
bool dflash_hash_feed(DflashHashList *list, DflashSha256 *hash);
void dflash_hash_list_close(DflashHashList *list);

/* The order of cases: as their paths sort, a slash behind each name. */
int dflash_hash_case_order(const char *a, const char *b);

#endif
