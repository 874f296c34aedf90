/* The list of a drafter's tensors: one place for names, shapes and kinds. */
#ifndef DFLASH_MODEL_WEIGHTS_H
#define DFLASH_MODEL_WEIGHTS_H

#include "dflash/geometry.h"
#include "dflash/status.h"
#include "dflash/tensor.h"

enum { DFLASH_KIND_VECTOR, DFLASH_KIND_BASE, DFLASH_KIND_MATRIX, DFLASH_KIND_CODEBOOK };

typedef struct DflashWeightEntry {
  char name[96]; /* as in files, without prefix: "layers.2.self_attn.q_proj.weight" */
  int kind;      /* DFLASH_KIND_* */
  int32_t rank;
  int64_t shape[3];
  int32_t sidecar_storage; /* what a published sidecar uses for it */
} DflashWeightEntry;

/* Tensors of a geometry, the head not among them: 6 + 15 * layers. */
int64_t dflash_weight_count(const DflashGeometry *geometry);
void dflash_weight_entry(const DflashGeometry *geometry, int64_t index, DflashWeightEntry *entry);
/* The entry of the head, "lm_head.weight": [vocab, hidden], q8_2f in a published target. */
void dflash_weight_head_entry(const DflashGeometry *geometry, DflashWeightEntry *entry);

/* A set of weights that owns its layer array (not the data that tensors point at). */
typedef struct DflashWeightSet {
  DflashWeights weights;
  DflashLayerWeights *layers;
  float *inv_freq; /* owned */
} DflashWeightSet;

/* Tensors are all zero (absent), inv_freq is computed. A head_dim above 2^24 is refused: DFLASH_UNSUPPORTED. */
DflashStatus dflash_weight_set_open(const DflashGeometry *geometry, DflashWeightSet *set, DflashError *error);
void dflash_weight_set_close(DflashWeightSet *set);
DflashTensor *dflash_weight_at(const DflashGeometry *geometry, DflashWeightSet *set, int64_t index);

/* Kind, storage, rank, shape and bytes of a found tensor against its entry (not the values). */
DflashStatus dflash_weight_check(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error);

/* The matrix (or vector) that a stage multiplies by: its tensor in `weights`; NULL when it has none.
 * attn.out gives attention_conv_base, context.norm hidden_norm, and so on: the first weight that it reads. */
const DflashTensor *dflash_stage_weight(const DflashWeights *weights, int32_t stage, int64_t layer);

#endif
