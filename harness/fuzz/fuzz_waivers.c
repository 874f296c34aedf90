/* A file of waivers, and whom it excuses. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "run/gate_waivers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DflashWaivers waivers;
  const DflashWaiver *expired = NULL;
  const DflashFault faults[] = {{"cpu", "EPYC", "main", "attn.mix", "attn.mix/1", 2, NAN},
                                {"cpu", "EPYC", "main", "head", "head.logits", NAN, 0.05}};
  if (dflash_waivers_parse((const char *)data, size, "input", &waivers, NULL) == DFLASH_OK)
    for (int i = 0; i < 2; i++) (void)dflash_waivers_find(&waivers, &faults[i], "2026-12-31", &expired);
  dflash_waivers_close(&waivers);
  return 0;
}
