/* Stresses: what a recipe may ask of its drawn weights and inputs beyond their usual sizes. */
#ifndef DFLASH_GOLDEN_STRESS_H
#define DFLASH_GOLDEN_STRESS_H

#include <stddef.h>

#include "dflash/status.h"

enum {
  DFLASH_STRESS_SHARP = 1,
  DFLASH_STRESS_GATES = 2,
  DFLASH_STRESS_LOUD = 4,
  DFLASH_STRESS_QUIET = 8,
  DFLASH_STRESS_NEGATIVE = 16,
  DFLASH_STRESS_CLUSTERED = 32,
  DFLASH_STRESS_ZEROS = 64,
  DFLASH_STRESS_MEAN = 128,
  DFLASH_STRESS_ORDER = 256
};

typedef struct DflashStress {
  const char *name, *about;
  int flag; /* DFLASH_STRESS_* */
} DflashStress;

size_t dflash_stress_count(void);
const DflashStress *dflash_stress(size_t index); /* NULL past the last */

/* Flags from "sharp,gates"; an unknown name lists the known ones. */
DflashStatus dflash_stress_parse(const char *text, int *flags, DflashError *error);
/* The names of flags, joined by commas; "" for none. */
void dflash_stress_text(int flags, char text[80]);

#endif
