#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/run_arguments.h"
#include "run/loader.h"
#include "run/sweep.h"

static const char usage[] =
    "usage: dflash-harness sweep --backend NAME [OPTIONS]\n\n"
    "Draws goldens in memory - geometry, storage, sizes of the data, operations - and verifies each on a backend.\n"
    "A draw follows from --seed and its number alone. One that fails is made as small as it stays failing, and told\n"
    "with its recipe and the command that shows it again. One that the backend declines is no pass.";

typedef struct Arguments {
  DflashRunArguments run;
  DflashSweepOptions sweep;
  const char *seed;
  int64_t draw;
  int no_shrink;
} Arguments;

static DflashStatus check_range(const char *name, int64_t value, int64_t least, int64_t most, DflashError *error) {
  if (value >= least && value <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--%s: %lld is not in %lld to %lld", name, (long long)value,
                          (long long)least, (long long)most);
}

static DflashStatus check_places(const Arguments *a, DflashError *error) {
  const char *json = a->run.options.json, *scores = a->sweep.scores, *history = a->run.options.history;
  if (json != NULL && scores != NULL && (strcmp(json, scores) == 0 || dflash_same_file(json, scores)))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--json and --scores name the same file: %s", json);
  const char *const others[] = {json, scores};
  for (int i = 0; history != NULL && i < 2; i++)
    if (others[i] != NULL && (strcmp(history, others[i]) == 0 || dflash_same_file(history, others[i])))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--history names the file of another output: %s",
                              history);
  return DFLASH_OK;
}

/* Made when only its last part is missing. */
static DflashStatus make_folder(const char *path, DflashError *error) {
  struct stat about;
  if (path == NULL || mkdir(path, 0777) == 0) return DFLASH_OK;
  int why = errno;
  if (why != EEXIST)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--save: cannot make the folder %s: %s", path,
                            strerror(why));
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--save: %s is no folder", path);
}

static DflashStatus finish(Arguments *a, char **argv, int operands, DflashError *error) {
  DflashRunOptions *o = &a->run.options;
  if (operands > 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "sweep takes no operand: '%s'", argv[1]);
  if (o->backend == NULL || o->backend[0] == '\0')
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--backend is missing; 'list backends' shows them");
  if (a->draw >= 0) a->sweep.first = a->draw, a->sweep.count = 1;
  a->sweep.shrink = !a->no_shrink;
  o->threads = (int)a->run.threads;
  DflashStatus status = dflash_argument_seed(a->seed, &a->sweep.seed, error);
  if (status == DFLASH_OK) status = check_range("count", a->sweep.count, 1, INT64_C(1) << 31, error);
  if (status == DFLASH_OK) status = check_range("draw", a->sweep.first, 0, INT64_C(1) << 52, error);
  if (status == DFLASH_OK) status = check_range("jobs", a->sweep.jobs, 1, 256, error);
  if (status == DFLASH_OK) status = check_range("repeat", o->repeat, 1, 1000000, error);
  if (status == DFLASH_OK) status = check_places(a, error);
  if (status == DFLASH_OK) status = dflash_backend_check_search(o->backend_path, error);
  if (status == DFLASH_OK) status = dflash_profile_parse(a->run.profile, &o->profile, error);
  if (status == DFLASH_OK && a->run.modes != NULL) status = dflash_modes_parse(a->run.modes, &o->modes, error);
  if (status == DFLASH_OK) status = make_folder(a->sweep.save, error);
  return status;
}

int dflash_command_sweep(int argc, char **argv) {
  Arguments a = {.sweep = {.seed = 1, .count = 100, .jobs = 1}, .draw = -1};
  dflash_run_arguments_init(&a.run);
  DflashRunOptions *o = &a.run.options;
  a.sweep.run = o;
  a.run.threads = 1;
  const DflashArgument table[] = {
      {"backend,b", "NAME", "backend, by name or as the path of a shared object", DFLASH_ARGUMENT_TEXT, &o->backend, 0},
      {"backend-path", "PLACES", "folders or files, joined by ':', that are searched first", DFLASH_ARGUMENT_TEXT,
       &o->backend_path, 0},
      {"device,d", "ID", "device of the backend ('list devices'); default: its first", DFLASH_ARGUMENT_TEXT, &o->device,
       0},
      {"option", "KEY=VALUE", "option of the backend ('list backends'); may be repeated", DFLASH_ARGUMENT_CALL, o,
       dflash_run_arguments_take_option},
      {"profile", "P", "arithmetic profile: exact (default), i8, f16, bf16", DFLASH_ARGUMENT_TEXT, &a.run.profile, 0},
      {"mode,m", "MODES", "alone, chain, local, joined by ','", DFLASH_ARGUMENT_TEXT, &a.run.modes, 0},
      {"count,n", "N", "draws (100)", DFLASH_ARGUMENT_NUMBER, &a.sweep.count, 0},
      {"first", "N", "number of the first draw (0)", DFLASH_ARGUMENT_NUMBER, &a.sweep.first, 0},
      {"seed", "S", "of all draws (1)", DFLASH_ARGUMENT_TEXT, &a.seed, 0},
      {"draw", "N", "draw N alone", DFLASH_ARGUMENT_NUMBER, &a.draw, 0},
      {"save", "DIR", "write the golden of each failure, made smaller, into this folder, made if need be",
       DFLASH_ARGUMENT_TEXT, &a.sweep.save, 0},
      {"no-shrink", NULL, "leave failures as they were drawn", DFLASH_ARGUMENT_FLAG, &a.no_shrink, 0},
      {"jobs,j", "N", "draws side by side, in processes of their own (1)", DFLASH_ARGUMENT_NUMBER, &a.sweep.jobs, 0},
      {"repeat,r", "N", "run each block N times and count what fails", DFLASH_ARGUMENT_NUMBER, &o->repeat, 0},
      {"timeout", "TIME", "end a draw that reports no progress for this long (300s)", DFLASH_ARGUMENT_SECONDS,
       &o->timeout_s, 0},
      {"allow-missing", NULL, "a backend that is not available here is no error", DFLASH_ARGUMENT_FLAG,
       &o->allow_missing, 0},
      {"json", "FILE", "write JSON lines, a record a draw (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o->json, 0},
      {"history", "FILE", "add the run to this history, made if need be (docs/history.md)", DFLASH_ARGUMENT_TEXT,
       &o->history, 0},
      {"scores", "FILE", "write the scores of every draw by mode and stage, JSON lines", DFLASH_ARGUMENT_TEXT,
       &a.sweep.scores, 0},
      {"threads,t", "N", "threads of the backend, if it has that option (1)", DFLASH_ARGUMENT_THREADS, &a.run.threads,
       0},
      {"verbose,v", NULL, "print every draw", DFLASH_ARGUMENT_FLAG, &o->verbose, 0},
      {"quiet,q", NULL, "print nothing but failures", DFLASH_ARGUMENT_FLAG, &o->quiet, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status =
      dflash_arguments_parse(argc, argv, usage, table, sizeof table / sizeof *table, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = finish(&a, argv, operands, &error);
  return status == DFLASH_OK ? dflash_run_sweep(&a.sweep) : dflash_command_fail(&error);
}
