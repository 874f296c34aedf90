/* Bookkeeping of the context. A call reserves all memory first, then changes things and cannot fail any more. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "sequence.h"

enum { REWIND_ROWS = 256 }; /* how far a windowed layer can be rewound at least */

/* Rows that a layer must keep, or INT64_MAX when it lets none go. */
static int64_t rows_to_keep(const DflashSequence *s, int64_t layer) {
  const int64_t window = dflash_geometry_window(&s->model->geometry, layer);
  if (window == 0 || s->capture || s->model->options.keep_all || window > POSITION_MAX) return INT64_MAX;
  return window - 1 + REWIND_ROWS;
}

/* Slots that a layer needs for `slots` positions in a row. */
static int64_t slots_needed(const DflashSequence *s, int64_t layer, int64_t slots) {
  const int64_t keep = rows_to_keep(s, layer);
  const int64_t limit = keep == INT64_MAX ? INT64_MAX : keep + PANEL + 2 * SETTLE_ROWS;
  return slots < limit ? slots : limit;
}

static bool reserve_waiting(DflashSequence *s, int64_t rows) {
  const int64_t tap_width = dflash_geometry_tap_width(&s->model->geometry);
  int64_t capacity = 2 * s->waiting_capacity > rows ? 2 * s->waiting_capacity : rows, count;
  if (rows <= s->waiting_capacity) return true;
  if (capacity > WAITING_MAX) capacity = WAITING_MAX;
  if (!dflash_mul_i64(capacity, tap_width, &count)) return false;
  float *grown = dflash_alloc((size_t)count, sizeof(float));
  if (!grown) return false;
  if (s->waiting) memcpy(grown, s->waiting, (size_t)((s->len - s->settled) * tap_width) * sizeof(float));
  free(s->waiting);
  s->waiting = grown;
  s->waiting_capacity = capacity;
  return true;
}

/* Stores and attention for a context first .. first + len; `restarted`: what is held goes. */
static bool reserve_context(DflashSequence *s, int64_t first, int64_t len, bool restarted) {
  const DflashGeometry *g = &s->model->geometry;
  for (int64_t layer = 0; layer < g->layers; layer++) {
    DflashStore *store = &s->stores[layer];
    const int64_t base = restarted ? first / PANEL * PANEL : store->base;
    if (!dflash_store_reserve(store, slots_needed(s, layer, first + len - base))) return false;
    if (!dflash_workspace_reserve_attention(&s->workspace, dflash_attention_lanes(g, layer, len, g->block)))
      return false;
  }
  return true;
}

static void restart(DflashSequence *s, int64_t first) {
  s->first = first;
  s->len = s->settled = 0;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) dflash_store_restart(&s->stores[layer], first);
}

/* Rows from pos on are forgotten; first <= pos. */
static void cut(DflashSequence *s, int64_t pos) {
  if (pos >= s->first + s->len) return;
  if (pos == s->first) {
    restart(s, pos);
    return;
  }
  s->len = pos - s->first;
  if (s->settled <= s->len) return;
  s->settled = s->len;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) dflash_store_cut(&s->stores[layer], pos);
}

/* After a rewind to pos the next block's anchor may be pos: does every layer still keep what it sees? */
static DflashStatus check_rewind(const DflashSequence *s, int64_t pos, DflashError *error) {
  if (pos <= s->first || pos >= s->first + s->len) return DFLASH_OK;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t window = dflash_geometry_window(&s->model->geometry, layer), kept = s->stores[layer].kept;
    if (kept > s->first && kept > pos - (window - 1))
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "blas: layer %lld keeps positions from %lld on; a rewind to %lld needs %lld",
                              (long long)layer, (long long)kept, (long long)pos,
                              (long long)(pos - (window - 1) > s->first ? pos - (window - 1) : s->first));
  }
  return DFLASH_OK;
}

/* ---- settling ---- */

static void append_layer(DflashSequence *s, int64_t layer, const float *k, const float *v, int64_t rows) {
  DflashStore *store = &s->stores[layer];
  if (store->end - store->base + rows > store->capacity)
    dflash_store_let_go(store, store->end - rows_to_keep(s, layer));
  dflash_store_append(store, k, v, rows);
}

