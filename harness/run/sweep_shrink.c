#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/sweep_parts.h"

static bool fails_alike(const DflashSweepOutcome *a, const DflashSweepOutcome *b) {
  return dflash_sweep_failed(b) && strcmp(a->result.stage, b->result.stage) == 0;
}

typedef struct Shrink {
  const DflashRunOptions *options;
  DflashRecipe *recipe;
  DflashSweepOutcome *outcome;
  int64_t trials, most;
} Shrink;

/* The recipe by one step, as often as it goes on failing. 1 when it did. */
static int take_step(Shrink *s, int64_t step, DflashRecipe *smaller, DflashSweepOutcome *found) {
  int taken = 0;
  while (s->trials < s->most && dflash_sweep_reduce(s->recipe, step, smaller) == 1) {
    s->trials++;
    dflash_sweep_try(s->options, smaller, found);
    if (!fails_alike(s->outcome, found)) break;
    memcpy(s->recipe, smaller, sizeof *smaller);
    *s->outcome = *found;
    taken = 1;
  }
  return taken;
}

int64_t dflash_sweep_shrink(const DflashRunOptions *options, int64_t most, DflashRecipe *recipe,
                            DflashSweepOutcome *outcome) {
  Shrink s = {.options = options, .recipe = recipe, .outcome = outcome, .most = most};
  DflashRecipe *smaller = malloc(sizeof *smaller);
  DflashSweepOutcome *found = malloc(sizeof *found);
  for (int taken = smaller != NULL && found != NULL; taken && s.trials < most;) {
    taken = 0;
    for (int64_t step = 0; dflash_sweep_reduce(recipe, step, smaller) >= 0; step++)
      taken |= take_step(&s, step, smaller, found);
  }
  free(found);
  free(smaller);
  return s.trials;
}

/* The file as `verify` sees it. */
static int verify(const DflashRunOptions *options, const char *path) {
  DflashRunOptions one = *options;
  one.files = &path;
  one.file_count = 1;
  one.quiet = 1;
  one.json = one.junit = NULL;
  one.resume = 0;
  return dflash_run_verify(&one);
}

DflashStatus dflash_sweep_save(const DflashRunOptions *options, const DflashRecipe *recipe, const char *path,
                               DflashError *error) {
  DflashMakeResult made;
  DflashStatus status = dflash_golden_make(recipe, path, 1, NULL, &made, error);
  if (status != DFLASH_OK) return status;
  int exit = verify(options, path);
  if (exit == DFLASH_EXIT_WRONG) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INTERNAL, "%s: the draw failed, but verifying this file gives exit status %d",
                          path, exit);
}
