/* What a pattern usually comes from, by the kind of stage. The first row that matches counts. */
#include "compare/pattern.h"
#include "model/stage_table.h"

enum { KIND_ANY, KIND_MATRIX, KIND_KERNEL, KIND_NORM, KIND_CONV, KIND_ROTATE, KIND_ATTENTION, KIND_ACT };

static int stage_kind(int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    return KIND_NORM;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_OUT:
    return KIND_CONV;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    return KIND_ROTATE;
  case DFLASH_STAGE_ATTN_MIX:
    return KIND_ATTENTION;
  case DFLASH_STAGE_MLP_ACT:
    return KIND_ACT;
  case DFLASH_STAGE_ATTN_KERNEL:
  case DFLASH_STAGE_MLP_KERNEL:
    return KIND_KERNEL;
  default:
    return KIND_MATRIX;
  }
}

enum { ANY = -1, BY_ANY = -1 };

typedef struct Cause {
  int relation, rows, columns, by, kind; /* ANY, KIND_ANY: whatever it is */
  const char *text;
} Cause;

#define RELATION(relation, kind, text) \
  { DFLASH_RELATION_##relation, ANY, ANY, BY_ANY, KIND_##kind, text }
#define ROWS(rows, kind, text) \
  { DFLASH_RELATION_NONE, DFLASH_SPAN_##rows, DFLASH_SPAN_ALL, BY_ANY, KIND_##kind, text }
#define COLUMNS(columns, by, kind, text) \
  { DFLASH_RELATION_NONE, ANY, DFLASH_SPAN_##columns, DFLASH_BY_##by, KIND_##kind, text }

static const Cause causes[] = {
    RELATION(ZERO, ANY, "never computed, masked, or added to nothing"),
    RELATION(NEGATED, ROTATE, "sine with the wrong sign"),
    RELATION(NEGATED, ANY, "a subtraction the wrong way round"),
    RELATION(FACTOR, ATTENTION, "softmax not normalised, or V scaled twice"),
    RELATION(FACTOR, NORM, "sum in place of mean, or the norm's weight applied twice or not at all"),
    RELATION(FACTOR, ANY, "a scale applied twice or missing"),
    RELATION(OFFSET, MATRIX, "zero point or bias of the storage"),
    RELATION(OFFSET, ANY, "something added that does not belong there"),
    RELATION(CLIPPED, ANY, "saturation of a narrow type"),
    RELATION(ROW_SHIFT, CONV, "the taps of the convolution shifted by one row"),
    RELATION(ROW_SHIFT, ANY, "rows counted from the wrong one: positions or a copy off by one"),
    RELATION(SHIFT, ANY, "a column index off by one"),
    RELATION(HALVES, ROTATE, "rotary pairing: lower and upper half exchanged"),
    RELATION(HALVES, ANY, "two joined matrices or halves in the wrong order (gate and up)"),
    RELATION(INTERLEAVE, ANY, "rotary pairing: neighbours taken for halves, or the reverse"),
    RELATION(PAIRS, ANY, "order within a packed pair: nibbles, two f16 in a word"),
    RELATION(TAPS, ANY, "layout of the kernel: [side][tap][group]"),
    RELATION(TRANSPOSED, ANY, "layout: two axes exchanged when written or read"),
    RELATION(ROW, ANY, "row index: stale, broadcast, or of another sequence"),
    RELATION(UNIT, ATTENTION, "kv head index: query head a reads kv head a / rep"),
    RELATION(UNIT, ANY, "index of the head or group"),
    RELATION(OUTLIERS, ANY, "overflow or saturation of a narrow type"),
    ROWS(HEAD, CONV, "taps in reverse or read ahead (rows that are alike hide it in the others)"),
    ROWS(FEW, CONV, "taps in reverse or read ahead (rows that are alike hide it in the others)"),
    ROWS(ONE, CONV, "an edge of the block: taps before its start, or rows of another block"),
    ROWS(TAIL, CONV, "an earlier row's value or coefficient: the first row has none"),
    ROWS(TAIL, ATTENTION, "the window or the last rows of the block"),
    ROWS(TAIL, ANY, "the remainder of a row tile, or a ring or growing buffer"),
    ROWS(STEP, ANY, "a row tile: one lane or one block of it"),
    ROWS(ONE, ANY, "one row: an edge of the block, or a race"),
    COLUMNS(TAIL, COLUMN, ANY, "a reduction or tile that loses its remainder"),
    COLUMNS(TAIL, UNIT, ANY, "a tile that loses its remainder"),
    COLUMNS(STEP, COLUMN, ANY, "order within a packed pair, or one lane of a tile"),
    COLUMNS(ONE, UNIT, ATTENTION, "kv head index, or one head's softmax"),
    COLUMNS(STEP, UNIT, ATTENTION, "kv head index: query head a reads kv head a / rep"),
    COLUMNS(FEW, UNIT, ATTENTION, "kv head index: query head a reads kv head a / rep"),
    COLUMNS(RANGE, UNIT, ATTENTION, "kv head index: query head a reads kv head a / rep"),
    COLUMNS(ONE, UNIT, KERNEL, "one tap or side of the kernel"),
    COLUMNS(ONE, UNIT, CONV, "the coefficient's group index"),
    COLUMNS(TAIL, MEMBER, ROTATE, "rotary pairing, or the upper half not rotated"),
    COLUMNS(HEAD, MEMBER, ROTATE, "rotary pairing, or the lower half not rotated"),
};

/* Most elements, with no shape and no relation: what such a stage gets wrong as a whole. */
static const char *const whole_causes[] = {
    [KIND_ANY] = "",
    [KIND_MATRIX] = "the wrong input or weights, their scales, or a sum of too few bits",
    [KIND_KERNEL] = "the wrong input, weights or layout",
    [KIND_NORM] = "the gain, eps, the axis of the mean, or the wrong input",
    [KIND_CONV] = "taps in another order or row, the kernel's side, base or group, or the wrong input",
    [KIND_ROTATE] = "positions, angles or pairing of the rotation, or the gain before it",
    [KIND_ATTENTION] = "the keys that a row sees, or the scale of the scores",
    [KIND_ACT] = "silu on the wrong operand, or an approximation of it",
};

static bool matches(const Cause *c, const DflashShape *shape, int relation, int kind) {
  return c->relation == relation && (c->kind == KIND_ANY || c->kind == kind) &&
         (c->rows == ANY || c->rows == shape->rows) && (c->columns == ANY || c->columns == shape->columns) &&
         (c->by == BY_ANY || c->by == shape->by);
}

const char *dflash_pattern_cause(int32_t stage, const DflashShape *shape, int relation) {
  int kind = stage_kind(stage);
  for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
    if (matches(&causes[i], shape, relation, kind)) return causes[i].text;
  bool whole = shape->most && shape->rows == DFLASH_SPAN_ALL && shape->columns == DFLASH_SPAN_ALL;
  return whole && relation == DFLASH_RELATION_NONE ? whole_causes[kind] : "";
}
