/* Only the second block of a sequence that captures nothing is wrong. */
#include "harness/tests/plugins/plugin.h"

static const DflashSequence *plain;
static int plain_blocks;

static DflashStatus open_sequence(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  DflashStatus status = reference_backend.sequence_open(model, desc, sequence, error);
  if (status == DFLASH_OK && *sequence == plain) plain = NULL; /* the memory of one that was closed */
  if (status == DFLASH_OK && (desc->flags & DFLASH_SEQUENCE_CAPTURE) == 0) {
    plain = *sequence;
    plain_blocks = 0;
  }
  return status;
}

static DflashStatus block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = reference_backend.block(sequence, call, error);
  if (status == DFLASH_OK && sequence == plain && ++plain_blocks > 1) call->tokens->chosen[0] ^= 1;
  return status;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("second-plain");
  backend.sequence_open = open_sequence;
  backend.block = block;
  return &backend;
}
