/* The parts of a spool. Internal to it. */
#ifndef DFLASH_RUN_DUMP_PARTS_H
#define DFLASH_RUN_DUMP_PARTS_H

#include <cjson/cJSON.h>

#include "run/dump.h"

struct DflashDumpSpool {
  const char *path;
  int descriptor; /* parent and child share the file */
  int64_t limit;
  cJSON *entries;    /* array: what the child told, completed by later records */
  int in_case;       /* the first entry of the case in work */
  int64_t left_out;  /* values that did not fit, or could not be written */
  int64_t valueless; /* failures that have no values */
};

#endif
