#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "load/candidate_parts.h"
#include "load/dataset.h"

typedef struct Reading {
  const DflashCandidate *candidate;
  const DflashGeometry *geometry;
  const DflashRunSizes *sizes;
  DflashCandidateCase *c;
} Reading;

static DflashCandidateShape shape_of(const Reading *r, int32_t stage) {
  const DflashGeometry *g = r->geometry;
  DflashCandidateShape shape = {dflash_stage_rows(g, r->sizes, stage), dflash_stage_width(g, r->sizes, stage), 0};
  const DflashStageRow *row = dflash_stage_row(stage);
  if (row != NULL && row->width == DFLASH_WIDTH_Q) shape.heads = g->heads;
  if (row == NULL || row->width == DFLASH_WIDTH_KV) shape.heads = g->kv_heads; /* the held ones are no stages */
  return shape;
}

static DflashStatus open_case(DflashCandidateCase *c, int64_t layers, DflashError *error) {
  c->layers = layers;
  c->stages = dflash_alloc((size_t)(DFLASH_STAGE_COUNT * layers), sizeof *c->stages);
  c->held_k = dflash_alloc((size_t)layers, sizeof *c->held_k);
  c->held_v = dflash_alloc((size_t)layers, sizeof *c->held_v);
  if (c->stages != NULL && c->held_k != NULL && c->held_v != NULL) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a case's values");
}

/* A name is a layer's number as it is written; -1: none. "00" and "+0" would be layer 0 beside "0". */
static int64_t layer_of(const char *name, int64_t layers) {
  int64_t layer;
  char written[24];
  if (!dflash_parse_i64(name, &layer) || layer < 0 || layer >= layers) return -1;
  snprintf(written, sizeof written, "%lld", (long long)layer);
  return strcmp(name, written) == 0 ? layer : -1;
}

/* Names of a group are layers' numbers. */
static DflashStatus read_layers(const Reading *r, const DflashNode *parent, const char *name, int32_t stage,
                                DflashCandidateValue *values, DflashError *error) {
  DflashNode node;
  DflashNodeNames names = {0};
  const DflashCandidateShape shape = shape_of(r, stage);
  DflashStatus status = dflash_node_open(parent, name, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = dflash_node_names(&node, r->candidate->file.mapping.size, &names, error);
  for (int64_t i = 0; status == DFLASH_OK && i < names.count; i++) {
    int64_t layer = layer_of(names.at[i], r->geometry->layers);
    if (layer < 0)
      status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: \"%.32s\" is no layer; valid: 0 to %lld", node.path,
                                names.at[i], (long long)r->geometry->layers - 1);
    else
      status = dflash_candidate_value(r->candidate, &node, names.at[i], &shape, &values[layer], error);
  }
  dflash_node_names_close(&names);
  dflash_node_close(&node);
  return status;
}

static DflashStatus fail_stage(const DflashNode *node, const char *name, DflashError *error) {
  DflashText known = {0};
  for (int32_t s = 0; s < DFLASH_STAGE_SELECT; s++)
    dflash_text_append(&known, "%s%s", s > 0 ? ", " : "", dflash_stage_row(s)->name);
  DflashStatus status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: stage \"%.64s\" is unknown; there are: %s",
                                         node->path, name, known.data != NULL ? known.data : "");
  dflash_text_free(&known);
  return status;
}

static DflashStatus read_stage(const Reading *r, const DflashNode *stages, const char *name, DflashError *error) {
  int32_t stage = dflash_stage_find(name);
  if (stage == DFLASH_STAGE_NONE || stage == DFLASH_STAGE_SELECT) return fail_stage(stages, name, error);
  DflashCandidateValue *values = &r->c->stages[stage * r->c->layers];
  if (dflash_stage_row(stage)->scope == DFLASH_SCOPE_LAYER) return read_layers(r, stages, name, stage, values, error);
  const DflashCandidateShape shape = shape_of(r, stage);
  return dflash_candidate_value(r->candidate, stages, name, &shape, values, error);
}

