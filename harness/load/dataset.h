/* Datasets: described, checked, then mapped or read. */
#ifndef DFLASH_LOAD_DATASET_H
#define DFLASH_LOAD_DATASET_H

#include "base/file.h"
#include "load/h5.h"
#include "load/stored.h"

typedef struct DflashData {
  void *data; /* never NULL on success: an empty dataset gets a place of its own */
  bool owned; /* free() releases it; else it lies in the mapping */
  int64_t shape[3];
  uint64_t count, bytes;
} DflashData;

/* What the file says about an open dataset. */
DflashStatus dflash_dataset_describe(const DflashNode *node, DflashStored *found, DflashError *error);
/* Opens, checks and reads parent/name. What fails is named by its path. */
DflashStatus dflash_dataset_read(const DflashNode *parent, const char *name, const DflashWanted *wanted,
                                 const DflashMapping *mapping, DflashData *out, DflashError *error);
/* The same of an open dataset. */
DflashStatus dflash_dataset_load(const DflashNode *node, const DflashWanted *wanted, const DflashMapping *mapping,
                                 DflashData *out, DflashError *error);
/* Always owned: for arrays that their holder frees. */
DflashStatus dflash_dataset_copy(const DflashNode *parent, const char *name, const DflashWanted *wanted,
                                 const DflashMapping *mapping, DflashData *out, DflashError *error);

#endif
