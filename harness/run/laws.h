/* Laws: what must hold whatever a golden says. Each adds one verdict, or none where the case cannot show it. */
#ifndef DFLASH_RUN_LAWS_H
#define DFLASH_RUN_LAWS_H

#include "run/case_run.h"

/* `again` is a product of the case, whose arrays the law may overwrite. */
void dflash_law_pushes(DflashCaseRun *run, DflashProduct *again); /* one push = many = single rows */
void dflash_law_rewind(DflashCaseRun *run, DflashProduct *again); /* a rewind = never having gone further */
/* A small block, pushes, then the block, on one sequence: as drafting goes = as if the small block had not been. */
void dflash_law_rounds(DflashCaseRun *run, DflashProduct *again);
void dflash_law_let_go(DflashCaseRun *run, DflashProduct *again); /* rows that no window reaches do not matter */
/* A block cut to its first rows: what comes before the first attention is that of the whole block's rows; every stage
 * is recomputed from its own inputs or, in a large model, attention, which sees every row, is not the whole block's. */
void dflash_law_cut(DflashCaseRun *run);
/* Matrix stages alone: inputs times 2^14 and 2^-14 give outputs times the same. */
void dflash_law_linear(DflashCaseRun *run, DflashSequence *sequence);

/* A new verdict of this name in the chain; the parent is told. */
DflashVerdict *dflash_law_begin(DflashCaseRun *run, int mode, const char *name);
/* One block on a sequence of the case that captures nothing, into again's tokens, logits and selector rows. outputs: 0
 * asks for nothing but chosen and plain tokens, 1 for everything. */
DflashStatus dflash_law_block(DflashCaseRun *run, DflashSequence *sequence, DflashProduct *again, bool outputs,
                              DflashError *error);
/* Judges what dflash_law_block gave: guard bands, tokens and, with outputs, logits and selector rows. The verdict
 * becomes a failure, or a pass with the note `right`. */
void dflash_law_judge(DflashCaseRun *run, DflashVerdict *verdict, const DflashProduct *again, bool outputs,
                      const char *what);

/* The call of a stage alone on golden inputs; false when the case lacks one. */
bool dflash_alone_call(const DflashCaseRun *run, int32_t stage, int64_t layer, DflashStageCall *call);

#endif
