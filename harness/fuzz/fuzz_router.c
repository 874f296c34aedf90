/* Routers: the first byte is hidden - 1, the rest the JSON. What was read is written and read again. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "model/json.h"
#include "model/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const DflashRouter *router) {
  DflashRouter again;
  cJSON *written = dflash_router_to_json(router);
  if (written == NULL || dflash_router_from_json(written, router->hidden, &again, NULL) != DFLASH_OK) abort();
  if (again.block.rank != router->block.rank || again.chain.phi_layer != router->chain.phi_layer) abort();
  if (memcmp(again.block.mean, router->block.mean, 2 * (size_t)router->hidden) != 0) abort();
  dflash_router_close(&again);
  cJSON_Delete(written);
}

static void check_margin(const DflashRouter *router) {
  float row[256];
  for (int i = 0; i < 256; i++) row[i] = (float)(i - 100);
  double margin = dflash_router_margin(router, row);
  if (margin != margin) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DflashRouter router;
  cJSON *route;
  if (size < 1 || dflash_json_parse((const char *)data + 1, size - 1, "route", &route, NULL) != DFLASH_OK) return 0;
  if (dflash_router_from_json(route, data[0] + 1, &router, NULL) == DFLASH_OK) {
    check_round_trip(&router);
    check_margin(&router);
  }
  dflash_router_close(&router);
  cJSON_Delete(route);
  return 0;
}
