/* Keys and values of the wrong place: another position, head, layer, block or sequence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_attention.h"
#include "base/error.h"

static int64_t kv_width(const DflashModel *model) { return model->geometry.kv_heads * model->geometry.head_dim; }

/* ---- of what attn.mix is given ---- */

static const float *row_8_bits(const FaultCall *call, int64_t kv_head, int64_t position, const float *row) {
  (void)kv_head;
  const int64_t index = position - call->call.context_first;
  return row - (index - (uint8_t)index) * kv_width(call->model);
}
const FaultAttention fault_index_8_bits = {.key = row_8_bits, .value = row_8_bits};

static const float *row_after(const FaultCall *call, int64_t kv_head, int64_t position, const float *row) {
  (void)kv_head;
  const bool last = position + 1 == call->call.context_first + call->call.context_len;
  return last ? row : row + kv_width(call->model);
}
const FaultAttention fault_value_after = {.value = row_after};

/* A kernel made for heads as wide as the next power of two: rows stand too far apart, and past the end at the start. */
static const float *row_at_stride(const FaultCall *call, int64_t kv_head, int64_t position, const float *k) {
  const DflashGeometry *g = &call->model->geometry;
  const int64_t index = position - call->call.context_first;
  int64_t width = 1;
  while (width < g->head_dim) width *= 2;
  const float *start = k - (index * g->kv_heads + kv_head) * g->head_dim;
  const int64_t room = (call->call.context_len * g->kv_heads - 1) * g->head_dim + 1;
  return start + (index * g->kv_heads + kv_head) * width % room;
}
const FaultAttention fault_row_stride = {.key = row_at_stride};

/* The pipeline for heads above 80 channels could not be made; the dispatch does nothing. */
DflashStatus fault_wide_heads_skipped(FaultCall *call) {
  const bool skipped = call->call.stage == DFLASH_STAGE_ATTN_MIX && call->model->geometry.head_dim > 80;
  return skipped ? DFLASH_OK : fault_base(call);
}

/* [head][row] for [row][head]. */
DflashStatus fault_mix_transposed(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_ATTN_MIX) return status;
  const DflashGeometry *g = &call->model->geometry;
  const int64_t rows = call->call.rows, count = rows * g->heads * g->head_dim;
  float *copy = fault_scratch(call, 4, count);
  if (copy == NULL) return DFLASH_OUT_OF_MEMORY;
  memcpy(copy, call->call.output, (size_t)count * sizeof *copy);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t head = 0; head < g->heads; head++)
      memcpy(call->call.output + (head * rows + row) * g->head_dim, copy + (row * g->heads + head) * g->head_dim,
             (size_t)g->head_dim * sizeof *copy);
  return DFLASH_OK;
}

/* A row without context keys is 0/0 when it is the first. */
DflashStatus fault_empty_is_nan(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_ATTN_MIX) return status;
  for (int64_t i = 0; i < call->call.context_len; i++)
    if (fault_attention_sees(call, 0, call->call.context_first + i)) return DFLASH_OK;
  for (int64_t i = 0; i < fault_width(call); i++) call->call.output[i] = NAN;
  return DFLASH_OK;
}

/* Every seventh block, one head's result is the head's before: the reducer's scratch was written too early. */
DflashStatus fault_previous_head(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  const DflashGeometry *g = &call->model->geometry;
  const bool now = call->in_block && call->model->blocks % 7 == 0;
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_ATTN_MIX || !now) return status;
  float *out = call->call.output + ((call->call.rows - 1) * g->heads + g->heads - 1) * g->head_dim;
  memcpy(out, out - g->head_dim, (size_t)g->head_dim * sizeof *out);
  return DFLASH_OK;
}

/* ---- V of the block ---- */

static DflashStatus keep_v(FaultCall *call, const float *kept) {
  const size_t bytes = (size_t)(fault_rows(call) * fault_width(call)) * sizeof(float);
  if (kept != NULL)
    memcpy(call->call.output, kept, bytes);
  else
    memset(call->call.output, 0, bytes);
  return DFLASH_OK;
}

DflashStatus fault_v_of_previous_block(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_V_PROJ || !call->in_block) return fault_base(call);
  const DflashSequence *sequence = call->sequence;
  const bool same_rows = sequence->before.rows == sequence->last.rows;
  return keep_v(call, same_rows ? fault_value(&sequence->previous, DFLASH_STAGE_ATTN_V_PROJ, call->call.layer) : NULL);
}

