/* What the files of a block share beside the sequence. */
#ifndef DFLASH_VULKAN_BLOCK_H
#define DFLASH_VULKAN_BLOCK_H

#include "sequence.h"

uint64_t vulkan_now_ns(void); /* CLOCK_MONOTONIC */

#endif
