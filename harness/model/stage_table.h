/* What follows from a row of DFLASH_STAGES: names, shapes, inputs, bytes, operations. */
#ifndef DFLASH_MODEL_STAGE_TABLE_H
#define DFLASH_MODEL_STAGE_TABLE_H

#include "dflash/geometry.h"
#include "dflash/stages.h"

typedef struct DflashStageRow {
  const char *name;
  int32_t scope, group, rows, width;   /* DFLASH_SCOPE_*, DFLASH_GROUP_*, DFLASH_ROWS_*, DFLASH_WIDTH_* */
  int32_t inputs[DFLASH_STAGE_INPUTS]; /* DFLASH_STAGE_*, DFLASH_STAGE_NONE after the last */
} DflashStageRow;

const DflashStageRow *dflash_stage_row(int32_t stage); /* NULL when out of range */
int32_t dflash_stage_find(const char *name);           /* DFLASH_STAGE_NONE when unknown */
const char *dflash_group_label(int32_t group);

/* The sizes of a run, beside the geometry. */
typedef struct DflashRunSizes {
  int64_t rows, n_draft, head_width;
  int64_t push_rows;   /* rows of the last push; 0: none */
  int64_t context_len; /* rows held */
} DflashRunSizes;

/* Layers of the stage: geometry->layers, or 1. */
int64_t dflash_stage_layers(const DflashGeometry *geometry, int32_t stage);
/* Rows and width of a stage's value, or of TAPS, RESIDUAL, LAST, HELD_K, HELD_V. */
int64_t dflash_stage_rows(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage);
int64_t dflash_stage_width(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage);
/* Full shape, as in a golden file (context.k is [rows, kv_heads, head_dim]); returns the rank. */
int dflash_stage_shape(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage, int64_t shape[3]);

/* The stage and layer that input `index` of a stage comes from: RESIDUAL becomes mlp.out of layer - 1, or
 * stays RESIDUAL at layer 0 (the block's embeddings); LAST becomes mlp.out of the last layer. */
int32_t dflash_stage_source(const DflashGeometry *geometry, int32_t stage, int64_t layer, int index,
                            int64_t *source_layer);

/* Every value in data-flow order: context stages, then layer by layer, then the end. Fills *stage and *layer
 * of entry `index`, returns 0 past the last. */
int dflash_stage_walk(const DflashGeometry *geometry, int64_t index, int32_t *stage, int64_t *layer);

/* The name with its layer, as reports and goldens write it: "attn.norm/3", "final.norm". At most 63 bytes. */
const char *dflash_stage_label(int32_t stage, int64_t layer, char text[64]);

/* Bytes of activations read and written (each input once, f32) and operations (multiply and add are two)
 * of one layer's stage. Weights: dflash_stage_weight_elements times the storage's width. Attention counts the
 * context rows that a window lets a row see, at anchor_pos == first + len. */
int64_t dflash_stage_activation_bytes(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage,
                                      int64_t layer);
int64_t dflash_stage_weight_elements(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage);
double dflash_stage_operations(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage,
                               int64_t layer);

/* 1 for a plain matrix product (fc, projections, kernels, gate, up, down, head, selector.hidden). */
int dflash_stage_is_matrix(int32_t stage);

#endif
