/* What only shows from the second block of a sequence on, or when little is asked for. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_rounds.h"
#include "base/error.h"

/* fault_data: the length at the first block. */
DflashStatus fault_visible_first_length(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                        int64_t *first, int64_t *len, const float **k, const float **v,
                                        DflashError *error) {
  int64_t *length = sequence->fault_data;
  (void)call, (void)layer, (void)first, (void)k, (void)v;
  if (length == NULL) {
    length = malloc(sizeof *length);
    if (length == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a length");
    *length = *len;
    sequence->fault_data = length;
  }
  if (*len > *length) *len = *length;
  return DFLASH_OK;
}

DflashStatus fault_block_without_lists(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = fault_block(sequence, call, error);
  if (status == DFLASH_OK && call->tokens->candidates == NULL)
    memcpy(call->tokens->chosen, call->tokens->plain, (size_t)call->n_draft * sizeof *call->tokens->chosen);
  return status;
}
