/* Records and their writers. A record is one JSON object whose members docs/records.md lists; every writer sees
 * every record. Files are whole after each case: a crash of this process loses at most the case in work. */
#ifndef DFLASH_STORE_STORE_H
#define DFLASH_STORE_STORE_H

#include <stdio.h>

#include "dflash/status.h"

struct cJSON;

typedef struct DflashStore DflashStore;

typedef struct DflashStoreOptions {
  FILE *console;            /* tables for a person; NULL: none */
  const char *json_path;    /* JSON lines, appended case by case; NULL: none */
  const char *junit_path;   /* rewritten beside and renamed after each case, first with what resume keeps; NULL: none */
  const char *history_path; /* a history that complete cases are added to; NULL: none */
  int resume;  /* json_path's complete cases are kept (see dflash_store_has) and appended to; a broken last line is cut
                */
  int verbose; /* console: every stage, not only the notable ones */
} DflashStoreOptions;

#define DFLASH_RECORD_SCHEMA "dflash-record"
#define DFLASH_RECORD_VERSION 1

DflashStatus dflash_store_open(const DflashStoreOptions *options, DflashStore **store, DflashError *error);
/* Adds schema, version to the object and hands it to every writer. The object stays the caller's. */
DflashStatus dflash_store_record(DflashStore *store, struct cJSON *record, DflashError *error);
/* 1 when json_path already held the complete record of this case (type "case") for the same backend, device,
 * profile, modes, settings and inputs_hash; what key lacks is not compared. */
int dflash_store_has(const DflashStore *store, const struct cJSON *key);
/* That record, the last one of several; NULL when there is none. It belongs to the store. */
const struct cJSON *dflash_store_find(const DflashStore *store, const struct cJSON *key);
DflashStatus dflash_store_close(DflashStore *store, DflashError *error); /* flushes, releases */

#endif
