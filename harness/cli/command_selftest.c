#include <stddef.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/run_arguments.h"
#include "run/loader.h"
#include "run/selftest.h"

static const char usage[] =
    "usage: dflash-harness selftest [OPTIONS]\n\n"
    "Measures this gate: runs every deliberate defect of a catalogue, and every lawful variant, on goldens made in\n"
    "memory. Every defect must be found, at its stage, and no correct run may fail. The catalogue is that of the\n"
    "backend 'faulty', which wraps another one: --option base=reference (default) or base=blas.";

static DflashStatus check(const DflashSelftestOptions *s, const DflashRunArguments *a, int operands, char **argv,
                          DflashError *error) {
  if (operands > 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "'%s' is no option", argv[1]);
  if (s->jobs < 1 || s->jobs > 256)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--jobs: %lld is not in 1 to 256", (long long)s->jobs);
  if (s->draws < 0 || s->draws > 1000000)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--draws: %lld is not in 0 to 1000000",
                            (long long)s->draws);
  return dflash_backend_check_search(a->options.backend_path, error);
}

int dflash_command_selftest(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  DflashSelftestOptions s = {.run = &a.options, .jobs = cpus > 0 && cpus < 256 ? cpus : 1, .seed = 1};
  DflashRunOptions *o = &a.options;
  const char *seed = NULL;
  o->backend = "faulty";
  DflashArgument table[] = {
      {"defect", "PATTERN", "defects to plant: names or shell patterns, joined by ','", DFLASH_ARGUMENT_TEXT,
       &s.defects, 0},
      {"list", NULL, "list the catalogue and do nothing", DFLASH_ARGUMENT_FLAG, &s.list, 0},
      {"draws", "N", "also the share of N drawn goldens on which each defect is found", DFLASH_ARGUMENT_NUMBER,
       &s.draws, 0},
      {"seed", "S", "of the draws (1)", DFLASH_ARGUMENT_TEXT, &seed, 0},
      {"backend,b", "NAME", "backend with a catalogue (faulty)", DFLASH_ARGUMENT_TEXT, &o->backend, 0},
      {"backend-path", "PLACES", "folders or files, joined by ':', that are searched first", DFLASH_ARGUMENT_TEXT,
       &o->backend_path, 0},
      {"option", "KEY=VALUE", "option of the backend, base=blas for one; may be repeated", DFLASH_ARGUMENT_CALL, o,
       dflash_run_arguments_take_option},
      {"jobs,j", "N", "trials side by side (processors)", DFLASH_ARGUMENT_NUMBER, &s.jobs, 0},
      {"json", "FILE", "write JSON lines, a record a trial (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o->json, 0},
      {"verbose,v", NULL, "print every defect with what was found", DFLASH_ARGUMENT_FLAG, &o->verbose, 0},
      {"quiet,q", NULL, "print nothing when all is well", DFLASH_ARGUMENT_FLAG, &o->quiet, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status =
      dflash_arguments_parse(argc, argv, usage, table, sizeof table / sizeof *table, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = dflash_argument_seed(seed, &s.seed, &error);
  if (status == DFLASH_OK) status = check(&s, &a, operands, argv, &error);
  return status == DFLASH_OK ? dflash_run_selftest(&s) : dflash_command_fail(&error);
}
