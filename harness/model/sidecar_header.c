#include "model/sidecar_header.h"

#include <stdbool.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/log.h"
#include "model/cmf.h"
#include "model/geometry.h"
#include "model/json.h"

static DflashStatus check_arch(const cJSON *root, DflashError *error) {
  const char *name = dflash_json_text(dflash_json_get(root, "arch"), "arch_name");
  if (name != NULL && strcmp(name, DFLASH_SIDECAR_ARCH) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "header: arch.arch_name is %.64s, expected " DFLASH_SIDECAR_ARCH,
                          name == NULL ? "absent" : name);
}

static DflashStatus read_geometry(const cJSON *provenance, DflashGeometry *geometry, DflashError *error) {
  const cJSON *object = dflash_json_get(provenance, "dflash");
  if (!cJSON_IsObject(object))
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "header: provenance.dflash is no object, expected the geometry");
  DflashStatus status = dflash_geometry_from_json(object, geometry, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "header: provenance.dflash");
  return status;
}

static DflashStatus read_binding(const cJSON *provenance, char hash[65], DflashError *error) {
  const cJSON *item = dflash_json_get(dflash_json_get(provenance, "base_binding"), "trunk_hash64");
  if (item == NULL) return DFLASH_OK;
  const char *text = cJSON_GetStringValue(item);
  size_t length = text == NULL ? 0 : strlen(text);
  if (length < 1 || length > 64 || strspn(text, "0123456789abcdefABCDEF") != length)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "header: provenance.base_binding.trunk_hash64 is %.80s, expected 1 to 64 hex digits",
                            text == NULL ? "no string" : text);
  memcpy(hash, text, length + 1);
  return DFLASH_OK;
}

static DflashStatus read_router(const cJSON *provenance, int64_t hidden, DflashRouter *router, DflashError *error) {
  const cJSON *route = dflash_json_get(provenance, "dflash_route");
  if (route == NULL) return DFLASH_OK;
  DflashError reason;
  DflashStatus status = dflash_router_from_json(route, hidden, router, &reason);
  if (status == DFLASH_OUT_OF_MEMORY) return dflash_error_set(error, status, "%s", reason.message);
  if (status != DFLASH_OK)
    dflash_log(DFLASH_LOG_WARNING, "header: provenance.dflash_route is unreadable and counts as none: %s",
               reason.message);
  return DFLASH_OK;
}

DflashStatus dflash_sidecar_header_parse(const char *text, uint64_t size, DflashSidecarHeader *header,
                                         DflashError *error) {
  *header = (DflashSidecarHeader){0};
  cJSON *root;
  DflashStatus status = dflash_json_parse(text, size, "header", &root, error);
  if (status != DFLASH_OK) return status;
  const cJSON *provenance = dflash_json_get(root, "provenance");
  status = check_arch(root, error);
  if (status == DFLASH_OK) status = read_geometry(provenance, &header->geometry, error);
  if (status == DFLASH_OK) status = read_binding(provenance, header->trunk_hash64, error);
  if (status == DFLASH_OK) status = read_router(provenance, header->geometry.hidden, &header->router, error);
  cJSON_Delete(root);
  return status;
}

/* cJSON_AddItemToObject takes the item only when it succeeds. */
static bool add_item(cJSON *object, const char *key, cJSON *item) {
  if (item != NULL && cJSON_AddItemToObject(object, key, item)) return true;
  cJSON_Delete(item);
  return false;
}

static bool fill_header(cJSON *root, const DflashGeometry *geometry, const DflashRouter *router) {
  cJSON *arch, *provenance;
  if (cJSON_AddStringToObject(root, "format", "cmf") == NULL) return false;
  if (cJSON_AddNumberToObject(root, "version", DFLASH_CMF_VERSION) == NULL) return false;
  if ((arch = cJSON_AddObjectToObject(root, "arch")) == NULL) return false;
  if (cJSON_AddStringToObject(arch, "arch_name", DFLASH_SIDECAR_ARCH) == NULL) return false;
  if ((provenance = cJSON_AddObjectToObject(root, "provenance")) == NULL) return false;
  if (!add_item(provenance, "dflash", dflash_geometry_to_json(geometry))) return false;
  if (router == NULL || !router->present) return true;
  return add_item(provenance, "dflash_route", dflash_router_to_json(router));
}

char *dflash_sidecar_header_make(const DflashGeometry *geometry, const DflashRouter *router) {
  cJSON *root = cJSON_CreateObject();
  char *text = root != NULL && fill_header(root, geometry, router) ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  return text;
}
