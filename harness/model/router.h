/* The optional router of a sidecar: two affine subspaces and the margin between their errors. */
#ifndef DFLASH_MODEL_ROUTER_H
#define DFLASH_MODEL_ROUTER_H

#include <stdint.h>

#include "dflash/status.h"

struct cJSON;

typedef struct DflashSubspace {
  int64_t rank;
  uint16_t *mean;  /* f16 bits [hidden] */
  uint16_t *basis; /* f16 bits [rank, hidden] */
  int64_t phi_layer;
} DflashSubspace; /* arrays owned */

typedef struct DflashRouter {
  int present;
  int64_t hidden;
  DflashSubspace block, chain;
} DflashRouter;

/* From `provenance.dflash_route`: members block and chain, each {metric "mse_unit", phi_layer, mean, basis, rank}
 * with mean [hidden] and basis [rank, hidden] in base64 of little-endian f16. Anything else, a value that is not
 * finite and a rank above hidden are DFLASH_INVALID_DATA, and the router is empty. */
DflashStatus dflash_router_from_json(const struct cJSON *route, int64_t hidden, DflashRouter *router,
                                     DflashError *error);
struct cJSON *dflash_router_to_json(const DflashRouter *router); /* NULL: memory is out */
void dflash_router_close(DflashRouter *router);

/* margin = err(chain) - err(block), f64; above zero the block drafts. row is [hidden]. The error of a subspace is
 * the squared distance of the row, scaled to length 1, from it. */
double dflash_router_margin(const DflashRouter *router, const float *row);

#endif
