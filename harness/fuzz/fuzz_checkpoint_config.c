/* config.json of a checkpoint. */
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/geometry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DflashGeometry geometry;
  DflashError error = {0};
  DflashStatus status = dflash_checkpoint_config((const char *)data, size, &geometry, &error);
  if (status == DFLASH_OK && dflash_geometry_check(&geometry, NULL) != DFLASH_OK) abort();
  if (status != DFLASH_OK && (error.message[0] == '\0' || strpbrk(error.message, "\n\r") != NULL)) abort();
  return 0;
}
