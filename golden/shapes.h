/* Shapes: recipes of small goldens that the program carries, by name. A shape is a file of golden/recipes/ without its
 * ending ("windows-mixed") or a preset ("tiny"). Catalogues of defects name them with a case: "windows-mixed/main". */
#ifndef DFLASH_GOLDEN_SHAPES_H
#define DFLASH_GOLDEN_SHAPES_H

#include <stddef.h>

/* The recipe as JSON text; NULL when there is no such shape. */
const char *dflash_shape_recipe(const char *name);
/* The name of shape `index`; NULL past the last. */
const char *dflash_shape_name(size_t index);

#endif