/* Without capture the layers share one set of values: each is appended before the next is computed. */
static void settle_piece(DflashSequence *s, const float *taps, int64_t rows, int64_t piece) {
  const DflashGeometry *g = &s->model->geometry;
  const DflashRun run = {
      .model = s->model, .workspace = &s->workspace, .rows = rows, .position = s->first + s->settled};
  const int64_t width = g->kv_heads * g->head_dim;
  float *fc = dflash_value(s, DFLASH_STAGE_CONTEXT_FC, 0) + piece * g->hidden;
  float *norm = dflash_value(s, DFLASH_STAGE_CONTEXT_NORM, 0) + piece * g->hidden;
  dflash_run_stage(&run, DFLASH_STAGE_CONTEXT_FC, 0, (const float *const[]){taps}, fc, NULL);
  dflash_run_stage(&run, DFLASH_STAGE_CONTEXT_NORM, 0, (const float *const[]){fc}, norm, NULL);
  for (int64_t layer = 0; layer < g->layers; layer++) {
    float *projected = dflash_value(s, DFLASH_STAGE_CONTEXT_K_PROJ, layer) + piece * width;
    float *k = dflash_value(s, DFLASH_STAGE_CONTEXT_K, layer) + piece * width;
    float *v = dflash_value(s, DFLASH_STAGE_CONTEXT_V_PROJ, layer) + piece * width;
    dflash_run_stage(&run, DFLASH_STAGE_CONTEXT_K_PROJ, layer, (const float *const[]){norm}, projected, NULL);
    dflash_run_stage(&run, DFLASH_STAGE_CONTEXT_K, layer, (const float *const[]){projected}, k, NULL);
    dflash_run_stage(&run, DFLASH_STAGE_CONTEXT_V_PROJ, layer, (const float *const[]){norm}, v, NULL);
    append_layer(s, layer, k, v, rows);
  }
  s->settled += rows;
}

static void settle_rows(DflashSequence *s, const float *taps, int64_t rows) {
  const int64_t tap_width = dflash_geometry_tap_width(&s->model->geometry);
  for (int64_t done = 0; done < rows; done += SETTLE_ROWS) {
    const int64_t count = rows - done < SETTLE_ROWS ? rows - done : SETTLE_ROWS;
    settle_piece(s, taps + done * tap_width, count, s->capture ? done : 0);
  }
}

void dflash_settle(DflashSequence *s) { settle_rows(s, s->waiting, s->len - s->settled); }

/* ---- calls ---- */

static void append_waiting(DflashSequence *s, const float *taps, int64_t rows) {
  const int64_t tap_width = dflash_geometry_tap_width(&s->model->geometry);
  memcpy(s->waiting + (s->len - s->settled) * tap_width, taps, (size_t)(rows * tap_width) * sizeof(float));
  s->len += rows;
}

/* What a push of `rows` rows does beside the `waiting` ones that it follows. */
typedef struct PushPlan {
  bool settle;  /* the waiting rows are settled first */
  int64_t wait; /* its last rows that wait */
} PushPlan;

/* A capturing sequence settles at once; else up to WAITING_MAX rows wait, and of a push past that its last piece. */
static PushPlan plan_push(const DflashSequence *s, int64_t waiting, int64_t rows) {
  if (s->capture) return (PushPlan){.settle = true};
  if (rows <= WAITING_MAX - waiting) return (PushPlan){.wait = rows};
  return (PushPlan){.settle = true, .wait = (rows - 1) % SETTLE_ROWS + 1};
}

static void append(DflashSequence *s, const float *taps, int64_t rows, PushPlan plan) {
  const int64_t now = rows - plan.wait;
  if (plan.settle) dflash_settle(s);
  s->len += now;
  settle_rows(s, taps, now);
  if (plan.wait > 0) append_waiting(s, taps + now * dflash_geometry_tap_width(&s->model->geometry), plan.wait);
}

