/* Context rows: from the target's taps to the K and V that a layer holds. */
#include "reference.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

/* Runs a context stage on the chunk's values; its one input is given, its output is its place in `push`. */
static const float *run(DflashSequence *sequence, DflashStageCall *call, int32_t stage, const float *input) {
  call->stage = stage;
  call->inputs[0] = input;
  call->output = reference_values_at(&sequence->push, stage, call->layer);
  reference_stage_run(sequence->model, call, NULL);
  return call->output;
}

/* Projects `rows` rows at `pos` and puts them at row `index` of the context. */
static void settle(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, int64_t index) {
  const DflashGeometry *g = &sequence->model->geometry;
  const size_t bytes = (size_t)(rows * g->kv_heads * g->head_dim) * sizeof(float);
  DflashStageCall call = {.struct_size = sizeof call, .rows = rows, .position = pos};
  const float *joined = run(sequence, &call, DFLASH_STAGE_CONTEXT_FC, taps);
  const float *normed = run(sequence, &call, DFLASH_STAGE_CONTEXT_NORM, joined);
  for (call.layer = 0; call.layer < g->layers; call.layer++) {
    const float *k = run(sequence, &call, DFLASH_STAGE_CONTEXT_K_PROJ, normed);
    const float *v = run(sequence, &call, DFLASH_STAGE_CONTEXT_V_PROJ, normed);
    memcpy(reference_context_v(sequence, call.layer, index), v, bytes);
    k = run(sequence, &call, DFLASH_STAGE_CONTEXT_K, k);
    memcpy(reference_context_k(sequence, call.layer, index), k, bytes);
  }
}

static DflashStatus check(const DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                          DflashError *error) {
  DflashStatus status = reference_check_pointer("push: sequence", sequence, error);
  const Range count = {"rows", rows, 0, REFERENCE_POSITION_MAX};
  if (status == DFLASH_OK) status = reference_check_ranges("push", &count, 1, error);
  const Range start = {"pos", pos, 0, REFERENCE_POSITION_MAX - rows};
  if (status == DFLASH_OK) status = reference_check_ranges("push", &start, 1, error);
  if (status == DFLASH_OK && rows > 0) status = reference_check_pointer("push: taps", taps, error);
  return status;
}

/* A capturing sequence keeps the values of all rows, so its chunk is the whole push. */
static DflashStatus reserve_capture(DflashSequence *sequence, int64_t rows, DflashError *error) {
  if (!sequence->capture) return DFLASH_OK;
  Values values = {0};
  const Sizes sizes = {.push_rows = rows};
  DflashStatus status =
      reference_scratch_reserve(sequence->model, &sizes, DFLASH_STAGE_CONTEXT_FC, DFLASH_STAGE_CONTEXT_K, error);
  if (status != DFLASH_OK) return status;
  if (!reference_values_open(&values, &sequence->model->geometry, &sizes, true))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory to capture %" PRId64 " pushed rows",
                            rows);
  reference_values_close(&sequence->push);
  sequence->push = values;
  sequence->last.push_rows = rows;
  return DFLASH_OK;
}

DflashStatus reference_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                            DflashError *error) {
  DflashStatus status = check(sequence, pos, taps, rows, error);
  if (status != DFLASH_OK) return status;
  Context after = sequence->context;
  reference_context_forget(&after, pos);
  status = reference_context_reserve(sequence, after.len + rows, error);
  if (status == DFLASH_OK) status = reserve_capture(sequence, rows, error);
  if (status != DFLASH_OK) return status;
  const int64_t tap_width = dflash_geometry_tap_width(&sequence->model->geometry);
  const int64_t chunk = sequence->capture ? rows : REFERENCE_PUSH_CHUNK;
  for (int64_t done = 0; done < rows; done += chunk)
    settle(sequence, pos + done, taps + done * tap_width, rows - done < chunk ? rows - done : chunk, after.len + done);
  sequence->context.first = after.first;
  sequence->context.len = after.len + rows;
  return DFLASH_OK;
}
