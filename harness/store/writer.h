/* What the store hands records to. Internal to store. */
#ifndef DFLASH_STORE_WRITER_H
#define DFLASH_STORE_WRITER_H

#include "store/store.h"

/* record: one record, in the order in which they came. close: writes what is left, releases; called once. */
typedef struct DflashWriter {
  void *self; /* NULL: not open */
  DflashStatus (*record)(void *self, const struct cJSON *record, DflashError *error);
  DflashStatus (*close)(void *self, DflashError *error);
} DflashWriter;

typedef struct DflashResume DflashResume;

DflashStatus dflash_console_open(FILE *file, int verbose, DflashWriter *writer, DflashError *error);
/* resume: NULL starts the file anew, else it goes on after what resume found. A file of something else is refused. */
DflashStatus dflash_json_lines_open(const char *path, const DflashResume *resume, DflashWriter *writer,
                                    DflashError *error);
/* resume: NULL or what was found in the file of records `kept`, whose complete cases come first. */
DflashStatus dflash_junit_open(const char *path, const DflashResume *resume, const char *kept, DflashWriter *writer,
                               DflashError *error);

/* A history that cases are added to as they are complete (docs/history.md). */
DflashStatus dflash_history_writer_open(const char *path, DflashWriter *writer, DflashError *error);

/* Reads a file of records that an earlier run may have left unfinished. No file is an empty one. */
DflashStatus dflash_resume_open(const char *path, DflashResume **resume, DflashError *error);
/* DFLASH_INVALID_DATA when path is a file that holds something else than records. */
DflashStatus dflash_resume_check(const char *path, DflashError *error);
void dflash_resume_close(DflashResume *resume);
/* Hands the writer the verdict and case records of every complete case in path, the file that was read. */
DflashStatus dflash_resume_replay(const DflashResume *resume, const char *path, const DflashWriter *writer,
                                  DflashError *error);
uint64_t dflash_resume_size(const DflashResume *resume); /* bytes up to the end of the last complete case */
const struct cJSON *dflash_resume_find(const DflashResume *resume, const struct cJSON *key); /* the last one */

#endif
