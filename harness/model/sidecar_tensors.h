/* The tensors of a sidecar. */
#ifndef DFLASH_MODEL_SIDECAR_TENSORS_H
#define DFLASH_MODEL_SIDECAR_TENSORS_H

#include "model/cmf.h"
#include "model/weights.h"

#define DFLASH_SIDECAR_PREFIX "dflash."

/* Finds every tensor of the geometry and checks its dtype, shape, place, hash and values; no two may overlap. Other
 * tensors are ignored. On failure the set is empty. */
DflashStatus dflash_sidecar_tensors(const DflashCmf *cmf, const DflashGeometry *geometry, DflashWeightSet *set,
                                    DflashError *error);

#endif
