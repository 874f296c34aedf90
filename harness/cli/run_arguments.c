#include "cli/run_arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "dflash/stages.h"
#include "model/stage_table.h"
#include "run/loader.h"

void dflash_run_arguments_init(DflashRunArguments *a) {
  *a = (DflashRunArguments){.profile = "exact", .shard = "1/1", .context = "push"};
  a->options = (DflashRunOptions){.layer = -1,
                                  .repeat = 1,
                                  .shards = 1,
                                  .timeout_s = 300,
                                  .confidence = 0.01,
                                  .budget_s = 60,
                                  .warmup = 2,
                                  .command = dflash_command_line()};
}

/* --option KEY=VALUE, kept in place: the key's text is cut at '='. value points into argv, which may be changed. */
DflashStatus dflash_run_arguments_take_option(void *context, const char *value, DflashError *error) {
  DflashRunOptions *o = context;
  char *equals = strchr(value, '=');
  if (equals == NULL || equals == value)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--option: '%s' is not KEY=VALUE", value);
  if (o->option_count == DFLASH_OPTIONS_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--option: more than %d are given", DFLASH_OPTIONS_MAX);
  *equals = '\0';
  o->options[o->option_count++] = (DflashOption){value, equals + 1};
  return DFLASH_OK;
}

void dflash_run_arguments_rows(DflashRunArguments *a, DflashArgument *table, int *count) {
  DflashRunOptions *o = &a->options;
  const DflashArgument rows[] = {
      {"backend,b", "NAME", "backend, by name or as the path of a shared object", DFLASH_ARGUMENT_TEXT, &o->backend, 0},
      {"backend-path", "PLACES", "folders or files, joined by ':', that are searched first", DFLASH_ARGUMENT_TEXT,
       &o->backend_path, 0},
      {"device,d", "ID", "device of the backend ('list devices'); default: its first", DFLASH_ARGUMENT_TEXT, &o->device,
       0},
      {"option", "KEY=VALUE", "option of the backend ('list backends'); may be repeated", DFLASH_ARGUMENT_CALL, o,
       dflash_run_arguments_take_option},
      {"profile", "P", "arithmetic profile: exact (default), i8, f16, bf16", DFLASH_ARGUMENT_TEXT, &a->profile, 0},
      {"case,c", "PATTERN", "cases to run: names or shell patterns, joined by ','", DFLASH_ARGUMENT_TEXT, &o->cases, 0},
      {"context", "HOW", "push (default): replay the case's operations; load: context_state as it is",
       DFLASH_ARGUMENT_TEXT, &a->context, 0},
      {"timeout", "TIME", "end a case that reports no progress for this long (300s)", DFLASH_ARGUMENT_SECONDS,
       &o->timeout_s, 0},
      {"allow-missing", NULL, "skip what is not available here, with its reason", DFLASH_ARGUMENT_FLAG,
       &o->allow_missing, 0},
      {"shard", "I/N", "run every N-th case, from the I-th", DFLASH_ARGUMENT_TEXT, &a->shard, 0},
      {"resume", NULL, "keep the complete cases of --json's file, run the others", DFLASH_ARGUMENT_FLAG, &o->resume, 0},
      {"json", "FILE", "write JSON lines (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o->json, 0},
      {"junit", "FILE", "write JUnit XML, one test case per stage and layer", DFLASH_ARGUMENT_TEXT, &o->junit, 0},
      {"history", "FILE", "add the run to this history, made if need be (docs/history.md)", DFLASH_ARGUMENT_TEXT,
       &o->history, 0},
      {"threads,t", "N", "threads of the harness, and of the backend if it has that option", DFLASH_ARGUMENT_THREADS,
       &a->threads, 0},
      {"verbose,v", NULL, "print every stage", DFLASH_ARGUMENT_FLAG, &o->verbose, 0},
      {"quiet,q", NULL, "print nothing but errors", DFLASH_ARGUMENT_FLAG, &o->quiet, 0},
  };
  memcpy(table + *count, rows, sizeof rows);
  *count += (int)(sizeof rows / sizeof rows[0]);
}

static DflashStatus parse_shard(DflashRunArguments *a, DflashError *error) {
  int64_t shard = 0, shards = 0;
  char first[24];
  const size_t length = strcspn(a->shard, "/");
  snprintf(first, sizeof first, "%.*s", (int)length, a->shard);
  if (length >= sizeof first || a->shard[length] != '/' || !dflash_parse_i64(first, &shard) ||
      !dflash_parse_i64(a->shard + length + 1, &shards) || shard < 1 || shards < shard)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--shard: '%s' is not I/N with 1 <= I <= N", a->shard);
  a->options.shard = shard - 1;
  a->options.shards = shards;
  return DFLASH_OK;
}

static bool stage_exists(const char *word, size_t length) {
  size_t name = strcspn(word, "/,");
  if (name > length) name = length;
  for (int32_t s = 0; s < DFLASH_STAGE_COUNT; s++)
    if (strlen(dflash_stage_row(s)->name) == name && memcmp(dflash_stage_row(s)->name, word, name) == 0) return true;
  return false;
}

/* A word without wildcards must name a stage. */
static DflashStatus check_stages(const char *patterns, DflashError *error) {
  for (const char *at = patterns; at != NULL && *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (strcspn(at, "*?[") >= length && !stage_exists(at, length)) {
      DflashText known = {0};
      for (int32_t s = 0; s < DFLASH_STAGE_COUNT; s++)
        dflash_text_append(&known, "%s%s", s > 0 ? ", " : "", dflash_stage_row(s)->name);
      DflashStatus status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "stage '%.*s' is unknown; there are: %s",
                                             (int)length, at, known.data != NULL ? known.data : "");
      dflash_text_free(&known);
      return status;
    }
    at += length + (at[length] == ',');
  }
  return DFLASH_OK;
}

/* What is written must be none of what is read, nor one file twice. */
static DflashStatus check_files(const DflashRunOptions *o, DflashError *error) {
  const char *outputs[] = {o->json, o->junit, o->history};
  for (int i = 0; i < 3; i++)
    for (int64_t f = 0; outputs[i] != NULL && f < o->file_count; f++)
      if (dflash_same_file(outputs[i], o->files[f]))
        return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is a golden file that is read: not written over",
                                outputs[i]);
  if (o->json != NULL && o->junit != NULL && (strcmp(o->json, o->junit) == 0 || dflash_same_file(o->json, o->junit)))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--json and --junit name the same file: %s", o->json);
  for (int i = 0; o->history != NULL && i < 2; i++)
    if (outputs[i] != NULL && (strcmp(o->history, outputs[i]) == 0 || dflash_same_file(o->history, outputs[i])))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--history names the file of another output: %s",
                              o->history);
  return DFLASH_OK;
}

