/* The table that the build makes of golden/recipes/. */
#ifndef DFLASH_GOLDEN_SHAPES_TABLE_H
#define DFLASH_GOLDEN_SHAPES_TABLE_H

#include <stddef.h>

typedef struct DflashShape {
  const char *name, *json;
} DflashShape;

extern const DflashShape dflash_shapes[]; /* ends with NULL */

#endif
