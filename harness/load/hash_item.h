/* The kinds of items that a hash is made of. Between hash.c and hash_parts.c. */
#ifndef DFLASH_LOAD_HASH_ITEM_H
#define DFLASH_LOAD_HASH_ITEM_H

#include "load/hash.h"

/* Attributes: path "object/@name". */
void dflash_hash_i64(DflashHashList *list, const char *object, const char *name, int64_t value);
void dflash_hash_f64(DflashHashList *list, const char *object, const char *name, double value);
void dflash_hash_integers(DflashHashList *list, const char *object, const char *name, const int64_t *values,
                          int64_t count);
void dflash_hash_text(DflashHashList *list, const char *object, const char *name, const char *text);
/* Datasets: path "object/name". NULL when memory was out. */
DflashHashItem *dflash_hash_array(DflashHashList *list, const char *object, const char *name, const char *type,
                                  int rank, const int64_t *shape, const void *data, uint64_t bytes);

#endif
