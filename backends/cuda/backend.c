/* The members of the vtable. Every call of a model or a sequence runs with the device's context current,
 * whatever was current before it. */
#include "vtable.h"

#include "abi.h"
#include "info.h"
#include "measure.h"
#include "sequence.h"

/* A call of a model (or of the model of a sequence) between entering and leaving its context. */
#define INSIDE(owner, what, model_of_owner, call)                        \
  do {                                                                   \
    DflashStatus inside_status = cuda_check_pointer(owner, what, error); \
    if (inside_status) return inside_status;                             \
    CudaDevice *device = &(model_of_owner)->device;                      \
    inside_status = cuda_enter(device, error);                           \
    if (inside_status) return inside_status;                             \
    inside_status = (call);                                              \
    cuda_leave(device);                                                  \
    return inside_status;                                                \
  } while (0)
#define IN_MODEL(name, call) INSIDE(model, name ": model", model, call)
#define IN_SEQUENCE(name, call) INSIDE(sequence, name ": sequence", sequence->model, call)

static DflashStatus model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  DflashStatus status = cuda_model_open(desc, model, error);
  if (!status) cuda_leave(&(*model)->device);
  return status;
}

static void model_close(DflashModel *model) {
  if (!model) return;
  cuda_enter_to_close(&model->device);
  cuda_model_close(model);
}

static DflashStatus model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  DflashStatus status = cuda_check_pointer(model, "model_info: model", error);
  return status ? status : cuda_model_info(model, info, error);
}

static DflashStatus stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error) {
  DflashStatus status = cuda_check_pointer(model, "stage_info: model", error);
  return status ? status : cuda_stage_info(model, stage, layer, rows, info, error);
}

static DflashStatus sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  DflashStatus status = cuda_check_pointer(sequence, "sequence_open: sequence", error);
  if (status) return status;
  *sequence = NULL;
  IN_MODEL("sequence_open", cuda_sequence_open(model, desc, sequence, error));
}

static void sequence_close(DflashSequence *sequence) {
  if (!sequence) return;
  CudaDevice *device = &sequence->model->device;
  cuda_enter_to_close(device);
  cuda_sequence_close(sequence);
  cuda_leave(device);
}

static DflashStatus push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  IN_SEQUENCE("push", cuda_push(sequence, pos, taps, rows, error));
}

static DflashStatus truncate_context(DflashSequence *sequence, int64_t pos, DflashError *error) {
  DflashStatus status = cuda_check_pointer(sequence, "truncate: sequence", error);
  return status ? status : cuda_truncate(sequence, pos, error);
}

static DflashStatus reset(DflashSequence *sequence, DflashError *error) {
  DflashStatus status = cuda_check_pointer(sequence, "reset: sequence", error);
  return status ? status : cuda_reset(sequence, error);
}

static DflashStatus load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                         const float *const *v, DflashError *error) {
  IN_SEQUENCE("load", cuda_load(sequence, first, len, k, v, error));
}

static DflashStatus span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error) {
  DflashStatus status = cuda_check_pointer(sequence, "span: sequence", error);
  return status ? status : cuda_context_span(sequence, layer, first, len, kept_from, error);
}

static DflashStatus read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error) {
  IN_SEQUENCE("read_context", cuda_read_context(sequence, layer, pos, rows, k, v, error));
}

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  IN_SEQUENCE("block", cuda_block(sequence, call, error));
}

static DflashStatus stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error) {
  IN_SEQUENCE("stage", cuda_stage(sequence, call, error));
}

static DflashStatus read_stage(DflashSequence *sequence, int32_t which, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  IN_SEQUENCE("read_stage", cuda_read_stage(sequence, which, layer, values, count, error));
}

static DflashStatus block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  IN_SEQUENCE("block_time", cuda_block_time(sequence, time, error));
}

static DflashStatus block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  IN_SEQUENCE("block_spans", cuda_block_spans(sequence, spans, capacity, count, error));
}

static DflashStatus evict_caches(DflashModel *model, DflashError *error) {
  IN_MODEL("evict_caches", cuda_evict_caches(model, error));
}

static DflashStatus measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  IN_MODEL("measure_read", cuda_measure_read(model, bytes_per_second, error));
}

static DflashStatus measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  IN_MODEL("measure_matrix", cuda_measure_matrix(model, operations_per_second, error));
}

static DflashStatus device_state(DflashModel *model, DflashDeviceState *state, DflashError *error) {
  DflashStatus status = cuda_check_pointer(model, "device_state: model", error);
  return status ? status : cuda_device_state(model, state, error);
}

static DflashStatus poison(DflashSequence *sequence, uint32_t pattern, DflashError *error) {
  IN_SEQUENCE("poison", cuda_poison(sequence, pattern, error));
}

const DflashBackend cuda_backend = {
    .struct_size = sizeof cuda_backend,
    .abi = DFLASH_BACKEND_ABI,
    .name = "cuda",
    .version = "1",
    .about = "the block as one CUDA graph, on NVIDIA devices of compute capability 8.0 or later",
    .options = cuda_options_text,
    .devices = cuda_devices,
    .supports = cuda_supports,
    .model_open = model_open,
    .model_close = model_close,
    .model_info = model_info,
    .stage_info = stage_info,
    .sequence_open = sequence_open,
    .sequence_close = sequence_close,
    .push = push,
    .truncate = truncate_context,
    .reset = reset,
    .load = load,
    .span = span,
    .read_context = read_context,
    .block = block,
    .stage = stage,
    .read_stage = read_stage,
    .block_time = block_time,
    .block_spans = block_spans,
    .evict_caches = evict_caches,
    .measure_read = measure_read,
    .measure_matrix = measure_matrix,
    .device_state = device_state,
    .poison = poison,
};
