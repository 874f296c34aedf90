#include "sequence.h"

#include <stdlib.h>

#include "abi.h"
#include "base/memory.h"
#include "held.h"

static DflashStatus check(const DflashSequenceDesc *desc, DflashError *error) {
  DflashStatus status = cuda_check_struct(desc, sizeof *desc, "sequence_open: desc", error);
  if (status) return status;
  if (desc->flags > DFLASH_SEQUENCE_CAPTURE)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: sequence_open: flags is %u, valid is 0 or %d",
                            desc->flags, DFLASH_SEQUENCE_CAPTURE);
  if (desc->reserve_rows >= 0 && desc->reserve_rows <= CUDA_POSITION_MAX) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "cuda: sequence_open: reserve_rows is %lld, valid is 0 to %lld",
                          (long long)desc->reserve_rows, (long long)CUDA_POSITION_MAX);
}

static DflashStatus open_events(DflashSequence *s, DflashError *error) {
  CudaDevice *device = &s->model->device;
  CUevent *const events[] = {&s->begin, &s->end, &s->settle_begin, &s->settle_end};
  DflashStatus status = DFLASH_OK;
  for (size_t i = 0; !status && i < sizeof events / sizeof events[0]; i++)
    status = CUDA_CALL(device, "making an event", error, event_create, events[i], CU_EVENT_DEFAULT);
  return status;
}

/* Memory for the context that is expected. */
static DflashStatus reserve(DflashSequence *s, int64_t rows, DflashError *error) {
  CudaChange change;
  DflashStatus status = cuda_change_begin(s, &change, error);
  if (!status) status = cuda_change_reserve(&change, rows, CUDA_RESERVE_WAIT, error);
  if (status)
    cuda_change_drop(&change);
  else
    cuda_change_keep(&change);
  return status;
}

DflashStatus cuda_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                DflashError *error) {
  DflashStatus status = check(desc, error);
  if (status) return status;
  DflashSequence *s = dflash_alloc(1, sizeof *s);
  if (s) s->held = dflash_alloc((size_t)model->geometry.layers, sizeof *s->held);
  if (!s || !s->held) {
    free(s);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for a sequence");
  }
  s->model = model;
  s->capture = (desc->flags & DFLASH_SEQUENCE_CAPTURE) != 0;
  status = open_events(s, error);
  if (!status) status = cuda_scratch_open(s, error);
  if (!status) status = reserve(s, desc->reserve_rows, error);
  if (status)
    cuda_sequence_close(s);
  else
    *sequence = s;
  return status;
}

void cuda_sequence_close(DflashSequence *s) {
  CudaDevice *device = &s->model->device;
  const CUevent events[] = {s->begin, s->end, s->settle_begin, s->settle_end};
  cuda_graphs_close(s);
  cuda_context_close(s);
  cuda_buffer_close(device, &s->memory);
  cuda_pinned_close(device, &s->inputs);
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
    if (events[i]) (void)device->driver.event_destroy(events[i]);
  free(s->spans);
  free(s->held);
  free(s);
}
