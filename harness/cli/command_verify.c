#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/run_arguments.h"
#include "run/dump_judge.h"

#include "base/error.h"

static const char usage[] =
    "usage: dflash-harness verify FILE... --backend NAME [OPTIONS]\n"
    "       dflash-harness verify DUMP... [OPTIONS]\n\n"
    "Runs the cases of golden files on a backend and judges every stage by the error that correct arithmetic\n"
    "would show there. Modes:\n"
    "  alone  golden inputs into each stage, its output compared\n"
    "  chain  one block from taps and embeddings to tokens, every stage that it materialises compared\n"
    "  local  the same block, every stage recomputed in float64 from the backend's own inputs\n"
    "Default: alone,chain; chain,local for a backend that cannot enter every stage alone.\n\n"
    "--dump keeps both sides of every value that fails. Such a file is judged again without backend and device.";

/* What chooses how values are computed: those of a dump were. NULL: nothing is given. */
static const char *computing_option(const DflashRunArguments *a) {
  const DflashRunOptions *o = &a->options;
  if (o->backend != NULL) return "--backend";
  if (o->backend_path != NULL) return "--backend-path";
  if (o->device != NULL) return "--device";
  if (o->option_count > 0) return "--option";
  return a->profile != NULL ? "--profile" : NULL;
}

/* Dumps and goldens are judged in different ways: a command takes one kind. What cannot be read may stand beside. */
static DflashStatus check_dumps(const DflashRunArguments *a, int64_t dumps, int64_t unreadable, DflashError *error) {
  const DflashRunOptions *o = &a->options;
  const char *option = computing_option(a);
  if (dumps + (option == NULL ? unreadable : 0) != o->file_count)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "dumps and golden files are verified apart; %lld of %lld are dumps", (long long)dumps,
                            (long long)o->file_count);
  if (option != NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s is a dump: it is judged by itself, %s does not apply",
                            o->files[0], option);
  if (o->dump != NULL || o->resume)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--dump and --resume are for golden files, not for dumps");
  return DFLASH_OK;
}

/* Whether the files are judged without a backend: dumps. So is what cannot be read when no backend is named either:
 * what is wrong with it is said then. */
static DflashStatus choose_dumps(DflashRunArguments *a, bool *without_backend, DflashError *error) {
  DflashRunOptions *o = &a->options;
  int64_t unreadable = 0;
  const int64_t dumps = dflash_dump_files(o, &unreadable);
  const bool none_read = o->backend == NULL && !o->resume && o->file_count > 0 && unreadable == o->file_count;
  *without_backend = dumps > 0 || none_read;
  DflashStatus status = dumps > 0 ? check_dumps(a, dumps, unreadable, error) : DFLASH_OK;
  if (*without_backend) o->backend = "dump"; /* a dump tells whose values it holds */
  return status;
}

static DflashStatus check_output(const DflashRunOptions *o, DflashError *error) {
  if (o->dump_limit < 1) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--dump-limit: at least 1");
  if (o->dump == NULL) return DFLASH_OK;
  for (int64_t i = 0; i < o->file_count; i++)
    if (dflash_same_file(o->dump, o->files[i]))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is a golden file that is read: not written over",
                              o->dump);
  const char *others[] = {o->json, o->junit, o->history};
  for (int i = 0; i < 3; i++)
    if (others[i] != NULL && (strcmp(o->dump, others[i]) == 0 || dflash_same_file(o->dump, others[i])))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--dump names the file of another output: %s", o->dump);
  return DFLASH_OK;
}

int dflash_command_verify(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  a.profile = NULL;
  DflashArgument table[32] = {
      {"mode,m", "MODES", "alone, chain, local, joined by ','", DFLASH_ARGUMENT_TEXT, &a.modes, 0},
      {"stage,s", "PATTERN", "stages to judge: names or patterns over attn.mix and attn.mix/1", DFLASH_ARGUMENT_TEXT,
       &a.options.stages, 0},
      {"layer,l", "N", "only stages of this layer", DFLASH_ARGUMENT_NUMBER, &a.options.layer, 0},
      {"repeat,r", "N", "run each block N times and count what fails", DFLASH_ARGUMENT_NUMBER, &a.options.repeat, 0},
      {"dump", "FILE", "write both sides of the values that fail (docs/dump-format.md)", DFLASH_ARGUMENT_TEXT,
       &a.options.dump, 0},
      {"dump-limit", "BYTES", "of values in a dump, at most (1 GiB)", DFLASH_ARGUMENT_NUMBER, &a.options.dump_limit,
       0}};
  a.options.dump_limit = INT64_C(1) << 30;
  int count = 6, operands = 0, helped = 0;
  dflash_run_arguments_rows(&a, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  a.options.files = (const char *const *)argv + 1;
  a.options.file_count = operands;
  bool without_backend = false;
  if (status == DFLASH_OK) status = choose_dumps(&a, &without_backend, &error);
  if (a.profile == NULL) a.profile = "exact";
  if (status == DFLASH_OK) status = dflash_run_arguments_finish(&a, argv, operands, &error);
  if (status == DFLASH_OK) status = check_output(&a.options, &error);
  if (status == DFLASH_OK && a.options.repeat < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "--repeat: at least 1");
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  return without_backend ? dflash_run_dumps(&a.options) : dflash_run_verify(&a.options);
}
