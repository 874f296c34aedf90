/* The header JSON of a sidecar. */
#ifndef DFLASH_MODEL_SIDECAR_HEADER_H
#define DFLASH_MODEL_SIDECAR_HEADER_H

#include "dflash/geometry.h"
#include "model/router.h"

#define DFLASH_SIDECAR_ARCH "dflash2_sidecar"

typedef struct DflashSidecarHeader {
  DflashGeometry geometry;
  DflashRouter router;
  char trunk_hash64[65];
} DflashSidecarHeader;

/* A router that cannot be read leaves router.present 0 and logs a warning. dflash_router_close releases. */
DflashStatus dflash_sidecar_header_parse(const char *text, uint64_t size, DflashSidecarHeader *header,
                                         DflashError *error);

/* A header from its parts, NUL-terminated; free() releases. NULL: memory is out. router may be NULL. */
char *dflash_sidecar_header_make(const DflashGeometry *geometry, const DflashRouter *router);

#endif