/* No rows are reserved for the block: its K and V stand in the context's last ones. */
DflashStatus fault_block_over_live_rows(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  const int32_t stage = call->call.stage;
  const bool is_k = stage == DFLASH_STAGE_ATTN_K, is_v = stage == DFLASH_STAGE_ATTN_V_PROJ;
  if (status != DFLASH_OK || !call->in_block || !(is_k || is_v)) return status;
  const DflashSequence *sequence = call->sequence;
  const int64_t len = sequence->context.len, rows = call->call.rows < len ? call->call.rows : len;
  if (rows == 0) return DFLASH_OK;
  float *live = (is_k ? fault_context_k : fault_context_v)(sequence, call->call.layer, len - rows);
  memcpy(live, call->call.output, (size_t)(rows * fault_width(call)) * sizeof *live);
  return DFLASH_OK;
}

/* ---- rows of another layer ---- */

DflashStatus fault_see_k_of_layer_0(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                    int64_t *first, int64_t *len, const float **k, const float **v,
                                    DflashError *error) {
  (void)call, (void)layer, (void)first, (void)v, (void)error;
  if (*len > 0) *k = fault_context_k(sequence, 0, 0);
  return DFLASH_OK;
}

DflashStatus fault_see_v_of_layer_before(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                         int64_t *first, int64_t *len, const float **k, const float **v,
                                         DflashError *error) {
  (void)call, (void)first, (void)k, (void)error;
  if (*len > 0 && layer > 0) *v = fault_context_v(sequence, layer - 1, 0);
  return DFLASH_OK;
}

DflashStatus fault_see_v_as_k(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                              int64_t *len, const float **k, const float **v, DflashError *error) {
  (void)sequence, (void)call, (void)layer, (void)first, (void)len, (void)error;
  const float *kept = *k;
  *k = *v;
  *v = kept;
  return DFLASH_OK;
}

/* ---- scales of a tile ---- */

/* Fixed point of 30 bits by the largest of a tile of 8 rows, those past the context's end included. */
static void round_tile(const float *tile, float *out, int64_t count, int64_t kept) {
  enum { BITS = 30 };
  float largest = 0.0f;
  int exponent = 0;
  for (int64_t i = 0; i < count; i++)
    if (!(fabsf(tile[i]) <= largest)) largest = fabsf(tile[i]);
  frexp((double)largest, &exponent);
  const double step = isfinite(largest) ? ldexp(1.0, exponent - BITS) : (double)largest;
  for (int64_t i = 0; i < kept; i++) out[i] = (float)(nearbyint((double)tile[i] / step) * step);
}

DflashStatus fault_see_tile_scale(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                  int64_t *len, const float **k, const float **v, DflashError *error) {
  enum { TILE = 8 };
  (void)call, (void)first, (void)v;
  const int64_t width = kv_width(sequence->model), capacity = sequence->context.capacity;
  if (*len == 0) return DFLASH_OK;
  float *rounded = realloc(sequence->fault_data, (size_t)(capacity * width) * sizeof *rounded);
  if (rounded == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for rounded rows");
  sequence->fault_data = rounded;
  for (int64_t row = 0; row < *len; row += TILE) {
    const int64_t kept = *len - row < TILE ? *len - row : TILE;
    round_tile(fault_context_k(sequence, layer, row), rounded + row * width, TILE * width, kept * width);
  }
  *k = rounded;
  return DFLASH_OK;
}

/* ---- another sequence ---- */

/* The sequence of the block before, where it is another one; NULL: none. Lives for one block. */
typedef struct Note {
  DflashSequence *other;
} Note;

static Note *note_of(DflashSequence *sequence, DflashError *error) {
  if (sequence->fault_data == NULL) sequence->fault_data = calloc(1, sizeof(Note));
  if (sequence->fault_data == NULL) dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a note");
  return sequence->fault_data;
}

DflashStatus fault_block_note(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  Note *note = note_of(sequence, error);
  if (note == NULL) return DFLASH_OUT_OF_MEMORY;
  note->other = sequence->model->last != sequence ? sequence->model->last : NULL;
  return fault_block(sequence, call, error);
}

static DflashSequence *other_of(const DflashSequence *sequence) {
  const Note *note = sequence->fault_data;
  return note->other != NULL && note->other->context.len > 0 ? note->other : NULL;
}

DflashStatus fault_see_first_of_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                      int64_t *first, int64_t *len, const float **k, const float **v,
                                      DflashError *error) {
  (void)call, (void)layer, (void)len, (void)k, (void)v, (void)error;
  const DflashSequence *other = other_of(sequence);
  if (other != NULL) *first = other->context.first;
  return DFLASH_OK;
}

DflashStatus fault_see_tiles_of_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                      int64_t *first, int64_t *len, const float **k, const float **v,
                                      DflashError *error) {
  enum { TILE = 16 };
  (void)call, (void)layer, (void)first, (void)k, (void)v, (void)error;
  const DflashSequence *other = other_of(sequence);
  if (other == NULL) return DFLASH_OK;
  const int64_t tiles = (other->context.len + TILE - 1) / TILE;
  if (*len > tiles * TILE) *len = tiles * TILE;
  return DFLASH_OK;
}
