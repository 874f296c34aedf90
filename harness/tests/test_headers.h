/* Places of members that both languages report. */
#ifndef DFLASH_TESTS_HEADERS_H
#define DFLASH_TESTS_HEADERS_H

#include "dflash/backend.h"

#define HEADER_LAYOUT                                                                                          \
  sizeof(DflashGeometry), sizeof(DflashTensor), sizeof(DflashLayerWeights), sizeof(DflashWeights),             \
      sizeof(DflashError), sizeof(DflashDevice), sizeof(DflashModelDesc), sizeof(DflashStageInfo),             \
      sizeof(DflashModelInfo), sizeof(DflashSequenceDesc), sizeof(DflashTokens), sizeof(DflashBlockCall),      \
      sizeof(DflashStageCall), sizeof(DflashSpan), sizeof(DflashBlockTime), sizeof(DflashDeviceState),         \
      sizeof(DflashBackend), offsetof(DflashGeometry, rope_theta), offsetof(DflashGeometry, no_rope),          \
      offsetof(DflashWeights, layers), offsetof(DflashLayerWeights, mlp_conv_kernel),                          \
      offsetof(DflashStageCall, inputs), offsetof(DflashStageCall, tokens), offsetof(DflashBlockCall, tokens), \
      offsetof(DflashBackend, devices), offsetof(DflashBackend, block), offsetof(DflashBackend, poison)

#ifdef __cplusplus
extern "C" {
#endif
const size_t *cxx_layout(size_t *count);
#ifdef __cplusplus
}
#endif
#endif
