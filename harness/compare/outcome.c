#include <string.h>

#include "compare/compare.h"

static const char *const names[DFLASH_OUTCOME_COUNT] = {
    [DFLASH_OUTCOME_PASS] = "pass",
    [DFLASH_OUTCOME_NEAR_TIE] = "near tie",
    [DFLASH_OUTCOME_COVERED] = "covered",
    [DFLASH_OUTCOME_NOT_TRUSTED] = "not trusted",
    [DFLASH_OUTCOME_NOT_RUN] = "not run",
    [DFLASH_OUTCOME_UNSUPPORTED] = "unsupported",
    [DFLASH_OUTCOME_UNAVAILABLE] = "unavailable",
    [DFLASH_OUTCOME_MISMATCH] = "mismatch",
    [DFLASH_OUTCOME_NONFINITE] = "nonfinite",
    [DFLASH_OUTCOME_UNWRITTEN] = "unwritten",
    [DFLASH_OUTCOME_OVERRUN] = "overrun",
    [DFLASH_OUTCOME_UNREPEATABLE] = "unrepeatable",
    [DFLASH_OUTCOME_ERROR] = "error",
    [DFLASH_OUTCOME_CRASHED] = "crashed",
    [DFLASH_OUTCOME_HUNG] = "hung",
};

const char *dflash_outcome_name(int outcome) {
  return outcome >= 0 && outcome < DFLASH_OUTCOME_COUNT ? names[outcome] : "unknown";
}

int dflash_outcome_find(const char *name) {
  for (int i = 0; i < DFLASH_OUTCOME_COUNT; i++)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}

int dflash_outcome_is_failure(int outcome) { return outcome >= DFLASH_OUTCOME_MISMATCH || outcome < 0; }
