/* Writes outside of outputs and into inputs, and outputs that are not written. */
#include <string.h>

#include "backends/faulty/faults_memory.h"

static int64_t output_count(const FaultCall *call) { return fault_rows(call) * fault_width(call); }

DflashStatus fault_write_after(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK) call->call.output[output_count(call)] = 1;
  return status;
}

DflashStatus fault_write_before(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK) call->call.output[-1] = 1;
  return status;
}

/* A norm in place: its input is scaled as its output. */
DflashStatus fault_write_input(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK)
    memcpy((float *)call->call.inputs[0], call->call.output, (size_t)output_count(call) * sizeof(float));
  return status;
}

/* The right output into scratch; NULL when that failed. */
static float *compute_aside(FaultCall *call, DflashStatus *status) {
  float *output = call->call.output, *aside = fault_scratch(call, 0, output_count(call));
  *status = DFLASH_OUT_OF_MEMORY;
  if (aside == NULL) return NULL;
  call->call.output = aside;
  *status = fault_base(call);
  call->call.output = output;
  return *status == DFLASH_OK ? aside : NULL;
}

/* Writes so many rows and columns of the right output. */
static DflashStatus write_part(FaultCall *call, int64_t rows, int64_t columns) {
  const int64_t width = fault_width(call);
  DflashStatus status;
  const float *aside = compute_aside(call, &status);
  for (int64_t row = 0; aside != NULL && row < rows; row++)
    memcpy(call->call.output + row * width, aside + row * width, (size_t)columns * sizeof(float));
  return status;
}

DflashStatus fault_skip_last_row(FaultCall *call) {
  const int64_t rows = fault_rows(call);
  return write_part(call, rows < call->model->geometry.block ? rows - 1 : rows, fault_width(call));
}

DflashStatus fault_skip_row_tail(FaultCall *call) {
  enum { TILE = 3 };
  return write_part(call, fault_rows(call) / TILE * TILE, fault_width(call));
}

DflashStatus fault_skip_column_tail(FaultCall *call) {
  enum { TILE = 64 };
  return write_part(call, fault_rows(call), fault_width(call) / TILE * TILE);
}

DflashStatus fault_skip_ids(FaultCall *call) {
  const int64_t top = call->model->geometry.selector_top, rows = call->call.n_draft;
  int32_t *ids = call->call.tokens->candidates;
  float *before = fault_scratch(call, 0, rows * top);
  if (before == NULL) return DFLASH_OUT_OF_MEMORY;
  if (ids != NULL) memcpy(before, ids, (size_t)(rows * top) * sizeof *ids);
  const DflashStatus status = fault_base(call);
  for (int64_t row = 0; ids != NULL && row < rows; row++)
    memcpy(ids + row * top + 1, before + row * top + 1, (size_t)(top - 1) * sizeof *ids);
  return status;
}

DflashStatus fault_skip_all(FaultCall *call) {
  (void)call;
  return DFLASH_OK;
}

DflashStatus fault_logits_after(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)error;
  if (call->logits != NULL) call->logits[call->n_draft * call->head_width] = 1;
  return DFLASH_OK;
}

DflashStatus fault_tokens_before(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)error;
  call->tokens->chosen[-1] = (int32_t)call->anchor_token;
  return DFLASH_OK;
}

DflashStatus fault_candidates_after(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)error;
  int32_t *ids = call->tokens->candidates;
  if (ids != NULL) ids[call->n_draft * sequence->model->geometry.selector_top] = 0;
  return DFLASH_OK;
}

DflashStatus fault_embeddings_scaled(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)error;
  float *h = (float *)call->h;
  for (int64_t i = 0; i < sequence->model->geometry.hidden; i++) h[i] *= 0.5F;
  return DFLASH_OK;
}

DflashStatus fault_push_writes_taps(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                                    DflashError *error) {
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  const int64_t width = dflash_geometry_tap_width(&sequence->model->geometry);
  float *own = (float *)taps;
  for (int64_t i = 0; status == DFLASH_OK && i < rows * width; i++) own[i] = -own[i];
  return status;
}

DflashStatus fault_read_after(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                              DflashError *error) {
  const DflashStatus status = fault_read_stage(sequence, stage, layer, values, count, error);
  if (status == DFLASH_OK && stage == DFLASH_STAGE_FINAL_NORM) values[count] = 1;
  return status;
}

DflashStatus fault_read_context_after(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                      float *v, DflashError *error) {
  const DflashGeometry *g = &sequence->model->geometry;
  const DflashStatus status = fault_read_context(sequence, layer, pos, rows, k, v, error);
  if (status == DFLASH_OK && rows > 0) k[rows * g->kv_heads * g->head_dim] = 1;
  return status;
}
