/* One case of a golden: what goes in, and the values and error scales that come out. */
#ifndef DFLASH_MODEL_CASE_H
#define DFLASH_MODEL_CASE_H

#include <stdbool.h>

#include "dflash/geometry.h"
#include "dflash/stages.h"
#include "dflash/status.h"
#include "model/stage_table.h"

enum { DFLASH_OP_PUSH = 0, DFLASH_OP_TRUNCATE = 1, DFLASH_OP_RESET = 2 };

typedef struct DflashContextOp {
  int32_t op;
  int64_t pos;
  int64_t first_row, n_rows; /* of taps; push only */
} DflashContextOp;

/* A stage's value with its error scales (standard deviations). Pointers are NULL when absent. Rows and width
 * as dflash_stage_rows/width. `owned` arrays are freed with the case, others belong to a mapped file. */
typedef struct DflashValue {
  float *data;
  float *alone; /* sigma when the inputs are exactly golden; 0 where every sum is exact */
  float *chain; /* sigma when the inputs carry the chain's errors */
  int64_t rows, width;
  bool data_owned, alone_owned, chain_owned;
} DflashValue;

typedef struct DflashTokensValue {
  int32_t *chosen, *plain; /* [n_draft] */
  int32_t *candidates;     /* [n_draft, selector_top] */
  double *scores;          /* [n_draft, selector_top] */
  float *alone, *chain;    /* sigma of the scores */
} DflashTokensValue;       /* all owned */

typedef struct DflashCase {
  char *name;
  int64_t anchor_pos, anchor_token;
  DflashRunSizes sizes;
  DflashContextOp *ops;
  int64_t op_count;
  float *taps; /* [tap_rows, tap_width] */
  int64_t tap_rows;
  float *h; /* [rows, hidden] */
  bool taps_owned, h_owned;
  bool exact; /* made of exact data: sums are tested for exactness, and exact ones get sigma 0 */
  int64_t context_first;
  DflashValue *held_k, *held_v; /* [layers] */
  DflashValue *stages;          /* [DFLASH_STAGE_COUNT * layers], see dflash_case_value */
  DflashValue *stages_i8;       /* the same for profile i8, or NULL */
  DflashTokensValue tokens;
  int64_t layers;
  int32_t profile; /* DFLASH_PROFILE_* of stages, held_k, held_v, tokens and all scales; a case is read as EXACT */
} DflashCase;

/* Allocates the arrays of values (not the values). */
DflashStatus dflash_case_open(DflashCase *c, const DflashGeometry *geometry, const char *name, DflashError *error);
void dflash_case_close(DflashCase *c);
/* Drops every error scale, so that it is computed anew. */
void dflash_case_forget_scales(DflashCase *c);
/* Turns a case of profile exact into one of another profile. All scales are dropped. F16 and BF16 keep the values. I8
 * takes stages_i8's values where the case has them (a stage that is not among them is the exact one's); context state
 * and tokens, and without stages_i8 every stage that a q4tp matrix can reach, are dropped: dflash_evaluate_case fills
 * them. */
DflashStatus dflash_case_to_profile(DflashCase *c, const DflashGeometry *geometry, int32_t profile, DflashError *error);
/* The place of a stage's value; for RESIDUAL (layer 0), TAPS, HELD_K, HELD_V use the members above. */
DflashValue *dflash_case_value(const DflashCase *c, int32_t stage, int64_t layer);

/* Ranges, ops against tap_rows, tokens below vocab, sizes against the geometry; DFLASH_INVALID_DATA names what. */
DflashStatus dflash_case_check(const DflashCase *c, const DflashGeometry *geometry, DflashError *error);

/* What the context holds after ops: first, len and, for each held position, the row of taps that made it
 * (malloc'ed, free() releases; NULL when len is 0). last_push: index into ops of the last push; -1 when there was
 * none or it brought no rows. tap_row and last_push may be NULL. Refuses positions beyond 2^62 and lengths that no
 * golden has before anything of that size is allocated; takes time and memory in proportion to count and len. */
DflashStatus dflash_context_replay(const DflashContextOp *ops, int64_t count, int64_t *first, int64_t *len,
                                   int64_t **tap_row, int64_t *last_push, DflashError *error);

#endif