static DflashStatus read_stages(const Reading *r, const DflashNode *parent, DflashError *error) {
  DflashNode node;
  DflashNodeNames names = {0};
  if (!dflash_node_has(parent, "stages")) return DFLASH_OK;
  DflashStatus status = dflash_node_open(parent, "stages", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = dflash_node_names(&node, r->candidate->file.mapping.size, &names, error);
  for (int64_t i = 0; status == DFLASH_OK && i < names.count; i++) status = read_stage(r, &node, names.at[i], error);
  dflash_node_names_close(&names);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_state(const Reading *r, const DflashNode *parent, DflashError *error) {
  DflashNode node;
  if (!dflash_node_has(parent, "context_state")) return DFLASH_OK;
  DflashStatus status = dflash_node_open(parent, "context_state", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK && dflash_node_has(&node, "k"))
    status = read_layers(r, &node, "k", DFLASH_STAGE_HELD_K, r->c->held_k, error);
  if (status == DFLASH_OK && dflash_node_has(&node, "v"))
    status = read_layers(r, &node, "v", DFLASH_STAGE_HELD_V, r->c->held_v, error);
  dflash_node_close(&node);
  return status;
}

/* Absent arrays stay NULL. */
static DflashStatus read_array(const Reading *r, const DflashNode *node, const char *name, const DflashWanted *wanted,
                               void **array, DflashError *error) {
  DflashData data;
  if (!dflash_node_has(node, name)) return DFLASH_OK;
  DflashStatus status = dflash_dataset_copy(node, name, wanted, &r->candidate->file.mapping, &data, error);
  if (status == DFLASH_OK) *array = data.data;
  return status;
}

static DflashStatus read_scores(const Reading *r, const DflashNode *node, const DflashWanted *wanted,
                                DflashError *error) {
  void *array = NULL;
  size_t count = (size_t)(wanted->shape[0] * wanted->shape[1]);
  DflashStatus status = read_array(r, node, "scores", wanted, &array, error);
  if (status != DFLASH_OK || array == NULL) return status;
  r->c->scores = malloc(count * sizeof *r->c->scores);
  for (size_t i = 0; r->c->scores != NULL && i < count; i++) r->c->scores[i] = (float)((double *)array)[i];
  free(array);
  return r->c->scores != NULL ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for scores");
}

static DflashStatus read_output(const Reading *r, const DflashNode *parent, DflashError *error) {
  const int64_t n = r->sizes->n_draft, top = r->geometry->selector_top;
  const DflashWanted tokens = {DFLASH_ELEMENT_I32, 1, {n}}, sets = {DFLASH_ELEMENT_I32, 2, {n, top}};
  const DflashWanted scores = {DFLASH_ELEMENT_F64, 2, {n, top}};
  DflashNode node;
  void *chosen = NULL, *plain = NULL, *candidates = NULL;
  if (!dflash_node_has(parent, "output")) return DFLASH_OK;
  DflashStatus status = dflash_node_open(parent, "output", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = read_array(r, &node, "chosen", &tokens, &chosen, error);
  if (status == DFLASH_OK) status = read_array(r, &node, "plain", &tokens, &plain, error);
  if (status == DFLASH_OK) status = read_array(r, &node, "candidates", &sets, &candidates, error);
  if (status == DFLASH_OK) status = read_scores(r, &node, &scores, error);
  r->c->chosen = chosen;
  r->c->plain = plain;
  r->c->candidates = candidates;
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_case(const Reading *r, const char *name, DflashError *error) {
  DflashNode cases, node = {.id = H5I_INVALID_HID};
  DflashStatus status = open_case(r->c, r->geometry->layers, error);
  if (status != DFLASH_OK) return status;
  status = dflash_node_open(&r->candidate->file.root, "cases", DFLASH_NODE_GROUP, &cases, error);
  if (status == DFLASH_OK) status = dflash_node_open(&cases, name, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = read_stages(r, &node, error);
  if (status == DFLASH_OK) status = read_state(r, &node, error);
  if (status == DFLASH_OK) status = read_output(r, &node, error);
  dflash_node_close(&node);
  dflash_node_close(&cases);
  return status;
}

DflashStatus dflash_candidate_case(const DflashCandidate *candidate, int64_t index, const DflashGeometry *geometry,
                                   const DflashRunSizes *sizes, DflashCandidateCase *c, DflashError *error) {
  const Reading reading = {candidate, geometry, sizes, c};
  *c = (DflashCandidateCase){0};
  dflash_h5_quiet();
  DflashStatus status = read_case(&reading, dflash_candidate_case_name(candidate, index), error);
  if (status != DFLASH_OK) dflash_candidate_case_close(c);
  return status;
}
