#include "run/names.h"

#include <stdlib.h>
#include <string.h>

void dflash_names_add(DflashNames *names, const char *name) {
  for (size_t i = 0; i < names->count; i++)
    if (strcmp(names->at[i], name) == 0) return;
  char **grown = realloc(names->at, (names->count + 1) * sizeof *grown);
  if (grown == NULL) return;
  names->at = grown;
  names->at[names->count] = strdup(name);
  names->count += names->at[names->count] != NULL;
}

void dflash_names_close(DflashNames *names) {
  for (size_t i = 0; i < names->count; i++) free(names->at[i]);
  free(names->at);
  *names = (DflashNames){0};
}

void dflash_names_list(const DflashNames *names, DflashText *text) {
  for (size_t i = 0; i < names->count; i++) dflash_text_append(text, "%s%s", i > 0 ? ", " : "", names->at[i]);
}

static int matches_any(const DflashNames *names, const char *word, size_t length) {
  char *pattern = strndup(word, length);
  int found = pattern == NULL;
  for (size_t i = 0; i < names->count && !found; i++) found = dflash_glob_match(pattern, names->at[i]);
  free(pattern);
  return found;
}

const char *dflash_names_unmatched(const DflashNames *names, const char *patterns, int wild, int *length) {
  for (const char *at = patterns; at != NULL && *at != '\0'; at += *length + (at[*length] == ',')) {
    *length = (int)strcspn(at, ",");
    int is_wild = strcspn(at, "*?[") < (size_t)*length;
    if (*length > 0 && (wild || !is_wild) && !matches_any(names, at, (size_t)*length)) return at;
  }
  return NULL;
}
