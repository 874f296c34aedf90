#include "model/weights_table.h"

#include "base/memory.h"

#define WEIGHT_ROW(type, member, name, kind, storage, d0, d1, d2) \
  {offsetof(type, member),                                        \
   name,                                                          \
   DFLASH_KIND_##kind,                                            \
   DFLASH_STORAGE_##storage,                                      \
   {DFLASH_SIZE_##d0, DFLASH_SIZE_##d1, DFLASH_SIZE_##d2}},
#define MODEL_ROW(...) WEIGHT_ROW(DflashWeights, __VA_ARGS__)
#define LAYER_ROW(...) WEIGHT_ROW(DflashLayerWeights, __VA_ARGS__)

static const DflashWeightRow model_rows[] = {DFLASH_MODEL_WEIGHTS(MODEL_ROW)};
static const DflashWeightRow layer_rows[] = {DFLASH_LAYER_WEIGHTS(LAYER_ROW)};
static const DflashWeightRow head_row[] = {MODEL_ROW(head, "lm_head.weight", MATRIX, Q8_2F, VOCAB, HIDDEN, NONE)};

const DflashWeightRow *dflash_weight_row(int64_t index, int64_t *layer) {
  *layer = -1;
  if (index < DFLASH_MODEL_WEIGHT_COUNT) return &model_rows[index];
  index -= DFLASH_MODEL_WEIGHT_COUNT;
  *layer = index / DFLASH_LAYER_WEIGHT_COUNT;
  return &layer_rows[index % DFLASH_LAYER_WEIGHT_COUNT];
}

const DflashWeightRow *dflash_weight_head_row(void) { return head_row; }

static bool kernel_width(const DflashGeometry *g, int64_t *value) {
  return dflash_mul_i64(2, g->conv_kernel, value) && dflash_mul_i64(*value, dflash_geometry_groups(g), value);
}

bool dflash_size_value(const DflashGeometry *g, int size, int64_t *value) {
  switch (size) {
  case DFLASH_SIZE_HIDDEN:
    return *value = g->hidden, true;
  case DFLASH_SIZE_INTERMEDIATE:
    return *value = g->intermediate, true;
  case DFLASH_SIZE_TAP_WIDTH:
    return dflash_mul_i64(g->taps.count, g->hidden, value);
  case DFLASH_SIZE_Q_WIDTH:
    return dflash_mul_i64(g->heads, g->head_dim, value);
  case DFLASH_SIZE_KV_WIDTH:
    return dflash_mul_i64(g->kv_heads, g->head_dim, value);
  case DFLASH_SIZE_HEAD_DIM:
    return *value = g->head_dim, true;
  case DFLASH_SIZE_SIDES:
    return *value = 2, true;
  case DFLASH_SIZE_CONV_KERNEL:
    return *value = g->conv_kernel, true;
  case DFLASH_SIZE_KERNEL_WIDTH:
    return kernel_width(g, value);
  case DFLASH_SIZE_RANK:
    return *value = g->selector_rank, true;
  case DFLASH_SIZE_TOP:
    return *value = g->selector_top, true;
  case DFLASH_SIZE_VOCAB:
    return *value = g->vocab, true;
  default:
    return *value = 1, true;
  }
}

const char *dflash_size_text(int size) {
#define SIZE_TEXT(id, text) text,
  static const char *const texts[] = {DFLASH_SIZES(SIZE_TEXT)};
  return texts[size];
}
