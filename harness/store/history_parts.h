/* What the files of the history share. Internal to it. */
#ifndef DFLASH_STORE_HISTORY_PARTS_H
#define DFLASH_STORE_HISTORY_PARTS_H

#include <sqlite3.h>

#include "base/text.h"
#include "store/history.h"

struct DflashHistory {
  sqlite3 *db;
  char *path;
};

/* Any status of SQLite as one of ours, with a line that begins with the path. */
DflashStatus dflash_history_fail(const DflashHistory *history, DflashError *error);
/* Reads again, from the records of every bench, the columns that tell its state. */
DflashStatus dflash_history_state_again(DflashHistory *history, DflashError *error);
/* Creates the tables of a new file, brings an older one up to date, refuses what is none. */
DflashStatus dflash_history_check(DflashHistory *history, DflashHistoryAccess access, DflashError *error);

DflashStatus dflash_history_execute(DflashHistory *history, const char *sql, DflashError *error);
DflashStatus dflash_history_prepare(DflashHistory *history, const char *sql, sqlite3_stmt **statement,
                                    DflashError *error);
/* Values by letters: i int64_t, d double (NaN: NULL), t const char * (NULL: NULL), b const DflashText * as bytes
 * (NULL: NULL). Texts must stay until the statement is done. */
void dflash_history_bind(sqlite3_stmt *statement, const char *letters, ...);
/* Prepares, binds, runs to the end. */
DflashStatus dflash_history_do(DflashHistory *history, DflashError *error, const char *sql, const char *letters, ...);
/* The same, and the first column of its first row; *value stays when there is no row. */
DflashStatus dflash_history_number(DflashHistory *history, int64_t *value, DflashError *error, const char *sql,
                                   const char *letters, ...);

/* IMMEDIATE: the lock that writing needs is taken at once, waited for if need be. */
DflashStatus dflash_history_begin(DflashHistory *history, DflashError *error);
/* Commits when status is DFLASH_OK and that works, else rolls back; the status that then holds. */
DflashStatus dflash_history_end(DflashHistory *history, DflashStatus status, DflashError *error);

#endif
