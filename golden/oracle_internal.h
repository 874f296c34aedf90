/* The stages' own functions; dflash_oracle_stage has checked the call. */
#ifndef DFLASH_GOLDEN_ORACLE_INTERNAL_H
#define DFLASH_GOLDEN_ORACLE_INTERNAL_H

#include "golden/oracle.h"

DflashStatus dflash_oracle_matrix(const DflashOracleCall *call, DflashError *error);
DflashStatus dflash_oracle_matrix_i8(const DflashOracleCall *call, DflashError *error); /* a q4tp matrix */
DflashStatus dflash_oracle_norm(const DflashOracleCall *call, DflashError *error);      /* rows of hidden */
DflashStatus dflash_oracle_head_norm(const DflashOracleCall *call, DflashError *error); /* heads, rotated */
DflashStatus dflash_oracle_conv(const DflashOracleCall *call, DflashError *error);      /* conv_in and out */
DflashStatus dflash_oracle_attention(const DflashOracleCall *call, DflashError *error);
DflashStatus dflash_oracle_act(const DflashOracleCall *call, DflashError *error);

static inline bool dflash_oracle_scaled(const DflashOracleCall *call) { return call->alone || call->chain; }

/* Writes one element: the value, its own variance, and the variance that its inputs bring. Where the sums are
 * exact the element has no error of its own, unless its inputs vary. */
void dflash_oracle_put(const DflashOracleCall *call, int64_t at, double value, double own, double inherited,
                       bool exact);

#endif
