#include "golden/shapes.h"

#include <string.h>

#include "golden/shapes_table.h"

static const DflashShape presets[] = {{"tiny", "{\"preset\": \"tiny\"}"}, {"small", "{\"preset\": \"small\"}"}};

enum { PRESETS = sizeof presets / sizeof *presets };

static const DflashShape *shape_at(size_t index) {
  if (index < PRESETS) return &presets[index];
  size_t count = 0;
  while (dflash_shapes[count].name) count++;
  return index - PRESETS < count ? &dflash_shapes[index - PRESETS] : NULL;
}

const char *dflash_shape_name(size_t index) {
  const DflashShape *shape = shape_at(index);
  return shape ? shape->name : NULL;
}

const char *dflash_shape_recipe(const char *name) {
  const DflashShape *shape;
  for (size_t i = 0; (shape = shape_at(i)) != NULL; i++)
    if (strcmp(shape->name, name) == 0) return shape->json;
  return NULL;
}
