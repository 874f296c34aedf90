/* The bookkeeping of a context, as segments: a push adds one, a rewind cuts the newest. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/case.h"
#include "model/context.h"

/* 2 GiB of row numbers: far beyond any context whose K and V a golden could hold. */
static const int64_t longest_context = (int64_t)1 << 28;

/* Positions pos .. pos + rows, made from rows first_row .. of taps. */
typedef struct Segment {
  int64_t pos, rows, first_row;
} Segment;

typedef struct Context {
  int64_t first, len;
  Segment *segments; /* without holes, oldest first; none is empty */
  int64_t count;
} Context;

static void cut(Context *context, int64_t pos) {
  while (context->count > 0 && context->segments[context->count - 1].pos >= pos) context->count--;
  if (context->count > 0) {
    Segment *last = &context->segments[context->count - 1];
    if (last->rows > pos - last->pos) last->rows = pos - last->pos;
  }
  context->len = pos - context->first;
}

static void push(Context *context, const DflashContextOp *op) {
  if (op->pos < context->first || op->pos > context->first + context->len) {
    context->first = op->pos;
    context->len = context->count = 0;
  }
  cut(context, op->pos);
  if (op->n_rows == 0) return;
  context->segments[context->count++] = (Segment){op->pos, op->n_rows, op->first_row};
  context->len += op->n_rows;
}

static void apply(Context *context, const DflashContextOp *op) {
  switch (op->op) {
  case DFLASH_OP_PUSH:
    push(context, op);
    break;
  case DFLASH_OP_TRUNCATE:
    if (op->pos < context->first)
      cut(context, context->first);
    else if (op->pos < context->first + context->len)
      cut(context, op->pos);
    break;
  default:
    *context = (Context){.segments = context->segments};
  }
}

static DflashStatus refuse(int64_t index, const char *field, int64_t value, const char *valid, DflashError *error) {
  return dflash_error_set(error, DFLASH_INVALID_DATA, "context operation %" PRId64 ": %s is %" PRId64 "; valid: %s",
                          index, field, value, valid);
}

DflashStatus dflash_context_check_op(const DflashContextOp *op, int64_t index, DflashError *error) {
  if (op->op < DFLASH_OP_PUSH || op->op > DFLASH_OP_RESET)
    return refuse(index, "op", op->op, "0 push, 1 truncate, 2 reset", error);
  if (op->op == DFLASH_OP_RESET) return DFLASH_OK;
  if (op->pos < 0 || op->pos > DFLASH_LAST_POSITION) return refuse(index, "pos", op->pos, "0 to 2^62", error);
  if (op->op == DFLASH_OP_TRUNCATE) return DFLASH_OK;
  if (op->n_rows < 0 || op->n_rows > DFLASH_LAST_POSITION - op->pos)
    return refuse(index, "n_rows", op->n_rows, "0 or more, and no position beyond 2^62", error);
  if (op->first_row < 0 || op->first_row > INT64_MAX - op->n_rows)
    return refuse(index, "first_row", op->first_row, "0 or more, and first_row + n_rows below 2^63", error);
  return DFLASH_OK;
}

static DflashStatus run(Context *context, const DflashContextOp *ops, int64_t count, DflashError *error) {
  for (int64_t i = 0; i < count; i++) {
    DflashStatus status = dflash_context_check_op(&ops[i], i, error);
    if (status != DFLASH_OK) return status;
    apply(context, &ops[i]);
    if (context->len > longest_context)
      return refuse(i, "the context's length", context->len, "at most 2^28 positions", error);
  }
  return DFLASH_OK;
}

static DflashStatus expand(const Context *context, int64_t **tap_row, DflashError *error) {
  *tap_row = NULL;
  if (context->len == 0) return DFLASH_OK;
  int64_t *rows = malloc((size_t)context->len * sizeof *rows);
  if (!rows)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a context of %" PRId64 " positions",
                            context->len);
  int64_t at = 0;
  for (int64_t s = 0; s < context->count; s++)
    for (int64_t i = 0; i < context->segments[s].rows; i++) rows[at++] = context->segments[s].first_row + i;
  *tap_row = rows;
  return DFLASH_OK;
}

static int64_t find_last_push(const DflashContextOp *ops, int64_t count) {
  for (int64_t i = count - 1; i >= 0; i--)
    if (ops[i].op == DFLASH_OP_PUSH) return ops[i].n_rows > 0 ? i : -1;
  return -1;
}

DflashStatus dflash_context_replay(const DflashContextOp *ops, int64_t count, int64_t *first, int64_t *len,
                                   int64_t **tap_row, int64_t *last_push, DflashError *error) {
  if (tap_row) *tap_row = NULL;
  if (count < 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%" PRId64 " context operations", count);
  Context context = {.segments = dflash_alloc((size_t)count, sizeof *context.segments)};
  if (!context.segments)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for %" PRId64 " context operations", count);
  DflashStatus status = run(&context, ops, count, error);
  if (status == DFLASH_OK && tap_row) status = expand(&context, tap_row, error);
  if (status == DFLASH_OK) {
    *first = context.first;
    *len = context.len;
    if (last_push) *last_push = find_last_push(ops, count);
  }
  free(context.segments);
  return status;
}
