/* The products of a geometry whose fields are valid one by one. Private to this module. */
#ifndef DFLASH_MODEL_GEOMETRY_PRODUCT_H
#define DFLASH_MODEL_GEOMETRY_PRODUCT_H

#include "dflash/geometry.h"
#include "dflash/status.h"

/* Refuses when the bytes of a tensor as f32, of a stage of a full block with the whole vocabulary, or of all tensors
 * or all stages together overflow 63 bits. */
DflashStatus dflash_geometry_products(const DflashGeometry *geometry, DflashError *error);

#endif
