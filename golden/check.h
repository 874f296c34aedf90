/* `golden info` and `golden check`: structure, hashes, and every stage again in f64. */
#ifndef DFLASH_GOLDEN_CHECK_H
#define DFLASH_GOLDEN_CHECK_H

#include <stdio.h>

#include "load/golden.h"

/* Prints geometry, weights by storage, cases, attributes: text, or one JSON object when json is set. */
DflashStatus dflash_golden_info(DflashGolden *golden, const char *path, int json, FILE *out, DflashError *error);

/* Checks structure, that values are finite and error scales finite and not negative, and hashes; with recompute every
 * stage of every case, and of its profile i8 where the file has that, from the file's own inputs: a stored value may
 * differ by the spacing of f32 there, a score by 1e-9, a token not at all, an error scale not at all when this
 * generator made the file, else by a thousandth. Prints a line a finding and a summary. *wrong counts findings. */
DflashStatus dflash_golden_check(DflashGolden *golden, const char *path, int recompute, int threads, FILE *out,
                                 int64_t *wrong, DflashError *error);

#endif
