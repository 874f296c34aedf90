#include "run/reproduce.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* A word as a shell reads it back. */
static void append_quoted(DflashText *text, const char *word) {
  static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+,:=%^";
  if (word[0] != '\0' && strspn(word, safe) == strlen(word)) {
    dflash_text_append(text, "%s", word);
    return;
  }
  dflash_text_append(text, "'");
  for (const char *at = word; *at != '\0'; at++)
    if (*at == '\'')
      dflash_text_append(text, "'\\''");
    else
      dflash_text_bytes(text, at, 1);
  dflash_text_append(text, "'");
}

static void append_option(DflashText *text, const char *name, const char *value) {
  if (value == NULL) return;
  dflash_text_append(text, " --%s ", name);
  append_quoted(text, value);
}

static void append_number(DflashText *text, const char *name, int64_t value, int64_t usual) {
  if (value != usual) dflash_text_append(text, " --%s %lld", name, (long long)value);
}

static void append_selection(DflashText *text, const DflashRunOptions *o, const DflashReproduce *what) {
  char modes[32];
  append_option(text, "case", what->case_name);
  append_option(text, "stage", what->stage != NULL ? what->stage : o->stages);
  append_number(text, "layer", what->stage != NULL ? what->layer : o->layer, -1);
  if (what->mode != NULL)
    append_option(text, "mode", what->mode);
  else if (o->modes != 0)
    append_option(text, "mode", dflash_modes_text(o->modes, modes));
}

char *dflash_reproduce_command(const DflashRunOptions *o, const DflashReproduce *what) {
  DflashText text = {0};
  dflash_text_append(&text, "dflash-harness %s", what->command);
  if (what->file != NULL) dflash_text_append(&text, " ");
  if (what->file != NULL) append_quoted(&text, what->file);
  if (what->second_file != NULL) dflash_text_append(&text, " ");
  if (what->second_file != NULL) append_quoted(&text, what->second_file);
  append_option(&text, "backend", o->backend);
  append_option(&text, "backend-path", o->backend_path);
  append_option(&text, "device", o->device);
  for (uint32_t i = 0; i < o->option_count; i++) {
    dflash_text_append(&text, " --option %s=", o->options[i].key);
    append_quoted(&text, o->options[i].value);
  }
  append_number(&text, "threads", o->threads, 0);
  append_option(&text, "profile", dflash_profile_name(o->profile));
  append_selection(&text, o, what);
  if (o->load_context) append_option(&text, "context", "load");
  append_number(&text, "repeat", o->repeat, 1);
  append_number(&text, "round", o->round, 0);
  if (o->cold) dflash_text_append(&text, " --cold");
  if (text.failed) dflash_text_free(&text);
  return text.data;
}
