/* From patterns to the names of kinds. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "golden/cases.h"

static DflashStatus unknown_kind(const char *pattern, DflashError *error) {
  DflashText list = {0};
  for (size_t i = 0; i < dflash_case_kind_count(); i++)
    dflash_text_append(&list, "%s%s", i ? ", " : "", dflash_case_kind(i)->name);
  DflashStatus status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "no case kind matches '%s'; known are %s",
                                         pattern, list.data ? list.data : "(memory is out)");
  dflash_text_free(&list);
  return status;
}

/* Marks what one pattern selects. */
static DflashStatus select_pattern(const DflashRecipe *recipe, const char *pattern, char *chosen, DflashError *error) {
  DflashCasePlan plan;
  int64_t named = dflash_case_kind_find(pattern);
  if (named >= 0) {
    const char *why = dflash_case_plan((size_t)named, recipe, &plan);
    if (why) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "case %s is not possible here: %s", pattern, why);
    chosen[named] = 1;
    return DFLASH_OK;
  }
  int matched = 0;
  for (size_t i = 0; i < dflash_case_kind_count(); i++) {
    if (dflash_case_kind_flags(i) & DFLASH_CASE_EXACT || !dflash_glob_match(pattern, dflash_case_kind(i)->name))
      continue;
    matched = 1;
    if (!dflash_case_plan(i, recipe, &plan)) chosen[i] = 1;
  }
  return matched ? DFLASH_OK : unknown_kind(pattern, error);
}

/* Exact kinds stand alone: everything else in the golden would use their weights. */
static DflashStatus check_company(const char *chosen, DflashError *error) {
  int64_t exact = -1, count = 0;
  for (size_t i = 0; i < dflash_case_kind_count(); i++) {
    if (!chosen[i]) continue;
    count++;
    if (dflash_case_kind_flags(i) & DFLASH_CASE_EXACT) exact = (int64_t)i;
  }
  if (count == 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "no case is possible with this geometry");
  if (exact < 0 || count == 1) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "case %s has weights of its own and needs a golden of its own",
                          dflash_case_kind((size_t)exact)->name);
}

static char *join_names(const char *chosen) {
  DflashText text = {0};
  for (size_t i = 0; i < dflash_case_kind_count(); i++)
    if (chosen[i]) dflash_text_append(&text, "%s%s", text.size ? "," : "", dflash_case_kind(i)->name);
  if (text.failed) dflash_text_free(&text);
  return text.data;
}

DflashStatus dflash_case_select(const DflashRecipe *recipe, const char *patterns, char **names, DflashError *error) {
  *names = NULL;
  char *copy = strdup(patterns), *chosen = calloc(dflash_case_kind_count(), 1), *rest = copy;
  DflashStatus status = copy && chosen ? DFLASH_OK : DFLASH_OUT_OF_MEMORY;
  for (char *part; status == DFLASH_OK && (part = strsep(&rest, ",")) != NULL;)
    if (*part) status = select_pattern(recipe, part, chosen, error);
  if (status == DFLASH_OK) status = check_company(chosen, error);
  if (status == DFLASH_OK && !(*names = join_names(chosen))) status = DFLASH_OUT_OF_MEMORY;
  if (status == DFLASH_OUT_OF_MEMORY) dflash_error_set(error, status, "no memory for the list of cases");
  free(chosen);
  free(copy);
  return status;
}

const char *dflash_case_next(const char *names, size_t *kind) {
  size_t length = strcspn(names, ",");
  for (size_t i = 0; i < dflash_case_kind_count(); i++) {
    const char *name = dflash_case_kind(i)->name;
    if (strlen(name) != length || strncmp(name, names, length) != 0) continue;
    *kind = i;
    return names + length + (names[length] == ',');
  }
  return NULL;
}
