/* The rotary part of a checkpoint's configuration. */
#ifndef DFLASH_MODEL_CHECKPOINT_ROPE_H
#define DFLASH_MODEL_CHECKPOINT_ROPE_H

#include "dflash/status.h"

struct cJSON;

/* rope_parameters.rope_theta or rope_theta. A type other than default and a partial rotary factor are refused,
 * wherever they stand: top level, rope_parameters, rope_scaling or dflash_config. */
DflashStatus dflash_checkpoint_rope(const struct cJSON *root, double *theta, DflashError *error);

#endif
