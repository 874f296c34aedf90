/* One case under verification, shared by the modes. */
#ifndef DFLASH_RUN_CASE_RUN_H
#define DFLASH_RUN_CASE_RUN_H

#include "golden/oracle.h"
#include "run/session.h"
#include "run/verdict.h"

/* Token arrays with guard bands and poison, as a backend sees them. */
typedef struct DflashTokenBuffers {
  DflashGuarded chosen, plain, candidates, scores;
  DflashTokens tokens;
} DflashTokenBuffers;

bool dflash_token_buffers_open(DflashTokenBuffers *buffers, const DflashGeometry *geometry, int64_t n_draft);
void dflash_token_buffers_poison(DflashTokenBuffers *buffers);
int64_t dflash_token_buffers_damage(const DflashTokenBuffers *buffers);
void dflash_token_buffers_close(DflashTokenBuffers *buffers);

/* What one production block gave: every materialised value, the context, the tokens. */
typedef struct DflashProduct {
  DflashGuarded *stages; /* [DFLASH_STAGE_COUNT * layers]; data NULL where not materialised */
  DflashGuarded *k, *v;  /* [layers], what the context holds */
  int64_t layers;
  DflashTokenBuffers tokens;
  DflashGuarded logits, selector; /* given by the block itself */
} DflashProduct;

typedef struct DflashCaseRun DflashCaseRun;
struct DflashCaseRun {
  DflashSession *session;
  DflashCase c;
  DflashVerdicts verdicts;
  int64_t sent; /* of the verdicts, to the parent */
  /* Sends the others; NULL: nobody wants them one by one. Called after each stage alone: what was found survives a
   * crash in the next one. */
  void (*send)(DflashCaseRun *run);
  unsigned modes;
  int64_t last_push;          /* index into c.ops, -1 when none */
  int64_t push_pos, push_row; /* of the last push */
  DflashStageInfo *infos;     /* [DFLASH_STAGE_COUNT * layers] */
  DflashProduct product;
  DflashSequence *sequence; /* the capturing one */
  bool brief;               /* where a stage fails, the laws, which come after all stages, are not asked any more */
  bool borrowed;            /* c belongs to the session's caller */
  bool ran;                 /* product holds a block */
  bool resumed;             /* an earlier run holds its record: nothing more was opened */
  DflashError block_error;  /* DFLASH_NONFINITE of the block, when its values are still readable */
};

/* Reads the case, computes scales that the file lacks. modes_name: what records call the modes; NULL: by their names.
 */
DflashStatus dflash_case_run_open(DflashCaseRun *run, DflashSession *session, int64_t index, const char *modes_name,
                                  DflashError *error);
void dflash_case_run_close(DflashCaseRun *run);

const DflashStageInfo *dflash_case_info(const DflashCaseRun *run, int32_t stage, int64_t layer);
/* 1 when --stage and --layer select it. */
int dflash_case_selects(const DflashCaseRun *run, int32_t stage, int64_t layer);
/* Golden data of a source (a stage, TAPS, RESIDUAL, HELD_K, HELD_V); NULL when the case has none. */
const float *dflash_case_golden(const DflashCaseRun *run, int32_t source, int64_t layer);
/* The position of row 0 of a stage. */
int64_t dflash_case_position(const DflashCaseRun *run, int32_t stage);
/* 1 when the stage's golden value exists in this case (context.* needs a push). */
int dflash_case_has(const DflashCaseRun *run, int32_t stage, int64_t layer);

/* Sequences. fill replays the operations (or loads context_state, with --context load). */
DflashStatus dflash_case_load(DflashCaseRun *run, DflashSequence *sequence, DflashError *error);
/* Context operation `index`, and what span tells after it. */
DflashStatus dflash_case_apply(const DflashCaseRun *run, DflashSequence *sequence, int64_t index, DflashError *error);
DflashStatus dflash_case_feed(DflashCaseRun *run, DflashSequence *sequence, DflashError *error);
DflashStatus dflash_case_sequence(DflashCaseRun *run, uint32_t flags, DflashSequence **sequence, DflashError *error);

/* The backend's block with the case's embeddings, of which it gets a copy. Writing into it is DFLASH_INTERNAL. */
DflashStatus dflash_case_block(const DflashCaseRun *run, DflashSequence *sequence, DflashBlockCall *call,
                               DflashError *error);

/* Fills `product` from one block of the capturing sequence. DFLASH_NONFINITE of the block is kept in
 * block_error, and the values are read all the same. Damage and unread values become verdicts. */
DflashStatus dflash_product_open(DflashCaseRun *run, DflashProduct *product, DflashError *error);
DflashStatus dflash_product_run(DflashCaseRun *run, DflashSequence *sequence, DflashProduct *product, uint32_t poison,
                                DflashError *error);
void dflash_product_close(DflashProduct *product);
/* What the product holds of the verdict's stage; NULL when it holds nothing, and the verdict says why. */
const DflashGuarded *dflash_product_judged(const DflashCaseRun *run, DflashVerdict *verdict);
/* The first guard band that a run damaged: its distance (dflash_guarded_damage), and whose in *label; 0 when whole. */
int64_t dflash_product_damage(const DflashCaseRun *run, const DflashProduct *product, char label[64]);
/* Equal bits. */
bool dflash_guarded_equal(const DflashGuarded *a, const DflashGuarded *b);
bool dflash_token_buffers_equal(const DflashTokenBuffers *a, const DflashTokenBuffers *b);
/* The first value in data-flow order whose bits differ, in *label; false when none does. */
bool dflash_product_differs(const DflashCaseRun *run, const DflashProduct *a, const DflashProduct *b, char label[64]);
/* Does this block of the case fail in the chain? The first place in *label. */
bool dflash_product_fails(DflashCaseRun *run, const DflashProduct *product, char label[64]);
const float *dflash_product_value(const DflashProduct *product, int32_t stage, int64_t layer);

/* Compares, and fills a verdict: guard bands, poison, classes, score, trust. damage: of the bands, 0 when whole. */
void dflash_case_judge(const DflashCaseRun *run, DflashVerdict *verdict, const float *got, const float *golden,
                       const float *sigma, int64_t rows, int64_t width, int64_t damage);
/* Tokens against the case's golden, by the alone or chain scale. */
void dflash_case_judge_tokens(DflashCaseRun *run, DflashVerdict *verdict, const DflashTokenBuffers *got,
                              const DflashTokensValue *golden, const float *logits, const float *logits_sigma,
                              const float *hidden, bool chain);

/* All modes of the case, one after the other; and each, which adds verdicts. */
void dflash_verify_modes(DflashCaseRun *run);
void dflash_verify_alone(DflashCaseRun *run);
void dflash_verify_production(DflashCaseRun *run); /* one block for chain and local; then the laws below */
void dflash_verify_chain(DflashCaseRun *run);
void dflash_verify_local(DflashCaseRun *run);
void dflash_verify_laws(DflashCaseRun *run); /* repeated, uncaptured, beside another sequence: equal bits */

#endif
