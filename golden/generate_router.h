/* The router of a sidecar, in a golden. */
#ifndef DFLASH_GOLDEN_GENERATE_ROUTER_H
#define DFLASH_GOLDEN_GENERATE_ROUTER_H

#include "load/golden.h"

enum { DFLASH_ROUTER_ROWS = 8 };

/* Draws DFLASH_ROUTER_ROWS rows on both sides of the router's decision and writes them with their margins. */
DflashStatus dflash_router_write(const DflashRouter *router, uint64_t seed, DflashGoldenWriter *writer,
                                 DflashError *error);

#endif
