/* got as the golden's values in other places, by one rule for all of them. */
#include <stdio.h>

#include "compare/relation.h"
#include "model/stage_table.h"

enum { MOVE_SHIFT, MOVE_REVERSE, MOVE_TRANSPOSE };

/* SHIFT: from a rows and b columns before. REVERSE: in every run of a blocks of c columns, the blocks stand in reverse.
 * TRANSPOSE: what should be [a][b][c] stands as [b][a][c]; whole: over the value, not within a row. */
typedef struct Move {
  int kind;
  int64_t a, b, c;
  bool whole;
  int relation;
  const char *text;
} Move;

typedef struct Moves {
  Move at[32];
  int count;
} Moves;

static void add_move(Moves *moves, Move move) { moves->at[moves->count++] = move; }

static void add_reverse(Moves *moves, int64_t a, int64_t c, int relation, const char *text) {
  if (a > 1 && c > 0) add_move(moves, (Move){MOVE_REVERSE, a, 1, c, false, relation, text});
}

static void add_transpose(Moves *moves, int64_t a, int64_t b, int64_t c, int relation, const char *text) {
  if (a > 1 && b > 1) add_move(moves, (Move){MOVE_TRANSPOSE, a, b, c, false, relation, text});
}

static void add_shifts(Moves *moves, bool rows) {
  add_move(moves, (Move){MOVE_SHIFT, 0, 1, 0, false, DFLASH_RELATION_SHIFT, "each column is golden's column before"});
  add_move(moves, (Move){MOVE_SHIFT, 0, -1, 0, false, DFLASH_RELATION_SHIFT, "each column is golden's column after"});
  if (!rows) return;
  add_move(moves, (Move){MOVE_SHIFT, 1, 0, 0, false, DFLASH_RELATION_ROW_SHIFT, "each row is golden's row before"});
  add_move(moves, (Move){MOVE_SHIFT, -1, 0, 0, false, DFLASH_RELATION_ROW_SHIFT, "each row is golden's row after"});
}

static void add_heads(Moves *moves, const DflashGeometry *g, bool queries) {
  int64_t dim = g->head_dim, heads = queries ? g->heads : g->kv_heads, rep = dflash_geometry_rep(g);
  enum { HALVES = DFLASH_RELATION_HALVES, INTERLEAVE = DFLASH_RELATION_INTERLEAVE, AXES = DFLASH_RELATION_TRANSPOSED };
  add_reverse(moves, 2, dim / 2, HALVES, "halves of each head exchanged");
  add_transpose(moves, 2, dim / 2, 1, INTERLEAVE, "halves of each head stand as pairs");
  add_transpose(moves, dim / 2, 2, 1, INTERLEAVE, "pairs of each head stand as halves");
  add_transpose(moves, heads, dim, 1, AXES, "[head][channel] stands as [channel][head]");
  add_transpose(moves, dim, heads, 1, AXES, "[head][channel] was read as [channel][head]");
  if (!queries) return;
  add_transpose(moves, g->kv_heads, rep, dim, DFLASH_RELATION_UNIT, "heads stand by rep first, kv head second");
  add_transpose(moves, rep, g->kv_heads, dim, DFLASH_RELATION_UNIT, "heads were taken by rep first, kv head second");
}

static void add_kernel(Moves *moves, const DflashGeometry *g) {
  int64_t taps = g->conv_kernel, groups = dflash_geometry_groups(g);
  add_reverse(moves, 2, taps * groups, DFLASH_RELATION_TAPS, "sides exchanged");
  add_reverse(moves, taps, groups, DFLASH_RELATION_TAPS, "taps in reverse");
  add_transpose(moves, 2, taps, groups, DFLASH_RELATION_TAPS, "[side][tap] stands as [tap][side]");
  add_transpose(moves, taps, 2, groups, DFLASH_RELATION_TAPS, "[side][tap] was read as [tap][side]");
  add_transpose(moves, taps, groups, 1, DFLASH_RELATION_TRANSPOSED, "[tap][group] stands as [group][tap]");
  add_transpose(moves, groups, taps, 1, DFLASH_RELATION_TRANSPOSED, "[tap][group] was read as [group][tap]");
}

