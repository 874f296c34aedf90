#include "run/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static const char *const mode_names[DFLASH_MODE_COUNT] = {"alone", "chain", "local"};
static const char *const profile_names[DFLASH_PROFILE_COUNT] = {"exact", "i8", "f16", "bf16"};

const char *dflash_mode_name(int mode) { return mode >= 0 && mode < DFLASH_MODE_COUNT ? mode_names[mode] : "-"; }

const char *dflash_profile_name(int32_t profile) {
  return profile >= 0 && profile < DFLASH_PROFILE_COUNT ? profile_names[profile] : "unknown";
}

/* Index of the word text[0 .. length) among names; -1 when it is none of them. */
static int find_word(const char *const *names, int count, const char *text, size_t length) {
  for (int i = 0; i < count; i++)
    if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
  return -1;
}

DflashStatus dflash_modes_parse(const char *text, unsigned *modes, DflashError *error) {
  *modes = 0;
  for (const char *at = text;;) {
    size_t length = strcspn(at, ",");
    int mode = find_word(mode_names, DFLASH_MODE_COUNT, at, length);
    if (mode < 0)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "mode '%.*s' is unknown; there are alone, chain, local",
                              (int)length, at);
    *modes |= 1u << mode;
    if (at[length] == '\0') return DFLASH_OK;
    at += length + 1;
  }
}

DflashStatus dflash_profile_parse(const char *text, int32_t *profile, DflashError *error) {
  int found = find_word(profile_names, DFLASH_PROFILE_COUNT, text, strlen(text));
  if (found < 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "profile '%s' is unknown; there are exact, i8, f16, bf16",
                            text);
  *profile = found;
  return DFLASH_OK;
}

const char *dflash_modes_text(unsigned modes, char text[32]) {
  size_t used = 0;
  text[0] = '\0';
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    if (modes & 1u << mode)
      used += (size_t)snprintf(text + used, 32 - used, "%s%s", used > 0 ? "," : "", mode_names[mode]);
  return text;
}

char *dflash_run_settings(const DflashRunOptions *o) {
  DflashText text = {0};
  dflash_text_append(&text, "%s", ""); /* never NULL */
  if (o->stages != NULL) dflash_text_append(&text, " stage=%s", o->stages);
  if (o->layer >= 0) dflash_text_append(&text, " layer=%lld", (long long)o->layer);
  if (o->load_context) dflash_text_append(&text, " context=load");
  if (o->repeat > 1) dflash_text_append(&text, " repeat=%lld", (long long)o->repeat);
  if (o->round > 0) dflash_text_append(&text, " round=%lld", (long long)o->round);
  if (o->cold) dflash_text_append(&text, " cold");
  if (o->threads > 0) dflash_text_append(&text, " threads=%d", o->threads);
  for (uint32_t i = 0; i < o->option_count; i++)
    dflash_text_append(&text, " option:%s=%s", o->options[i].key, o->options[i].value);
  if (text.failed) dflash_text_free(&text);
  if (text.size > 0) memmove(text.data, text.data + 1, text.size); /* without the first blank */
  return text.data;
}