static DflashStatus check_push(const DflashSequence *s, int64_t pos, const float *taps, int64_t rows,
                               DflashError *error) {
  int64_t end;
  if (pos < 0 || rows < 0 || !dflash_add_i64(pos, rows, &end) || end > POSITION_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: push: position %lld or rows %lld out of range",
                            (long long)pos, (long long)rows);
  if (rows > 0 && !taps) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: push: rows without taps");
  return check_rewind(s, pos, error);
}

DflashStatus dflash_push(DflashSequence *s, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  DflashStatus status = check_push(s, pos, taps, rows, error);
  if (status) return status;
  const bool restarted = pos < s->first || pos > s->first + s->len || pos == s->first;
  const int64_t first = restarted ? pos : s->first, before = pos - first;
  const int64_t waiting = restarted || before < s->settled ? 0 : before - s->settled;
  const PushPlan plan = plan_push(s, waiting, rows);
  if (!reserve_context(s, first, before + rows, restarted) ||
      !reserve_waiting(s, plan.settle ? plan.wait : waiting + plan.wait) ||
      !dflash_sequence_reserve_push(s, waiting + rows))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: push: no memory for %lld rows at %lld", (long long)rows,
                            (long long)pos);
  if (restarted)
    restart(s, pos);
  else
    cut(s, pos);
  append(s, taps, rows, plan);
  if (rows > 0) s->push_rows = rows;
  return DFLASH_OK;
}

DflashStatus dflash_truncate(DflashSequence *s, int64_t pos, DflashError *error) {
  DflashStatus status = check_rewind(s, pos, error);
  if (status) return status;
  cut(s, pos > s->first ? pos : s->first);
  return DFLASH_OK;
}

DflashStatus dflash_reset(DflashSequence *s, DflashError *error) {
  (void)error;
  restart(s, 0);
  return DFLASH_OK;
}

DflashStatus dflash_load(DflashSequence *s, int64_t first, int64_t len, const float *const *k, const float *const *v,
                         DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  int64_t end;
  if (first < 0 || len < 0 || !dflash_add_i64(first, len, &end) || end > POSITION_MAX || (len > 0 && (!k || !v)))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "blas: load: first %lld or len %lld out of range, or no rows", (long long)first,
                            (long long)len);
  bool room = reserve_context(s, first, len, true);
  for (int64_t layer = 0; room && layer < g->layers; layer++)
    room = dflash_store_reserve(&s->stores[layer], end - first / PANEL * PANEL);
  if (!room)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: load: no memory for %lld rows", (long long)len);
  restart(s, first);
  for (int64_t layer = 0; len > 0 && layer < g->layers; layer++)
    dflash_store_append(&s->stores[layer], k[layer], v[layer], len);
  s->len = s->settled = len;
  return DFLASH_OK;
}

static DflashStatus check_layer(const DflashSequence *s, int64_t layer, DflashError *error) {
  if (layer >= 0 && layer < s->model->geometry.layers) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: no layer %lld, there are %lld", (long long)layer,
                          (long long)s->model->geometry.layers);
}

DflashStatus dflash_span(DflashSequence *s, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error) {
  DflashStatus status = check_layer(s, layer, error);
  if (status) return status;
  *first = s->first;
  *len = s->len;
  *kept_from = s->stores[layer].kept;
  return DFLASH_OK;
}

DflashStatus dflash_read_context(DflashSequence *s, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error) {
  DflashStatus status = check_layer(s, layer, error);
  if (status) return status;
  if (rows < 0 || pos < s->first || rows > s->len || pos - s->first > s->len - rows)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "blas: read_context: %lld rows at %lld, held are %lld rows at %lld", (long long)rows,
                            (long long)pos, (long long)s->len, (long long)s->first);
  dflash_settle(s);
  const DflashStore *store = &s->stores[layer];
  if (rows > 0 && pos < store->kept)
    return dflash_error_set(error, DFLASH_CONTEXT_LOST, "blas: layer %lld keeps positions from %lld on, not %lld",
                            (long long)layer, (long long)store->kept, (long long)pos);
  dflash_store_read(store, pos, rows, k, v);
  return DFLASH_OK;
}
