#include "model/sidecar.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/cmf.h"
#include "model/sidecar_header.h"
#include "model/sidecar_tensors.h"

static DflashStatus read_header(const DflashCmf *cmf, DflashSidecar *sidecar, DflashError *error) {
  DflashSidecarHeader header;
  DflashStatus status = dflash_sidecar_header_parse(cmf->header, cmf->header_bytes, &header, error);
  sidecar->geometry = header.geometry;
  sidecar->router = header.router;
  memcpy(sidecar->trunk_hash64, header.trunk_hash64, sizeof sidecar->trunk_hash64);
  if (status != DFLASH_OK) return status;
  sidecar->header = dflash_alloc(cmf->header_bytes + 1, 1);
  if (sidecar->header == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "header: out of memory");
  memcpy(sidecar->header, cmf->header, cmf->header_bytes);
  return DFLASH_OK;
}

DflashStatus dflash_sidecar_parse(const void *data, uint64_t size, DflashSidecar *sidecar, DflashError *error) {
  DflashCmf cmf;
  *sidecar = (DflashSidecar){0};
  DflashStatus status = dflash_cmf_parse(data, size, &cmf, error);
  if (status == DFLASH_OK) status = read_header(&cmf, sidecar, error);
  if (status == DFLASH_OK) status = dflash_sidecar_tensors(&cmf, &sidecar->geometry, &sidecar->set, error);
  dflash_cmf_close(&cmf);
  if (status != DFLASH_OK) dflash_sidecar_close(sidecar);
  return status;
}

DflashStatus dflash_sidecar_open(const char *path, DflashSidecar *sidecar, DflashError *error) {
  DflashMapping mapping;
  *sidecar = (DflashSidecar){0};
  DflashStatus status = dflash_map_file(path, &mapping, error);
  if (status != DFLASH_OK) return status;
  status = dflash_sidecar_parse(mapping.data, mapping.size, sidecar, error);
  if (status != DFLASH_OK) {
    dflash_unmap_file(&mapping);
    dflash_error_prefix(error, "%s", path);
    return status;
  }
  sidecar->mapping = mapping;
  return DFLASH_OK;
}

void dflash_sidecar_close(DflashSidecar *sidecar) {
  dflash_weight_set_close(&sidecar->set);
  dflash_router_close(&sidecar->router);
  free(sidecar->header);
  dflash_unmap_file(&sidecar->mapping);
  *sidecar = (DflashSidecar){0};
}