static void list_moves(Moves *moves, const DflashCompareCall *call) {
  const DflashGeometry *g = call->geometry;
  int32_t kind = dflash_stage_row(call->stage)->width;
  int64_t rows = call->rows, width = call->width;
  const bool all_rows = call->row_ids == NULL; /* else neighbours in the call are none in the value */
  add_shifts(moves, all_rows);
  if (kind == DFLASH_WIDTH_Q || kind == DFLASH_WIDTH_KV) add_heads(moves, g, kind == DFLASH_WIDTH_Q);
  if (kind == DFLASH_WIDTH_KERNEL) add_kernel(moves, g);
  if (width % 2 == 0) {
    add_reverse(moves, 2, width / 2, DFLASH_RELATION_HALVES, "halves of each row exchanged");
    add_reverse(moves, 2, 1, DFLASH_RELATION_PAIRS, "neighbouring columns exchanged");
    add_transpose(moves, 2, width / 2, 1, DFLASH_RELATION_INTERLEAVE, "halves of each row stand as pairs");
    add_transpose(moves, width / 2, 2, 1, DFLASH_RELATION_INTERLEAVE, "pairs of each row stand as halves");
  }
  if (!all_rows || rows < 2 || width < 2) return;
  add_move(moves,
           (Move){MOVE_TRANSPOSE, rows, width, 1, true, DFLASH_RELATION_TRANSPOSED, "rows and columns exchanged"});
  add_move(moves, (Move){MOVE_TRANSPOSE, width, rows, 1, true, DFLASH_RELATION_TRANSPOSED,
                         "read with rows and columns exchanged"});
}

/* Where the element at `at` (of a row, or of the value) comes from; -1: from nowhere. */
static int64_t reversed(const Move *m, int64_t at) {
  int64_t block = at / m->c, run = block / m->a * m->a;
  return (run + m->a - 1 - (block - run)) * m->c + at % m->c;
}

static int64_t transposed(const Move *m, int64_t at) {
  int64_t size = m->a * m->b * m->c, run = at / size * size;
  int64_t block = (at - run) / m->c, inner = at % m->c;
  return run + (block % m->a * m->b + block / m->a) * m->c + inner;
}

static int64_t source_of(const Move *m, const DflashCompareCall *call, int64_t at) {
  int64_t row = at / call->width, col = at % call->width, from = -1;
  if (m->kind == MOVE_SHIFT) {
    row -= m->a;
    col -= m->b;
    return row < 0 || row >= call->rows || col < 0 || col >= call->width ? -1 : row * call->width + col;
  }
  if (m->whole) {
    from = transposed(m, at);
    return from < call->rows * call->width ? from : -1;
  }
  from = m->kind == MOVE_REVERSE ? reversed(m, col) : transposed(m, col);
  return from < call->width ? row * call->width + from : -1;
}

static bool fits_move(const DflashBadSample *sample, const Move *move) {
  DflashTrial trial = {0};
  for (int64_t i = 0; i < sample->count && !dflash_trial_failed(&trial); i++) {
    int64_t from = source_of(move, sample->call, sample->at[i]);
    if (from < 0) continue;
    dflash_trial_add(&trial, sample, sample->at[i], (double)sample->call->golden[from],
                     dflash_sample_sigma(sample, from));
  }
  return dflash_trial_convinces(&trial, sample->count);
}

int dflash_relation_places(const DflashBadSample *sample, char *text, size_t size) {
  Moves moves = {.count = 0};
  list_moves(&moves, sample->call);
  for (int i = 0; i < moves.count; i++) {
    if (!fits_move(sample, &moves.at[i])) continue;
    snprintf(text, size, "%s", moves.at[i].text);
    return moves.at[i].relation;
  }
  return DFLASH_RELATION_NONE;
}
