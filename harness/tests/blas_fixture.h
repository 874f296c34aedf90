/* A small model drawn for the tests of the blas backend, and the backend as loaded. */
#ifndef BLAS_FIXTURE_H
#define BLAS_FIXTURE_H

#include <stdint.h>

#include "dflash/backend.h"

enum { MODEL_LAYERS_MAX = 3, MODEL_TENSORS_MAX = 64 };

/* What is drawn: sizes, and the storage of every matrix (-1: one of the five in turn). */
typedef struct ModelPlan {
  const char *name;
  int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, block, conv_group, conv_kernel, rank, top,
      taps, window;
  int32_t storage;
} ModelPlan;

typedef struct TestModel {
  DflashGeometry geometry;
  DflashWeights weights;
  DflashLayerWeights layers[MODEL_LAYERS_MAX];
  float inv_freq[256];
  void *owned[MODEL_TENSORS_MAX];
  int owned_count;
} TestModel;

const DflashBackend *load_blas(void);
void draw_model(TestModel *model, const ModelPlan *plan, uint64_t seed);
void free_model(TestModel *model);

/* Opens with options as key, value, ..., NULL. Fails the test when that fails. */
DflashModel *open_model(const DflashBackend *blas, const TestModel *model, const char *const *options);
DflashSequence *open_sequence(const DflashBackend *blas, DflashModel *model, uint32_t flags);

/* Numbers of about unit size, the same for equal seeds. */
void draw_floats(float *out, int64_t count, uint64_t seed);
/* The row that the target hands over for a position. */
void draw_taps(const TestModel *model, int64_t position, int64_t rows, uint64_t seed, float *out);

/* One block's buffers. */
typedef struct BlockOutput {
  int32_t chosen[64], plain[64], candidates[4096];
  float scores[4096];
  float *logits, *selector_hidden;
  DflashTokens tokens;
} BlockOutput;

void open_output(BlockOutput *output, const DflashGeometry *geometry);
void close_output(BlockOutput *output);
DflashBlockCall block_call(const DflashGeometry *geometry, int64_t anchor, int64_t rows, const float *h,
                           BlockOutput *output);

#endif
