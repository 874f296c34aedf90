/* A backend to copy: complete and loadable, and honest about computing nothing yet. It names a device, and
 * declines every model. Comments say what each member must do; README.md beside this file says how to build a
 * copy outside the tree. Only the public headers are used. */
#include <stdarg.h>
#include <stdio.h>

#include "dflash/backend.h"

DFLASH_BACKEND_EXPORT const DflashBackend *dflash_backend(void);

/* One line: who, what failed, the value found, what is valid. error may be NULL. */
__attribute__((format(printf, 3, 4))) static DflashStatus fail(DflashError *error, DflashStatus status,
                                                               const char *format, ...) {
  if (error == NULL) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->status = status;
  return status;
}

/* What every member below answers until it is written. */
static DflashStatus not_written(DflashError *error, const char *member) {
  return fail(error, DFLASH_UNSUPPORTED, "template: copy me: %s is not written", member);
}

/* Devices that can be opened now. Look for the driver here, at run time, and answer DFLASH_UNAVAILABLE with its
 * own words when it is missing. A software device says is_cpu = 1: its times are CPU times. The caller sets
 * struct_size; entries are struct_size bytes apart, and nothing past struct_size is written. */
static DflashStatus devices(DflashDevice *list, uint32_t capacity, uint32_t *count, DflashError *error) {
  if (count == NULL || (capacity > 0 && (list == NULL || list->struct_size < sizeof *list)))
    return fail(error, DFLASH_INVALID_ARGUMENT, "template: devices: no count, or a list of another size");
  *count = 1;
  if (capacity == 0) return DFLASH_OK;
  list->is_cpu = 1;
  list->memory_bytes = 0;
  snprintf(list->id, sizeof list->id, "none");
  snprintf(list->name, sizeof list->name, "no device");
  snprintf(list->driver, sizeof list->driver, "none");
  return DFLASH_OK;
}

/* Asked before anything is opened, often without weights. Decline here what the device cannot take: a profile, a
 * head_dim beyond a kernel's range, a buffer above a limit, memory that will not suffice. Never decline by falling
 * back to another path. */
static DflashStatus supports(const DflashModelDesc *desc, DflashError *error) {
  if (desc == NULL || desc->struct_size < sizeof *desc || desc->geometry == NULL)
    return fail(error, DFLASH_INVALID_ARGUMENT, "template: supports: no geometry, or a description of another size");
  for (uint32_t i = 0; i < desc->option_count; i++) /* a backend compares each key with those it knows */
    return fail(error, DFLASH_INVALID_ARGUMENT, "template: no option \"%s\"; known: none", desc->options[i].key);
  return fail(error, DFLASH_UNSUPPORTED, "template: copy me: no geometry of %lld layers runs here yet",
              (long long)desc->geometry->layers);
}

/* Begins with what supports() checks. Then copies or converts the weights it needs: the caller's memory is gone
 * after the call. Uploads are finished on return. On failure *model is NULL and nothing is left behind. */
static DflashStatus model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  if (model == NULL) return fail(error, DFLASH_INVALID_ARGUMENT, "template: model_open: model is NULL");
  *model = NULL;
  return supports(desc, error);
}

/* Accepts NULL. */
static void model_close(DflashModel *model) { (void)model; }

/* Whether equal calls give equal bits, the memory held, and one line on the path taken. */
static DflashStatus model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  (void)model, (void)info;
  return not_written(error, "model_info");
}

/* How a stage is computed: can its value be read back, can it run alone, which dispatch it shares, which kernel. A
 * stage that is fused away names in covered_by the next one that is not. */
static DflashStatus stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error) {
  (void)model, (void)stage, (void)layer, (void)rows, (void)info;
  return not_written(error, "stage_info");
}

/* One context. Reserve here all that a block needs: a block allocates nothing. With DFLASH_SEQUENCE_CAPTURE every
 * materialised stage of the last push and block stays readable; the kernels are the same, copies may be added. */
static DflashStatus sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  (void)model, (void)desc;
  if (sequence != NULL) *sequence = NULL;
  return not_written(error, "sequence_open");
}

/* Accepts NULL. */
static void sequence_close(DflashSequence *sequence) { (void)sequence; }

/* Rows at pos ..: inside what is held, everything from pos on is forgotten first; at the end they append; elsewhere
 * the context starts over at pos. Rows may wait and be projected later, a bounded number of them. Buffers that grow
 * keep their rows. */
static DflashStatus push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  (void)sequence, (void)pos, (void)taps, (void)rows;
  return not_written(error, "push");
}

/* Forgets from pos on. Past the end: nothing. At or before first: len is 0, first stays. */
static DflashStatus truncate_context(DflashSequence *sequence, int64_t pos, DflashError *error) {
  (void)sequence, (void)pos;
  return not_written(error, "truncate");
}

/* Forgets everything; first is 0. */
static DflashStatus reset(DflashSequence *sequence, DflashError *error) {
  (void)sequence;
  return not_written(error, "reset");
}

/* Sets first, len and all rows of K (normed and rotated) and V. */
static DflashStatus load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                         const float *const *v, DflashError *error) {
  (void)sequence, (void)first, (void)len, (void)k, (void)v;
  return not_written(error, "load");
}

/* first and len of what is held, waiting rows counted, and the first position that this layer still keeps. */
static DflashStatus span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error) {
  (void)sequence, (void)layer, (void)first, (void)len, (void)kept_from;
  return not_written(error, "span");
}

/* K and V of a layer; waiting rows are settled first. */
static DflashStatus read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error) {
  (void)sequence, (void)layer, (void)pos, (void)rows, (void)k, (void)v;
  return not_written(error, "read_context");
}

/* The block on the path of production. Check every argument before the first work; NaN in logits, selector rows or
 * scores is DFLASH_NONFINITE, and the stage values stay readable. */
static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence, (void)call;
  return not_written(error, "block");
}

/* One stage on given inputs, by the kernel that the block uses for it; DFLASH_UNSUPPORTED where that cannot be. */
static DflashStatus stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error) {
  (void)sequence, (void)call;
  return not_written(error, "stage");
}

/* A stage's value of the last block, or of the last push for context.*, in f32. */
static DflashStatus read_stage(DflashSequence *sequence, int32_t which, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  (void)sequence, (void)which, (void)layer, (void)values, (void)count;
  return not_written(error, "read_stage");
}

/* The last block by the device's own clock, and that clock's measured step. */
static DflashStatus block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  (void)sequence, (void)time;
  return not_written(error, "block_time");
}

/* The pieces of the last block that was called with DFLASH_BLOCK_STAMP, one a dispatch. */
static DflashStatus block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  (void)sequence, (void)spans, (void)capacity, (void)count;
  return not_written(error, "block_spans");
}

/* Optional members are left NULL: evict_caches, measure_read, measure_matrix, library_time, device_state, poison.
 * backend.h says what each absence costs. poison is the first to write: it finds what was never written. */
static const DflashBackend backend = {
    .struct_size = sizeof(DflashBackend),
    .abi = DFLASH_BACKEND_ABI,
    .name = "template",
    .version = "0.1.0",
    .about = "a skeleton to copy; it computes nothing",
    .options = "none",
    .devices = devices,
    .supports = supports,
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
};

const DflashBackend *dflash_backend(void) { return &backend; }
