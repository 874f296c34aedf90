#include "model/case.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

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
