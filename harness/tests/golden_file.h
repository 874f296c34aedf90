/* Goldens made in the scratch folder of the tests, and checked again in memory. */
#ifndef DFLASH_TESTS_GOLDEN_FILE_H
#define DFLASH_TESTS_GOLDEN_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/check.h"
#include "golden/generate.h"

#define SCRATCH(name) DFLASH_SCRATCH_FOLDER "/" name

static inline DflashRecipe golden_recipe(const char *preset, const char *cases) {
  DflashRecipe recipe;
  assert_int_equal(dflash_recipe_open(preset, &recipe, NULL), DFLASH_OK);
  recipe.cases = cases;
  return recipe;
}

static inline DflashMakeResult golden_make(const DflashRecipe *recipe, const char *path, int threads) {
  DflashMakeResult result;
  DflashError error = {0};
  if (dflash_golden_make(recipe, path, threads, NULL, &result, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return result;
}

static inline DflashGolden *golden_open(const char *path) {
  DflashGolden *golden;
  DflashError error = {0};
  if (dflash_golden_open(path, 1, &golden, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return golden;
}

/* What `golden check` prints; free() releases. */
static inline char *golden_check(const char *path, int recompute, int64_t *wrong) {
  char *text = NULL;
  size_t size = 0;
  DflashError error = {0};
  DflashGolden *golden = golden_open(path);
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  if (dflash_golden_check(golden, "F", recompute, 1, out, wrong, &error) != DFLASH_OK) fail_msg("%s", error.message);
  fclose(out);
  dflash_golden_close(golden);
  return text;
}

static inline void golden_is_right(const char *path) {
  int64_t wrong = -1;
  char *text = golden_check(path, 1, &wrong);
  if (wrong != 0) fail_msg("%s", text);
  free(text);
}

#endif