DflashStatus dflash_run_arguments_finish(DflashRunArguments *a, char **argv, int operands, DflashError *error) {
  DflashRunOptions *o = &a->options;
  o->files = (const char *const *)argv + 1;
  o->file_count = operands;
  if (operands < 1) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "no golden file is given");
  if (o->backend == NULL || o->backend[0] == '\0')
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--backend is missing; 'list backends' shows them");
  if (o->resume && o->json == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--resume needs --json: the file that it goes on with");
  if ((o->json != NULL && strcmp(o->json, "-") == 0) || (o->junit != NULL && strcmp(o->junit, "-") == 0))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--json and --junit write files; '-' is none");
  o->load_context = strcmp(a->context, "load") == 0;
  if (!o->load_context && strcmp(a->context, "push") != 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--context: '%s' is neither push nor load", a->context);
  o->threads = (int)a->threads;
  DflashStatus status = check_files(o, error);
  if (status == DFLASH_OK) status = dflash_backend_check_search(o->backend_path, error);
  if (status == DFLASH_OK) status = dflash_profile_parse(a->profile, &o->profile, error);
  if (status == DFLASH_OK && a->modes != NULL) status = dflash_modes_parse(a->modes, &o->modes, error);
  if (status == DFLASH_OK) status = parse_shard(a, error);
  return status == DFLASH_OK ? check_stages(o->stages, error) : status;
}
