/* The gate between a case from a file and everything that indexes by its numbers. */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/case.h"
#include "model/context.h"

static DflashStatus check_range(const char *field, int64_t value, int64_t least, int64_t most, DflashError *error) {
  if (value >= least && value <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is %" PRId64 "; valid: %" PRId64 " to %" PRId64, field, value,
                          least, most);
}

static DflashStatus check_sizes(const DflashCase *c, const DflashGeometry *g, DflashError *error) {
  DflashStatus status = check_range("layers", c->layers, g->layers, g->layers, error);
  if (status == DFLASH_OK) status = check_range("rows", c->sizes.rows, 2, g->block, error);
  if (status == DFLASH_OK) status = check_range("n_draft", c->sizes.n_draft, 1, c->sizes.rows - 1, error);
  if (status == DFLASH_OK) status = check_range("head_width", c->sizes.head_width, g->selector_top, g->vocab, error);
  if (status == DFLASH_OK) status = check_range("anchor_token", c->anchor_token, 0, g->vocab - 1, error);
  if (status == DFLASH_OK)
    status = check_range("anchor_pos", c->anchor_pos, 0, DFLASH_LAST_POSITION - c->sizes.rows, error);
  return status;
}

/* The bytes of rows x width f32 must fit 63 bits. */
static DflashStatus check_bytes(const char *what, int64_t rows, int64_t width, DflashError *error) {
  int64_t bytes;
  if (dflash_mul_i64(rows, width, &bytes) && dflash_mul_i64(bytes, (int64_t)sizeof(float), &bytes)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %" PRId64 " rows of %" PRId64 " overflow 63 bits of bytes",
                          what, rows, width);
}

static DflashStatus check_ops(const DflashCase *c, DflashError *error) {
  if (c->op_count < 0 || (c->op_count > 0 && !c->ops))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "context/ops holds %" PRId64 " operations", c->op_count);
  for (int64_t i = 0; i < c->op_count; i++) {
    const DflashContextOp *op = &c->ops[i];
    DflashStatus status = dflash_context_check_op(op, i, error);
    if (status != DFLASH_OK) return status;
    if (op->op == DFLASH_OP_PUSH && (op->n_rows > c->tap_rows || op->first_row > c->tap_rows - op->n_rows))
      return dflash_error_set(error, DFLASH_INVALID_DATA,
                              "context operation %" PRId64 ": rows %" PRId64 " .. +%" PRId64
                              " of taps; valid: within the %" PRId64 " rows that context/taps has",
                              i, op->first_row, op->n_rows, c->tap_rows);
  }
  return DFLASH_OK;
}

static DflashStatus check_same(const char *field, int64_t found, int64_t expected, DflashError *error) {
  if (found == expected) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s is %" PRId64 "; the operations give %" PRId64, field, found,
                          expected);
}

static DflashStatus check_context(const DflashCase *c, DflashError *error) {
  int64_t first, len, last_push;
  DflashStatus status = dflash_context_replay(c->ops, c->op_count, &first, &len, NULL, &last_push, error);
  if (status != DFLASH_OK) return status;
  status = check_same("context_state first", c->context_first, first, error);
  if (status == DFLASH_OK) status = check_same("context_state len", c->sizes.context_len, len, error);
  if (status == DFLASH_OK)
    status =
        check_same("rows of the last push", c->sizes.push_rows, last_push < 0 ? 0 : c->ops[last_push].n_rows, error);
  return status;
}

/* What values the block starts from must be finite; what comes out is judged, not refused. */
static DflashStatus check_finite(const char *what, const float *values, int64_t rows, int64_t width,
                                 DflashError *error) {
  for (int64_t i = 0; values && i < rows * width; i++)
    if (!isfinite(values[i]))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s[%" PRId64 ", %" PRId64 "] is %g; valid: finite", what,
                              i / width, i % width, (double)values[i]);
  return DFLASH_OK;
}

/* An error scale that is infinite, negative or NaN would accept anything. */
static DflashStatus check_scale(const char *label, const char *which, const float *sigma, int64_t count,
                                DflashError *error) {
  for (int64_t i = 0; sigma && i < count; i++)
    if (!(isfinite(sigma[i]) && sigma[i] >= 0))
      return dflash_error_set(error, DFLASH_INVALID_DATA,
                              "%s: error scale '%s' of element %" PRId64 " is %g; valid: finite, 0 or more", label,
                              which, i, (double)sigma[i]);
  return DFLASH_OK;
}

