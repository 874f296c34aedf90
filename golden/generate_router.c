/* Rows for a sidecar's router: near one subspace or the other, with something of both outside. */
#include "golden/generate_router.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "golden/draw.h"
#include "model/storage.h"

/* mean + sum of weight * basis row, plus a little of everything. */
static void fill_row(const DflashSubspace *space, int64_t hidden, DflashRandom stream, uint64_t at, float *row) {
  dflash_draw_normal(stream, at, (size_t)hidden, 0.5f * dflash_draw_inverse_root((uint64_t)hidden), row);
  for (int64_t i = 0; i < hidden; i++) row[i] += dflash_f16_value(space->mean[i]);
  for (int64_t k = 0; k < space->rank; k++) {
    float weight;
    dflash_draw_normal(stream, (UINT64_C(1) << 40) + at + (uint64_t)k, 1, 0.5f, &weight);
    for (int64_t i = 0; i < hidden; i++) row[i] += weight * dflash_f16_value(space->basis[k * hidden + i]);
  }
}

DflashStatus dflash_router_write(const DflashRouter *router, uint64_t seed, DflashGoldenWriter *writer,
                                 DflashError *error) {
  double margins[DFLASH_ROUTER_ROWS];
  float *rows = dflash_alloc((size_t)(DFLASH_ROUTER_ROWS * router->hidden), sizeof *rows);
  if (!rows) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the router's rows");
  DflashRandom stream = dflash_random_stream(seed, "router/rows");
  for (int64_t i = 0; i < DFLASH_ROUTER_ROWS; i++) {
    float *row = rows + i * router->hidden;
    fill_row(i % 2 ? &router->chain : &router->block, router->hidden, stream, (uint64_t)(i * router->hidden), row);
    margins[i] = dflash_router_margin(router, row);
  }
  DflashStatus status = dflash_golden_write_router(writer, router, DFLASH_ROUTER_ROWS, rows, margins, error);
  free(rows);
  return status;
}
