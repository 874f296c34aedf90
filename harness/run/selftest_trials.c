/* The trials of a self test: one defect on one golden each. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "run/selftest_parts.h"

/* A catalogue is foreign: what an entry must have is looked at before any of it runs. */
static const char *entry_fault(const DflashDefect *d) {
  if (d == NULL || d->struct_size < sizeof *d) return "it is no entry of this version";
  if (d->id == NULL || d->kind == NULL || d->about == NULL || d->origin == NULL)
    return "it lacks id, kind, about or origin";
  if (d->goldens == NULL || d->goldens[0] == '\0') return "it names no golden";
  if (!d->lawful && d->stage == NULL) return "it names no stage";
  if (d->repeat < 0 || !(d->timeout_s >= 0)) return "repeat and timeout_s must be 0 or more";
  if (d->profile < 0 || d->profile >= DFLASH_PROFILE_COUNT) return "its profile is none";
  return NULL;
}

static DflashStatus check_entries(const DflashCatalogue *catalogue, DflashError *error) {
  enum { ENTRIES_MOST = 1 << 16 };
  if (catalogue->defects == NULL || catalogue->count == 0 || catalogue->count > ENTRIES_MOST)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "a catalogue of %u defects; valid: 1 to %d", catalogue->count,
                            ENTRIES_MOST);
  for (uint32_t i = 0; i < catalogue->count; i++) {
    const char *fault = entry_fault(catalogue->defects[i]);
    if (fault != NULL)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "entry %u of the catalogue is not usable: %s", i, fault);
  }
  return DFLASH_OK;
}

static DflashStatus take_selected(DflashSelfTest *test, const DflashCatalogue *catalogue, DflashError *error) {
  test->defects = calloc((size_t)catalogue->count + 1, sizeof(void *));
  if (test->defects == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a catalogue");
  for (uint32_t i = 0; i < catalogue->count; i++)
    if (dflash_glob_match(test->options->defects, catalogue->defects[i]->id))
      test->defects[test->defect_count++] = catalogue->defects[i];
  if (test->defect_count > 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--defect: '%s' matches none of %u; --list shows them",
                          test->options->defects, catalogue->count);
}

DflashStatus dflash_self_catalogue(DflashSelfTest *test, DflashError *error) {
  const DflashRunOptions *o = test->options->run;
  DflashStatus status = dflash_backend_load(o->backend, o->backend_path, &test->loaded, error);
  if (status != DFLASH_OK) return status;
  DflashCatalogueEntry entry = NULL;
  void *symbol = dlsym(test->loaded.library, DFLASH_CATALOGUE_SYMBOL);
  memcpy(&entry, &symbol, sizeof entry); /* an object pointer that is a function's */
  const DflashCatalogue *catalogue = entry != NULL ? entry() : NULL;
  if (catalogue == NULL || catalogue->struct_size < sizeof *catalogue)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "backend %s has no catalogue of defects (symbol %s)", o->backend,
                            DFLASH_CATALOGUE_SYMBOL);
  status = check_entries(catalogue, error);
  return status == DFLASH_OK ? take_selected(test, catalogue, error) : status;
}

static void set_option(DflashRunOptions *o, const char *key, const char *value) {
  if (o->option_count < DFLASH_OPTIONS_MAX) o->options[o->option_count++] = (DflashOption){key, value};
}

/* Which modes: what ships is judged in all of them; of end values there is nothing to enter alone. */
static unsigned modes_of(const DflashSelfTest *test, bool end) {
  if (end) return 1u << DFLASH_MODE_CHAIN | 1u << DFLASH_MODE_LOCAL;
  if (test->options->run->modes != 0) return test->options->run->modes;
  return 1u << DFLASH_MODE_ALONE | 1u << DFLASH_MODE_CHAIN;
}

DflashRunOptions dflash_self_options(const DflashSelfTest *test, const DflashDefect *defect, int32_t profile,
                                     bool end) {
  DflashRunOptions o = *test->options->run;
  o.profile = profile;
  o.modes = modes_of(test, end);
  if (defect != NULL) set_option(&o, "defect", defect->id);
  if (end) set_option(&o, "expose", "end");
  if (defect != NULL && defect->repeat > 0) o.repeat = defect->repeat;
  o.timeout_s = defect != NULL && defect->timeout_s > 0 ? defect->timeout_s : 60;
  o.threads = 1;
  o.budget_s = 0.2;
  o.warmup = 1;
  o.max_samples = 20;
  o.confidence = 0.01;
  return o;
}

void dflash_self_run(const DflashSelfTest *test, const DflashMaterial *material, DflashSelfTrial *trial) {
  const DflashCase *c = &trial->golden->c;
  DflashRunOptions options = dflash_self_options(test, trial->defect, trial->golden->profile, trial->end);
  const DflashTrial call = {.options = &options,
                            .geometry = dflash_material_geometry(material),
                            .weights = dflash_material_weights(material),
                            .cases = &c,
                            .case_count = 1,
                            .timing = trial->timing};
  trial->error = (DflashError){0};
  dflash_trial_run(&call, &trial->result, &trial->error);
  trial->ran = true;
}

bool dflash_self_found(const DflashSelfTrial *trial) {
  return trial->ran && trial->error.status == DFLASH_OK && trial->result.bad_case >= 0;
}

bool dflash_self_judged(const DflashSelfTrial *trial) {
  return trial->ran && trial->error.status == DFLASH_OK && (trial->result.bad_case >= 0 || trial->result.passed > 0);
}

DflashStatus dflash_self_refusal(const DflashSelfTrial *trial, DflashError *error) {
  const DflashError *own = &trial->error;
  if (!trial->ran || own->status == DFLASH_OK || own->status == DFLASH_UNSUPPORTED) return DFLASH_OK;
  return dflash_error_set(error, own->status, "%s", own->message);
}

bool dflash_self_placed(const DflashSelfTrial *trial) {
  return dflash_self_found(trial) && trial->defect->stage != NULL &&
         strcmp(trial->defect->stage, trial->result.stage) == 0;
}

/* Worker w of n takes the trials w, w + n, ... and leaves the results in shared memory. */
static void work(const DflashSelfTest *test, int64_t worker) {
  for (int64_t i = worker; i < test->trial_count; i += test->options->jobs) {
    DflashSelfTrial *trial = &test->trials[i];
    if (!trial->ran) dflash_self_run(test, dflash_self_material(&test->goldens, trial->golden), trial);
    if (dflash_self_refusal(trial, NULL) != DFLASH_OK) return;
  }
}

DflashStatus dflash_self_workers(const DflashSelfTest *test, void (*work_of)(const DflashSelfTest *, int64_t),
                                 DflashError *error) {
  int64_t started = 0;
  DflashStatus status = DFLASH_OK;
  fflush(NULL);
  for (int64_t w = 0; w < test->options->jobs; w++) {
    pid_t pid = fork();
    if (pid == 0) {
      work_of(test, w);
      _exit(0);
    }
    started += pid > 0;
    if (pid < 0) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start a process for trials");
  }
  for (int64_t w = 0; w < started; w++) {
    int ended = 0;
    if (wait(&ended) < 0 || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
      status = dflash_error_set(error, DFLASH_INTERNAL, "a process that runs trials ended before its time");
  }
  return status;
}

DflashStatus dflash_self_run_all(DflashSelfTest *test, DflashError *error) {
  DflashStatus status = dflash_self_workers(test, work, error);
  for (int64_t i = 0; status == DFLASH_OK && i < test->trial_count; i++)
    status = dflash_self_refusal(&test->trials[i], error);
  return status;
}
