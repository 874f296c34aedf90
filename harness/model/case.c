#include "model/case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "dflash/backend.h"

DflashStatus dflash_case_open(DflashCase *c, const DflashGeometry *geometry, const char *name, DflashError *error) {
  *c = (DflashCase){.layers = geometry->layers};
  size_t layers = (size_t)geometry->layers;
  c->name = strdup(name);
  c->held_k = dflash_alloc(layers, sizeof *c->held_k);
  c->held_v = dflash_alloc(layers, sizeof *c->held_v);
  c->stages = dflash_alloc(layers * DFLASH_STAGE_COUNT, sizeof *c->stages);
  if (c->name && c->held_k && c->held_v && c->stages) return DFLASH_OK;
  dflash_case_close(c);
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "case %s: no memory for its list of values", name);
}

static void free_values(DflashValue *values, int64_t count) {
  for (int64_t i = 0; values && i < count; i++) {
    if (values[i].data_owned) free(values[i].data);
    if (values[i].alone_owned) free(values[i].alone);
    if (values[i].chain_owned) free(values[i].chain);
  }
  free(values);
}

void dflash_case_close(DflashCase *c) {
  free(c->name);
  free(c->ops);
  if (c->taps_owned) free(c->taps);
  if (c->h_owned) free(c->h);
  free_values(c->held_k, c->layers);
  free_values(c->held_v, c->layers);
  free_values(c->stages, c->layers * DFLASH_STAGE_COUNT);
  free_values(c->stages_i8, c->layers * DFLASH_STAGE_COUNT);
  free(c->tokens.chosen);
  free(c->tokens.plain);
  free(c->tokens.candidates);
  free(c->tokens.scores);
  free(c->tokens.alone);
  free(c->tokens.chain);
  *c = (DflashCase){0};
}

DflashValue *dflash_case_value(const DflashCase *c, int32_t stage, int64_t layer) {
  const DflashStageRow *row = dflash_stage_row(stage);
  if (!row || layer < 0 || layer >= (row->scope == DFLASH_SCOPE_LAYER ? c->layers : 1)) return NULL;
  return &c->stages[stage * c->layers + layer];
}

static void forget_scales(DflashValue *values, int64_t count) {
  for (int64_t i = 0; values != NULL && i < count; i++) {
    if (values[i].alone_owned) free(values[i].alone);
    if (values[i].chain_owned) free(values[i].chain);
    values[i].alone = values[i].chain = NULL;
    values[i].alone_owned = values[i].chain_owned = false;
  }
}

void dflash_case_forget_scales(DflashCase *c) {
  forget_scales(c->held_k, c->layers);
  forget_scales(c->held_v, c->layers);
  forget_scales(c->stages, DFLASH_STAGE_COUNT * c->layers);
  free(c->tokens.alone);
  free(c->tokens.chain);
  c->tokens.alone = c->tokens.chain = NULL;
}

/* Everything but the first layer's norm of the embeddings comes after a matrix. */
static bool behind_matrix(int32_t stage, int64_t layer) { return stage != DFLASH_STAGE_ATTN_NORM || layer > 0; }

static void drop_value(DflashValue *value) {
  if (value->data_owned) free(value->data);
  value->data = NULL;
  value->data_owned = false;
}

/* The value of `from` moves to `to`, whose own is dropped. */
static void move_value(DflashValue *to, DflashValue *from) {
  drop_value(to);
  to->data = from->data, to->rows = from->rows, to->width = from->width;
  to->data_owned = from->data_owned;
  from->data = NULL;
  from->data_owned = false;
}

static void drop_tokens(DflashTokensValue *tokens) {
  free(tokens->chosen);
  free(tokens->plain);
  free(tokens->candidates);
  free(tokens->scores);
  *tokens = (DflashTokensValue){0};
}

static void turn_to_i8(DflashCase *c) {
  for (int64_t i = 0; i < DFLASH_STAGE_COUNT * c->layers; i++) {
    bool other = c->stages_i8 && c->stages_i8[i].data;
    if (other) move_value(&c->stages[i], &c->stages_i8[i]);
    if (!c->stages_i8 && behind_matrix((int32_t)(i / c->layers), i % c->layers)) drop_value(&c->stages[i]);
  }
  for (int64_t layer = 0; layer < c->layers; layer++) {
    drop_value(&c->held_k[layer]);
    drop_value(&c->held_v[layer]);
  }
  drop_tokens(&c->tokens);
  free_values(c->stages_i8, DFLASH_STAGE_COUNT * c->layers);
  c->stages_i8 = NULL;
}

DflashStatus dflash_case_to_profile(DflashCase *c, const DflashGeometry *geometry, int32_t profile,
                                    DflashError *error) {
  if (profile < 0 || profile >= DFLASH_PROFILE_COUNT || c->profile != DFLASH_PROFILE_EXACT ||
      c->layers != geometry->layers)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "case %s: cannot turn profile %" PRId32 " of %" PRId64 " layers into %" PRId32
                            " of %" PRId64 "; valid: from exact (0) to one below %d",
                            c->name, c->profile, c->layers, profile, geometry->layers, DFLASH_PROFILE_COUNT);
  dflash_case_forget_scales(c);
  c->profile = profile;
  if (profile == DFLASH_PROFILE_I8) turn_to_i8(c);
  return DFLASH_OK;
}
