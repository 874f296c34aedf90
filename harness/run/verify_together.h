/* Several cases of one model at the same time: a sequence each, their operations and blocks in turn. */
#ifndef DFLASH_RUN_VERIFY_TOGETHER_H
#define DFLASH_RUN_VERIFY_TOGETHER_H

#include "run/session.h"
#include "run/verdict.h"

/* Opens a sequence for each of the session's first `count` cases in memory, applies their operations one each in turn,
 * runs every block, then every block again in reverse order. Adds a verdict "together" per case: context and tokens
 * against its golden by the chain's scale, and the second block's bits against the first's. */
DflashStatus dflash_verify_together(DflashSession *session, int64_t count, DflashVerdicts *verdicts,
                                    DflashError *error);

#endif
