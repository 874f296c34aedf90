/* Context operations one by one. Private to this module; dflash_context_replay stands in model/case.h. */
#ifndef DFLASH_MODEL_CONTEXT_H
#define DFLASH_MODEL_CONTEXT_H

#include "model/case.h"

#define DFLASH_LAST_POSITION ((int64_t)1 << 62) /* positions up to here; sums with lengths stay below 2^63 */

/* An operation's own ranges: kind, positions, rows. `index` is for the message. */
DflashStatus dflash_context_check_op(const DflashContextOp *op, int64_t index, DflashError *error);

#endif
