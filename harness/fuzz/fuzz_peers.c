/* A file of peers, and the ratios that a bench record takes from it. */
#include <cjson/cJSON.h>
#include <stdint.h>

#include "run/peers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DflashPeers peers;
  cJSON *record = cJSON_CreateObject();
  if (dflash_peers_parse((const char *)data, size, "input", &peers, NULL) == DFLASH_OK && record != NULL)
    dflash_peers_add(&peers, record, 1e6);
  cJSON_Delete(record);
  dflash_peers_close(&peers);
  return 0;
}
