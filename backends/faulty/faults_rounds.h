/* Hooks of faults_rounds.c. */
#ifndef DFLASH_FAULTY_FAULTS_ROUNDS_H
#define DFLASH_FAULTY_FAULTS_ROUNDS_H

#include "backends/faulty/faulty.h"

DflashStatus fault_visible_first_length(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                        int64_t *first, int64_t *len, const float **k, const float **v,
                                        DflashError *error);
DflashStatus fault_block_without_lists(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);

#endif
