/* Whether a golden can be written at all: before anything is drawn. */
#ifndef DFLASH_GOLDEN_GENERATE_SPACE_H
#define DFLASH_GOLDEN_GENERATE_SPACE_H

#include "golden/generate_material.h"

/* A name in a folder that exists and can be written to, not that of a folder or device. */
DflashStatus dflash_space_place(const char *path, DflashError *error);

/* Bytes of the golden that found material gives: within a few percent, never less. UINT64_MAX when it is more. */
DflashStatus dflash_space_needed(const DflashMaterial *material, uint64_t *bytes, DflashError *error);

/* That many bytes are free where `path` is. A file system that does not say has room. */
DflashStatus dflash_space_check(const char *path, uint64_t bytes, DflashError *error);

#endif
