#include "golden/stress.h"

#include <string.h>

#include "base/error.h"

static const DflashStress STRESSES[] = {
    {"sharp", "attention scores beyond +-150: exp of one overflows f32", DFLASH_STRESS_SHARP},
    {"gates", "gates beyond +-100: exp of one overflows f32", DFLASH_STRESS_GATES},
    {"loud", "context.fc about 1e4; a residual stream that grows past 65504", DFLASH_STRESS_LOUD},
    {"quiet", "inputs whose squares vanish, denormal products, every fourth row of a matrix tiny", DFLASH_STRESS_QUIET},
    {"negative", "every logit below zero", DFLASH_STRESS_NEGATIVE},
    {"clustered", "all logits of a row close together", DFLASH_STRESS_CLUSTERED},
    {"zeros", "zero groups in weights and activations, zero embeddings after the anchor", DFLASH_STRESS_ZEROS},
    {"mean", "activations and weights whose mean is not zero", DFLASH_STRESS_MEAN},
    {"order", "selector terms that overturn the order of the logits", DFLASH_STRESS_ORDER},
};

size_t dflash_stress_count(void) { return sizeof STRESSES / sizeof *STRESSES; }

const DflashStress *dflash_stress(size_t index) { return index < dflash_stress_count() ? &STRESSES[index] : NULL; }

void dflash_stress_text(int flags, char text[80]) {
  text[0] = '\0';
  for (size_t i = 0; i < dflash_stress_count(); i++) {
    if (!(flags & STRESSES[i].flag)) continue;
    if (text[0]) strcat(text, ",");
    strcat(text, STRESSES[i].name);
  }
}

static int find(const char *name, size_t length) {
  for (size_t i = 0; i < dflash_stress_count(); i++)
    if (strlen(STRESSES[i].name) == length && strncmp(STRESSES[i].name, name, length) == 0) return STRESSES[i].flag;
  return 0;
}

DflashStatus dflash_stress_parse(const char *text, int *flags, DflashError *error) {
  *flags = 0;
  for (const char *at = text; *at;) {
    size_t length = strcspn(at, ",");
    int flag = find(at, length);
    if (!flag) {
      char known[80];
      dflash_stress_text(-1, known);
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "unknown stress '%.*s'; known are %s",
                              (int)(length < 40 ? length : 40), at, known);
    }
    *flags |= flag;
    at += length + (at[length] == ',');
  }
  return DFLASH_OK;
}
