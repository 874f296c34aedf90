/* Sidecars. The hashes of header and directory are set aside, or no mutation would get past them; those of the
 * corpus's tensors are 0, not checked. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "model/sidecar.h"
#include "model/storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches both ends of every tensor. */
static double read_ends(DflashSidecar *sidecar) {
  double sum = 0;
  for (int64_t i = 0; i < dflash_weight_count(&sidecar->geometry); i++) {
    const DflashTensor *tensor = dflash_weight_at(&sidecar->geometry, &sidecar->set, i);
    sum += dflash_tensor_at(tensor, 0, 0);
    sum += dflash_tensor_at(tensor, dflash_tensor_rows(tensor) - 1, dflash_tensor_cols(tensor) - 1);
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unsigned char *file = dflash_alloc(size, 1);
  DflashSidecar sidecar;
  DflashError error = {0};
  dflash_log_level(DFLASH_LOG_ERROR);
  memcpy(file, data, size);
  if (size >= 128) memset(file + 112, 0, 16);
  if (dflash_sidecar_parse(file, size, &sidecar, &error) == DFLASH_OK) {
    if (read_ends(&sidecar) != read_ends(&sidecar)) abort(); /* NaN got through */
  } else if (error.message[0] == '\0' || strpbrk(error.message, "\n\r") != NULL) {
    abort();
  }
  dflash_sidecar_close(&sidecar);
  free(file);
  return 0;
}
