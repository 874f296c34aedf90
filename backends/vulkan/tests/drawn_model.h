/* A small model, drawn: geometry, weights, and the backend's model of it. */
#ifndef DFLASH_VULKAN_TESTS_DRAWN_MODEL_H
#define DFLASH_VULKAN_TESTS_DRAWN_MODEL_H

#include "sequence.h"

enum { DRAWN_LAYERS_MAX = 4, DRAWN_TENSORS_MAX = 80, DRAWN_IN_TURN = -1 };

/* Sizes, and the storage of the matrices: one of them, or the five in turn. Layer 0 sees all, the others `window`; the
 * last one is not rotated where there is more than one. */
typedef struct DrawnPlan {
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, block, conv_group, conv_kernel, rank, top,
      taps, window;
  int32_t storage;
} DrawnPlan;

typedef struct DrawnModel {
  DflashGeometry geometry;
  DflashWeights weights;
  DflashLayerWeights layers[DRAWN_LAYERS_MAX];
  float inv_freq[128];
  void *owned[DRAWN_TENSORS_MAX];
  int owned_count;
} DrawnModel;

void drawn_model_open(DrawnModel *drawn, const DrawnPlan *plan, uint64_t seed);
void drawn_model_close(DrawnModel *drawn);

/* A stored matrix of drawn values; it belongs to the drawn model. */
DflashTensor drawn_tensor(DrawnModel *drawn, int32_t storage, int64_t rows, int64_t cols, uint64_t seed);
/* Taps of the row at a position, the same for equal seeds. */
void drawn_taps(const DrawnModel *drawn, int64_t position, int64_t rows, uint64_t seed, float *taps);

DflashModelDesc drawn_desc(const DrawnModel *drawn, int32_t profile, const DflashOption *options, uint32_t count);
/* With validation. Ends the program with TEST_SKIPPED and the reason where there is no device. */
DflashModel *drawn_open(const DrawnModel *drawn, int32_t profile, const DflashOption *options, uint32_t count);

#endif
