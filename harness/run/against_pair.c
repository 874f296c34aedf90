/* Pairs of processes, and where their records go. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/unfinished.h"
#include "run/against_parts.h"
#include "store/fields.h"
#include "time/clock.h"

#define SAID_LIMIT (UINT64_C(1) << 20)

enum { JSON, SAID };

static DflashStatus make_file(DflashAgainst *a, int which, DflashError *error) {
  char *path = a->scratch[which].path;
  const char *folder = getenv("TMPDIR");
  if (folder == NULL || *folder == '\0' || strlen(folder) > sizeof a->scratch[which].path - 24) folder = "/tmp";
  snprintf(path, sizeof a->scratch[which].path, "%s/dflash-against-XXXXXX", folder);
  const int descriptor = mkstemp(path);
  if (descriptor < 0) {
    *path = '\0';
    return dflash_error_set(error, DFLASH_IO, "%s: no scratch file: %s", folder, strerror(errno));
  }
  close(descriptor);
  a->scratch[which].listed = dflash_unfinished_add(path);
  return DFLASH_OK;
}

/* Cold blocks are held against the roofline; and both sides do the same. */
static bool needs_roofline(const DflashAgainst *a) {
  const char *against = a->options->against;
  if (a->options->run->cold) return true;
  return against != NULL && dflash_against_is_program(against) &&
         !dflash_against_knows_no_roofline(against, a->scratch[SAID].path);
}

DflashStatus dflash_against_open(DflashAgainst *a, DflashError *error) {
  const DflashStoreOptions store = {.json_path = a->options->run->json, .history_path = a->options->run->history};
  DflashStatus status = dflash_store_open(&store, &a->store, error);
  if (status == DFLASH_OK) status = make_file(a, JSON, error);
  if (status == DFLASH_OK) status = make_file(a, SAID, error);
  const bool roofline = status == DFLASH_OK && needs_roofline(a);
  const char *json = a->scratch[JSON].path;
  for (int side = 0; side < 2 && status == DFLASH_OK; side++)
    if (!dflash_against_command(a->options, side == 0 ? 'A' : 'B', roofline, json, &a->commands[side]))
      status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--against: the command line is too long");
  return status;
}

/* Takes the record over. */
DflashStatus dflash_against_record(DflashAgainst *a, cJSON *record, DflashError *error) {
  if (record == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
  const DflashStatus status = dflash_store_record(a->store, record, error);
  cJSON_Delete(record);
  return status;
}

/* The results from the first of them on get their side and pair, and are stored: one run holds all processes. */
static DflashStatus keep(DflashAgainst *a, int64_t first, int side, DflashError *error) {
  const char name[] = {"AB"[side], '\0'};
  DflashStatus status = DFLASH_OK;
  for (int64_t i = first; i < a->runs.record_count && status == DFLASH_OK; i++) {
    cJSON *record = a->runs.records[i];
    if (dflash_record_is(record, "run") || dflash_record_is(record, "summary")) continue;
    if (dflash_record_is(record, "bench")) {
      cJSON_AddStringToObject(record, "side", name);
      cJSON_AddNumberToObject(record, "pair", (double)a->pairs);
    }
    status = dflash_store_record(a->store, record, error);
  }
  return status;
}

/* Why a process failed: its own last line, else what its records say. */
static DflashStatus tell_failure(DflashAgainst *a, int side, int status, DflashError *error) {
  DflashRuns runs = {0};
  char *said = NULL;
  uint64_t size = 0;
  const char *why = "";
  if (dflash_read_file(a->scratch[SAID].path, SAID_LIMIT, &said, &size, NULL) == DFLASH_OK && size > 0) {
    said[size - 1] = '\0';
    const char *line = strrchr(said, '\n'), *after = strstr(line != NULL ? line : said, "error: ");
    why = after != NULL ? after + strlen("error: ") : said;
  } else if (dflash_runs_read(&runs, a->scratch[JSON].path, NULL) == DFLASH_OK && runs.count > 0) {
    why = dflash_field_text(runs.results[runs.count - 1].done, "message");
  }
  a->process_exit = status;
  dflash_error_set(error, DFLASH_INTERNAL, "side %c, exit status %d: %s", "AB"[side], status, why);
  free(said);
  dflash_runs_close(&runs);
  return DFLASH_INTERNAL;
}

static DflashStatus run_process(DflashAgainst *a, int side, DflashError *error) {
  const int64_t first = a->runs.record_count, known = a->runs.count;
  const char *json = a->scratch[JSON].path;
  int status = 0;
  if (truncate(json, 0) != 0) return dflash_error_set(error, DFLASH_IO, "%s: %s", json, strerror(errno));
  DflashStatus result = dflash_against_run(a->commands[side].words, "/dev/null", a->scratch[SAID].path, &status, error);
  if (result == DFLASH_OK && status != 0) return tell_failure(a, side, status, error);
  if (result == DFLASH_OK) result = dflash_runs_read(&a->runs, json, error);
  if (result == DFLASH_OK && a->runs.count == known)
    result = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "side %c: %s wrote no records; it is no dflash-harness",
                              "AB"[side], a -> commands[side].words[0]);
  return result == DFLASH_OK ? keep(a, first, side, error) : result;
}

/* Side by side; who goes first alternates, so that neither always follows the other. */
DflashStatus dflash_against_pair(DflashAgainst *a, DflashError *error) {
  const uint64_t begin = dflash_clock_ns();
  const int first = (int)(a->pairs % 2);
  dflash_progress("pair %lld", (long long)a->pairs + 1);
  DflashStatus status = run_process(a, first, error);
  if (status == DFLASH_OK) status = run_process(a, 1 - first, error);
  const uint64_t took = dflash_clock_ns() - begin;
  if (took > a->pair_ns) a->pair_ns = took;
  a->pairs++;
  return status;
}

DflashStatus dflash_against_close_store(DflashAgainst *a, DflashError *error) {
  DflashStore *store = a->store;
  a->store = NULL;
  return dflash_store_close(store, error);
}

void dflash_against_close(DflashAgainst *a) {
  dflash_against_close_store(a, NULL);
  dflash_runs_comparison_close(&a->comparison);
  dflash_runs_close(&a->runs);
  for (int side = 0; side < 2; side++) dflash_against_command_free(&a->commands[side]);
  for (int which = 0; which < 2; which++) {
    if (a->scratch[which].path[0] == '\0') continue;
    unlink(a->scratch[which].path);
    dflash_unfinished_release(a->scratch[which].listed);
  }
}
