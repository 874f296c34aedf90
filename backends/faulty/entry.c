/* The vtable: each member is the fault's own, else the right one. */
#include "backends/faulty/executor.h"
#include "base/error.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

static const Fault *fault_of(const DflashSequence *sequence) {
  return sequence != NULL ? sequence->model->fault : fault_find("");
}

static DflashStatus push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->push != NULL ? fault->push(sequence, pos, taps, rows, error)
                             : fault_push(sequence, pos, taps, rows, error);
}

static DflashStatus truncate_rows(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->truncate != NULL ? fault->truncate(sequence, pos, error) : fault_truncate(sequence, pos, error);
}

static DflashStatus reset(DflashSequence *sequence, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->reset != NULL ? fault->reset(sequence, error) : fault_reset(sequence, error);
}

static DflashStatus load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                         const float *const *v, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->load != NULL ? fault->load(sequence, first, len, k, v, error)
                             : fault_load(sequence, first, len, k, v, error);
}

static DflashStatus span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->span != NULL ? fault->span(sequence, layer, first, len, kept_from, error)
                             : fault_span(sequence, layer, first, len, kept_from, error);
}

static DflashStatus read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->read_context != NULL ? fault->read_context(sequence, layer, pos, rows, k, v, error)
                                     : fault_read_context(sequence, layer, pos, rows, k, v, error);
}

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->block != NULL ? fault->block(sequence, call, error) : fault_block(sequence, call, error);
}

static DflashStatus read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->read_stage != NULL ? fault->read_stage(sequence, stage, layer, values, count, error)
                                   : fault_read_stage(sequence, stage, layer, values, count, error);
}

static DflashStatus block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->block_time != NULL ? fault->block_time(sequence, time, error) : fault_block_time(sequence, time, error);
}

static DflashStatus block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  const Fault *fault = fault_of(sequence);
  return fault->block_spans != NULL ? fault->block_spans(sequence, spans, capacity, count, error)
                                    : fault_block_spans(sequence, spans, capacity, count, error);
}

static DflashStatus model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  const bool own = model != NULL && model->fault->model_info != NULL;
  return own ? model->fault->model_info(model, info, error) : fault_model_info(model, info, error);
}

static DflashStatus stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error) {
  const bool own = model != NULL && model->fault->stage_info != NULL;
  return own ? model->fault->stage_info(model, stage, layer, rows, info, error)
             : fault_stage_info(model, stage, layer, rows, info, error);
}

/* Optional members are the base's. */
static DflashStatus absent(const DflashModel *model, const char *member, DflashError *error) {
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "faulty: base %s has no %s", model->base->name, member);
}

static DflashStatus evict_caches(DflashModel *model, DflashError *error) {
  if (model->base->evict_caches == NULL) return absent(model, "evict_caches", error);
  return model->base->evict_caches(model->inner, error);
}

static DflashStatus measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  if (model->base->measure_read == NULL) return absent(model, "measure_read", error);
  return model->base->measure_read(model->inner, bytes_per_second, error);
}

static DflashStatus measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  if (model->base->measure_matrix == NULL) return absent(model, "measure_matrix", error);
  return model->base->measure_matrix(model->inner, operations_per_second, error);
}

static DflashStatus library_time(DflashModel *model, int32_t stage, int64_t layer, int64_t rows, uint64_t *ns,
                                 DflashError *error) {
  if (model->base->library_time == NULL) return absent(model, "library_time", error);
  return model->base->library_time(model->inner, stage, layer, rows, ns, error);
}

static DflashStatus device_state(DflashModel *model, DflashDeviceState *state, DflashError *error) {
  if (model->base->device_state == NULL) return absent(model, "device_state", error);
  return model->base->device_state(model->inner, state, error);
}

static const DflashBackend backend = {
    .struct_size = sizeof(DflashBackend),
    .abi = DFLASH_BACKEND_ABI,
    .name = "faulty",
    .version = "0.1.0",
    .about = "wrong on purpose: another backend with one defect, to measure the gate itself",
    .options =
        "base=reference|blas (reference), defect=ID of the catalogue (none), expose=all|end (all), slow=STAGE:FACTOR "
        "(none; that stage takes FACTOR times as long), threads=N; "
        "others go to the base",
    .devices = fault_devices,
    .supports = fault_supports,
    .model_open = fault_model_open,
    .model_close = fault_model_close,
    .model_info = model_info,
    .stage_info = stage_info,
    .sequence_open = fault_sequence_open,
    .sequence_close = fault_sequence_close,
    .push = push,
    .truncate = truncate_rows,
    .reset = reset,
    .load = load,
    .span = span,
    .read_context = read_context,
    .block = block,
    .stage = fault_stage,
    .read_stage = read_stage,
    .block_time = block_time,
    .block_spans = block_spans,
    .evict_caches = evict_caches,
    .measure_read = measure_read,
    .measure_matrix = measure_matrix,
    .library_time = library_time,
    .device_state = device_state,
    .poison = fault_poison,
};

const DflashBackend *dflash_backend(void) { return &backend; }
