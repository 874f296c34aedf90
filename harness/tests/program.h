/* For tests of the command line: runs the program as a child in a scratch folder and holds what it said. */
#ifndef DFLASH_TESTS_PROGRAM_H
#define DFLASH_TESTS_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#define FIXTURE_FILE(name) DFLASH_GOLDEN_FOLDER "/" name

typedef struct Program {
  char *command; /* the words after the program's name */
  int status;    /* exit status; -1: it did not exit by itself */
  char *out, *err;
} Program;

/* What holds for the programs that follow; zeros hold at the start of each test. */
typedef struct ProgramLimits {
  long file_bytes; /* RLIMIT_FSIZE; 0: none */
  int kill_after;  /* SIGKILL once its JSON file (kill_file) has this many lines; 0: never */
  const char *kill_file;
  const char *variable;    /* "NAME=VALUE" set for it */
  const char *stdout_path; /* its stdout goes there */
  const char *program;     /* another one than the harness */
} ProgramLimits;

/* Runs the program with the words of the formatted text, split at blanks, in the scratch folder; fails the test when it
 * does not end in time. */
Program program(const char *format, ...) __attribute__((format(printf, 1, 2)));
Program program_limited(const ProgramLimits *limits, const char *format, ...) __attribute__((format(printf, 2, 3)));
void program_close(Program *p);

/* Fails the test, showing what was run and said, unless the exit status is this one. */
void expect_status(const Program *p, int status);
/* Runs, and wants this exit status. */
void expect_run(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs; wants this status and exactly one line on stderr, an error that holds every one of `parts` (joined by '|'). */
void expect_error(int status, const char *parts, const char *format, ...) __attribute__((format(printf, 3, 4)));
void expect_contains(const Program *p, const char *text, const char *part);

/* Group fixtures: an empty scratch folder becomes the working folder, and goes at the end. The second one also makes
 * "t.h5", a golden with the cases cut, main and rewind. */
int scratch_setup(void **state);
int scratch_setup_golden(void **state);
int scratch_teardown(void **state);
/* No file of the scratch folder has a name with ".tmp". */
void expect_no_leftovers(void);
bool file_exists(const char *path);

/* A file's bytes with a NUL behind them; free() releases. */
char *read_whole(const char *path, size_t *size);
void write_whole(const char *path, const void *data, size_t size);
void copy_whole(const char *from, const char *to);

/* ---- records ---- */

/* An array of the records of a JSON-lines file; every line must be one, of this schema and version. */
cJSON *read_records(const char *path);
int count_records(const cJSON *records, const char *type);
const char *text_in(const cJSON *record, const char *name);
double number_in(const cJSON *record, const char *name); /* fails the test when absent */
/* The case record of this name, the last of several; fails the test when there is none. */
const cJSON *case_of(const cJSON *records, const char *name);
const cJSON *last_record(const cJSON *records);
/* The verdict of a case with this mode, stage and layer (-1: any); NULL when there is none. */
const cJSON *verdict_of(const cJSON *records, const char *case_name, const char *mode, const char *stage, int layer);

#endif
