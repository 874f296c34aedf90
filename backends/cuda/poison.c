/* Fills what no call may read before it is written. */
#include "sequence.h"

#include "held.h"

static DflashStatus fill_buffer(CudaDevice *device, const CudaBuffer *buffer, uint32_t pattern, DflashError *error) {
  return buffer->at ? cuda_fill(device, buffer->at, buffer->bytes, pattern, error) : DFLASH_OK;
}

/* Rows after the last settled one. */
static DflashStatus fill_held(const DflashSequence *s, const CudaHeld *held, uint32_t pattern, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  CudaDevice *device = &s->model->device;
  const int64_t end = s->first + s->settled;
  const uint64_t bytes = (uint64_t)(held->capacity - (end - held->base)) * cuda_held_row_bytes(g);
  if (held->capacity == 0) return DFLASH_OK;
  DflashStatus status = cuda_fill(device, cuda_held_at(g, held, &held->k, end), bytes, pattern, error);
  if (!status) status = cuda_fill(device, cuda_held_at(g, held, &held->v, end), bytes, pattern, error);
  return status;
}

DflashStatus cuda_poison(DflashSequence *s, uint32_t pattern, DflashError *error) {
  CudaDevice *device = &s->model->device;
  DflashStatus status = fill_buffer(device, &s->memory, pattern, error);
  if (!status) status = fill_buffer(device, &s->piece_memory, pattern, error);
  if (!status) status = fill_buffer(device, &s->piece_values.buffer, pattern, error);
  for (int64_t layer = 0; !status && layer < s->model->geometry.layers; layer++)
    status = fill_held(s, &s->held[layer], pattern, error);
  s->block_rows = 0;
  return status ? status : cuda_wait(device, "poisoning a sequence", error);
}
