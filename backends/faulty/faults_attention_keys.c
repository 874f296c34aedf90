/* Which keys a row sees: windows, the anchor, the rows of the block. */
#include "backends/faulty/faults_attention.h"

static int64_t window_of(const FaultCall *call) {
  return dflash_geometry_window(&call->model->geometry, call->call.layer);
}

static bool before_anchor(const FaultCall *call, int64_t position) { return position < call->call.position; }

/* Does a window reach from the position `own` back to `position`? */
static bool reaches(int64_t window, int64_t own, int64_t position) { return window == 0 || position > own - window; }

static int64_t own_position(const FaultCall *call, int64_t row) { return call->call.position + row; }

static int64_t context_end(const FaultCall *call) { return call->call.context_first + call->call.context_len; }

/* ---- windows ---- */

static bool sees_one_more(const FaultCall *call, int64_t row, int64_t position) {
  return before_anchor(call, position) && reaches(window_of(call), own_position(call, row) - 1, position);
}
const FaultAttention fault_window_more = {.sees = sees_one_more};

static bool sees_one_less(const FaultCall *call, int64_t row, int64_t position) {
  return before_anchor(call, position) && reaches(window_of(call), own_position(call, row) + 1, position);
}
const FaultAttention fault_window_less = {.sees = sees_one_less};

static bool sees_all(const FaultCall *call, int64_t row, int64_t position) {
  (void)row;
  return before_anchor(call, position);
}
const FaultAttention fault_window_missing = {.sees = sees_all};

static bool sees_as_first_row(const FaultCall *call, int64_t row, int64_t position) {
  (void)row;
  return fault_attention_sees(call, 0, position);
}
const FaultAttention fault_window_first_row = {.sees = sees_as_first_row};

static bool sees_as_last_row(const FaultCall *call, int64_t row, int64_t position) {
  (void)row;
  return fault_attention_sees(call, call->call.rows - 1, position);
}
const FaultAttention fault_window_last_row = {.sees = sees_as_last_row};

static bool sees_block_in_window(const FaultCall *call, int64_t row, int64_t key) {
  return reaches(window_of(call), row, key);
}
const FaultAttention fault_window_on_block = {.sees_block = sees_block_in_window};

static bool sees_in_default_window(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t window = window_of(call) != 0 ? window_of(call) : call->model->geometry.window;
  return before_anchor(call, position) && reaches(window, own_position(call, row), position);
}
const FaultAttention fault_window_on_full = {.sees = sees_in_default_window};

static bool sees_in_window_of_layer_0(const FaultCall *call, int64_t row, int64_t position) {
  return before_anchor(call, position) &&
         reaches(dflash_geometry_window(&call->model->geometry, 0), own_position(call, row), position);
}
const FaultAttention fault_window_of_layer_0 = {.sees = sees_in_window_of_layer_0};

/* The row's own position is taken for the number of rows before it: a hole does not count. */
static bool sees_by_rows(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t end = context_end(call) < call->call.position ? context_end(call) : call->call.position;
  return before_anchor(call, position) && reaches(window_of(call), end + row, position);
}
const FaultAttention fault_window_by_rows = {.sees = sees_by_rows};

/* A ring of half the window holds the newest rows. */
static bool sees_half(const FaultCall *call, int64_t row, int64_t position) {
  return fault_attention_sees(call, row, position) &&
         (window_of(call) == 0 || position >= context_end(call) - window_of(call) / 2);
}
const FaultAttention fault_window_half = {.sees = sees_half};

static bool sees_from_zero(const FaultCall *call, int64_t row, int64_t position) {
  return fault_attention_sees(call, row, position - call->call.context_first);
}
const FaultAttention fault_window_from_zero = {.sees = sees_from_zero};

/* ---- the ends of the context ---- */

static bool sees_past_anchor(const FaultCall *call, int64_t row, int64_t position) {
  return reaches(window_of(call), own_position(call, row), position);
}
const FaultAttention fault_past_anchor = {.sees = sees_past_anchor};

static bool sees_anchor(const FaultCall *call, int64_t row, int64_t position) {
  return fault_attention_sees(call, row, position) || position == call->call.position;
}
const FaultAttention fault_anchor_included = {.sees = sees_anchor};

/* Positions count by blocks: what lies in the anchor's block is seen. */
static bool sees_by_block_number(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t block = call->model->geometry.block;
  return position / block <= call->call.position / block && sees_past_anchor(call, row, position);
}
const FaultAttention fault_block_number = {.sees = sees_by_block_number};

static bool sees_but_first(const FaultCall *call, int64_t row, int64_t position) {
  return position > call->call.context_first && fault_attention_sees(call, row, position);
}
const FaultAttention fault_first_left_out = {.sees = sees_but_first};

static bool sees_but_last(const FaultCall *call, int64_t row, int64_t position) {
  return position + 1 < context_end(call) && fault_attention_sees(call, row, position);
}
const FaultAttention fault_last_left_out = {.sees = sees_but_last};

/* A row that sees no key of the context writes its empty state over row 0's. */
static bool sees_unless_erased(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t window = window_of(call), end = context_end(call);
  const int64_t last = (end < call->call.position ? end : call->call.position) - 1;
  const bool erased = window != 0 && !reaches(window, own_position(call, call->call.rows - 1), last);
  return fault_attention_sees(call, row, position) && !(row == 0 && erased);
}
const FaultAttention fault_row_0_erased = {.sees = sees_unless_erased};

/* The mask is added to scores and is too small for large ones. */
static double score_weakly_masked(const FaultCall *call, int64_t row, int64_t head, int64_t key, double score) {
  (void)head;
  return before_anchor(call, key) && !fault_attention_sees(call, row, key) ? score - 30.0 : score;
}
const FaultAttention fault_weak_mask = {.sees = sees_all, .score = score_weakly_masked};

/* ---- the block's own rows ---- */

static bool sees_before(const FaultCall *call, int64_t row, int64_t key) {
  (void)call;
  return key <= row;
}
const FaultAttention fault_causal = {.sees_block = sees_before};

static bool sees_before_in_windowed(const FaultCall *call, int64_t row, int64_t key) {
  return window_of(call) == 0 || key <= row;
}
const FaultAttention fault_causal_windowed = {.sees_block = sees_before_in_windowed};

static bool sees_none(const FaultCall *call, int64_t row, int64_t key) {
  (void)row;
  (void)key;
  return call->call.context_len == 0;
}
const FaultAttention fault_no_block_keys = {.sees_block = sees_none};

static bool sees_others(const FaultCall *call, int64_t row, int64_t key) {
  (void)call;
  return key != row;
}
const FaultAttention fault_no_own_key = {.sees_block = sees_others};

static bool sees_masks(const FaultCall *call, int64_t row, int64_t key) {
  (void)call;
  (void)row;
  return key != 0;
}
const FaultAttention fault_no_anchor_key = {.sees_block = sees_masks};

static bool sees_drafts(const FaultCall *call, int64_t row, int64_t key) {
  (void)row;
  return key <= call->call.n_draft;
}
const FaultAttention fault_draft_keys = {.sees_block = sees_drafts};

static bool sees_eight(const FaultCall *call, int64_t row, int64_t key) {
  (void)call;
  (void)row;
  return key < 8;
}
const FaultAttention fault_eight_block_keys = {.sees_block = sees_eight};