static DflashStatus check_value(const DflashCase *c, const DflashGeometry *g, const DflashValue *value, int32_t stage,
                                int64_t layer, DflashError *error) {
  if (!value->data && !value->alone && !value->chain) return DFLASH_OK;
  char label[64];
  dflash_stage_label(stage, layer, label);
  int64_t rows = dflash_stage_rows(g, &c->sizes, stage), width = dflash_stage_width(g, &c->sizes, stage);
  if (value->rows != rows || value->width != width)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "%s is %" PRId64 " x %" PRId64 "; valid: %" PRId64 " x %" PRId64, label, value->rows,
                            value->width, rows, width);
  DflashStatus status = check_scale(label, "alone", value->alone, rows * width, error);
  if (status == DFLASH_OK) status = check_scale(label, "chain", value->chain, rows * width, error);
  return status;
}

static DflashStatus check_values(const DflashCase *c, const DflashGeometry *g, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t layer = 0; status == DFLASH_OK && layer < c->layers; layer++) {
    status = check_value(c, g, &c->held_k[layer], DFLASH_STAGE_HELD_K, layer, error);
    if (status == DFLASH_OK) status = check_value(c, g, &c->held_v[layer], DFLASH_STAGE_HELD_V, layer, error);
  }
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; status == DFLASH_OK && dflash_stage_walk(g, i, &stage, &layer); i++) {
    int64_t at = stage * c->layers + layer;
    status = check_value(c, g, &c->stages[at], stage, layer, error);
    if (status == DFLASH_OK && c->stages_i8) status = check_value(c, g, &c->stages_i8[at], stage, layer, error);
  }
  return status;
}

static DflashStatus check_ids(const char *name, const int32_t *ids, int64_t count, int64_t limit, DflashError *error) {
  for (int64_t i = 0; ids && i < count; i++)
    if (ids[i] < 0 || ids[i] >= limit)
      return dflash_error_set(error, DFLASH_INVALID_DATA,
                              "output/%s: entry %" PRId64 " is token %" PRId32
                              "; valid: 0 or more, below head_width (%" PRId64 ")",
                              name, i, ids[i], limit);
  return DFLASH_OK;
}

static DflashStatus check_tokens(const DflashCase *c, const DflashGeometry *g, DflashError *error) {
  const DflashTokensValue *tokens = &c->tokens;
  int64_t rows = c->sizes.n_draft, width = c->sizes.head_width, candidates = rows * g->selector_top;
  DflashStatus status = check_ids("chosen", tokens->chosen, rows, width, error);
  if (status == DFLASH_OK) status = check_ids("plain", tokens->plain, rows, width, error);
  if (status == DFLASH_OK) status = check_ids("candidates", tokens->candidates, candidates, width, error);
  for (int64_t i = 0; status == DFLASH_OK && tokens->scores && i < candidates; i++)
    if (!isfinite(tokens->scores[i]))
      status = dflash_error_set(error, DFLASH_INVALID_DATA, "output/scores: entry %" PRId64 " is %g; valid: finite", i,
                                tokens->scores[i]);
  if (status == DFLASH_OK) status = check_scale("output/scores", "alone", tokens->alone, candidates, error);
  if (status == DFLASH_OK) status = check_scale("output/scores", "chain", tokens->chain, candidates, error);
  return status;
}

/* In this order: what a later check multiplies or indexes by, an earlier one has bounded. */
static DflashStatus check_all(const DflashCase *c, const DflashGeometry *g, DflashError *error) {
  int64_t tap_width = dflash_geometry_tap_width(g), kv_width = g->kv_heads * g->head_dim;
  DflashStatus status = check_sizes(c, g, error);
  if (status == DFLASH_OK) status = check_range("rows of context/taps", c->tap_rows, 0, INT64_MAX, error);
  if (status == DFLASH_OK) status = check_bytes("context/taps", c->tap_rows, tap_width, error);
  if (status == DFLASH_OK) status = check_ops(c, error);
  if (status == DFLASH_OK) status = check_context(c, error);
  if (status == DFLASH_OK) status = check_bytes("context_state", c->sizes.context_len, kv_width, error);
  if (status == DFLASH_OK) status = check_bytes("the last push's K", c->sizes.push_rows, kv_width, error);
  if (status == DFLASH_OK) status = check_finite("context/taps", c->taps, c->tap_rows, tap_width, error);
  if (status == DFLASH_OK) status = check_finite("input/h", c->h, c->sizes.rows, g->hidden, error);
  if (status == DFLASH_OK) status = check_values(c, g, error);
  if (status == DFLASH_OK) status = check_tokens(c, g, error);
  return status;
}

DflashStatus dflash_case_check(const DflashCase *c, const DflashGeometry *geometry, DflashError *error) {
  DflashStatus status = check_all(c, geometry, error);
  if (status != DFLASH_OK && c->name) dflash_error_prefix(error, "case %s", c->name);
  return status;
}
