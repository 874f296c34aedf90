#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "load/reader.h"

/* Where a run of stage values comes from and goes to. */
typedef struct Reading {
  const DflashGolden *golden;
  const DflashCase *c;
  bool optional; /* what is absent stays NULL */
} Reading;

static DflashStatus read_array(const Reading *reading, const DflashNode *parent, const char *name,
                               const DflashWanted *wanted, float **place, bool *owned, DflashError *error) {
  DflashData data;
  if (reading->optional && !dflash_node_has(parent, name)) return DFLASH_OK;
  DflashStatus status = dflash_dataset_read(parent, name, wanted, &reading->golden->mapping, &data, error);
  if (status != DFLASH_OK) return status;
  *place = data.data;
  *owned = data.owned;
  return DFLASH_OK;
}

/* One of the three arrays of a value. */
enum { MEMBER_DATA, MEMBER_ALONE, MEMBER_CHAIN };

static DflashStatus read_member(const Reading *reading, const DflashNode *parent, const char *name, int32_t stage,
                                DflashValue *value, int member, DflashError *error) {
  const DflashGeometry *geometry = &reading->golden->geometry;
  DflashWanted wanted = {.element = DFLASH_ELEMENT_F32};
  wanted.rank = dflash_stage_shape(geometry, &reading->c->sizes, stage, wanted.shape);
  switch (member) {
  case MEMBER_ALONE:
    return read_array(reading, parent, name, &wanted, &value->alone, &value->alone_owned, error);
  case MEMBER_CHAIN:
    return read_array(reading, parent, name, &wanted, &value->chain, &value->chain_owned, error);
  default:
    return read_array(reading, parent, name, &wanted, &value->data, &value->data_owned, error);
  }
}

static DflashStatus refuse_more_layers(const DflashNode *node, int64_t layers, DflashError *error) {
  char name[24];
  snprintf(name, sizeof name, "%lld", (long long)layers);
  if (!dflash_node_has(node, name)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s/%s: extra, expected the %lld layers of /geometry", node->path,
                          name, (long long)layers);
}

/* parent/group/0 .. layers - 1 into values[layer]. */
static DflashStatus read_layers(const Reading *reading, const DflashNode *parent, const char *group, int32_t stage,
                                DflashValue *values, int member, DflashError *error) {
  DflashNode node;
  int64_t layers = reading->golden->geometry.layers;
  if (reading->optional && !dflash_node_has(parent, group)) return DFLASH_OK;
  DflashStatus status = dflash_node_open(parent, group, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = refuse_more_layers(&node, layers, error);
  for (int64_t layer = 0; layer < layers && status == DFLASH_OK; layer++) {
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)layer);
    status = read_member(reading, &node, name, stage, &values[layer], member, error);
  }
  dflash_node_close(&node);
  return status;
}

/* A context stage is absent when nothing was pushed; then it may also stand there with no rows. */
static bool may_be_absent(const DflashCase *c, const DflashStageRow *row) {
  return row->rows == DFLASH_ROWS_CONTEXT && c->sizes.push_rows == 0;
}

static DflashStatus read_stages(const Reading *reading, const DflashNode *node, DflashValue *values, int member,
                                DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT && status == DFLASH_OK; stage++) {
    const DflashStageRow *row = dflash_stage_row(stage);
    DflashValue *first = &values[stage * reading->golden->geometry.layers];
    Reading one = *reading;
    one.optional = reading->optional || may_be_absent(reading->c, row);
    status = row->scope == DFLASH_SCOPE_LAYER ? read_layers(&one, node, row->name, stage, first, member, error)
                                              : read_member(&one, node, row->name, stage, first, member, error);
  }
  return status;
}

/* Every value has its size, also one that turns out to be absent. */
static void set_sizes(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage, DflashValue *value) {
  value->rows = dflash_stage_rows(geometry, sizes, stage);
  value->width = dflash_stage_width(geometry, sizes, stage);
}

static void set_stage_sizes(const DflashGeometry *geometry, const DflashRunSizes *sizes, DflashValue *values) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++)
    set_sizes(geometry, sizes, stage, &values[stage * geometry->layers + layer]);
}

static DflashStatus read_held(const Reading *reading, const DflashNode *node, DflashCase *c, DflashError *error) {
  const DflashGeometry *geometry = &reading->golden->geometry;
  DflashNode state;
  for (int64_t layer = 0; layer < geometry->layers; layer++) {
    set_sizes(geometry, &c->sizes, DFLASH_STAGE_HELD_K, &c->held_k[layer]);
    set_sizes(geometry, &c->sizes, DFLASH_STAGE_HELD_V, &c->held_v[layer]);
  }
  DflashStatus status = dflash_node_open(node, "context_state", DFLASH_NODE_GROUP, &state, error);
  if (status == DFLASH_OK)
    status = read_layers(reading, &state, "k", DFLASH_STAGE_HELD_K, c->held_k, MEMBER_DATA, error);
  if (status == DFLASH_OK)
    status = read_layers(reading, &state, "v", DFLASH_STAGE_HELD_V, c->held_v, MEMBER_DATA, error);
  dflash_node_close(&state);
  return status;
}

static DflashStatus read_golden_stages(const Reading *reading, const DflashNode *node, DflashCase *c,
                                       DflashError *error) {
  DflashNode stages;
  set_stage_sizes(&reading->golden->geometry, &c->sizes, c->stages);
  DflashStatus status = dflash_node_open(node, "stages", DFLASH_NODE_GROUP, &stages, error);
  if (status == DFLASH_OK) status = read_stages(reading, &stages, c->stages, MEMBER_DATA, error);
  dflash_node_close(&stages);
  return status;
}

static DflashStatus read_i8(const DflashGolden *golden, const DflashNode *node, DflashCase *c, DflashError *error) {
  const Reading reading = {golden, c, .optional = true};
  DflashNode stages;
  if (!dflash_node_has(node, "stages.i8")) return DFLASH_OK;
  c->stages_i8 = dflash_alloc((size_t)DFLASH_STAGE_COUNT * (size_t)c->layers, sizeof *c->stages_i8);
  if (!c->stages_i8) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", node->path);
  set_stage_sizes(&golden->geometry, &c->sizes, c->stages_i8);
  DflashStatus status = dflash_node_open(node, "stages.i8", DFLASH_NODE_GROUP, &stages, error);
  if (status == DFLASH_OK) status = read_stages(&reading, &stages, c->stages_i8, MEMBER_DATA, error);
  dflash_node_close(&stages);
  return status;
}

static DflashStatus copy_owned(const DflashGolden *golden, const DflashNode *node, const char *name,
                               const DflashWanted *wanted, void **place, DflashError *error) {
  DflashData data;
  DflashStatus status = dflash_dataset_copy(node, name, wanted, &golden->mapping, &data, error);
  if (status == DFLASH_OK) *place = data.data;
  return status;
}

static DflashStatus read_scale_set(const DflashGolden *golden, const DflashNode *exact, const char *name, int member,
                                   DflashCase *c, DflashError *error) {
  const Reading reading = {golden, c, .optional = true};
  const DflashWanted scores = {DFLASH_ELEMENT_F32, 2, {c->sizes.n_draft, golden->geometry.selector_top}};
  DflashNode node;
  if (!dflash_node_has(exact, name)) return DFLASH_OK;
  float **place = member == MEMBER_ALONE ? &c->tokens.alone : &c->tokens.chain;
  DflashStatus status = dflash_node_open(exact, name, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = read_stages(&reading, &node, c->stages, member, error);
  if (status == DFLASH_OK)
    status = read_layers(&reading, &node, "context_state.k", DFLASH_STAGE_HELD_K, c->held_k, member, error);
  if (status == DFLASH_OK)
    status = read_layers(&reading, &node, "context_state.v", DFLASH_STAGE_HELD_V, c->held_v, member, error);
  if (status == DFLASH_OK && dflash_node_has(&node, "scores"))
    status = copy_owned(golden, &node, "scores", &scores, (void **)place, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_scales(const DflashGolden *golden, const DflashNode *node, DflashCase *c, DflashError *error) {
  DflashNode scales, exact = {.id = H5I_INVALID_HID};
  if (!dflash_node_has(node, "scales")) return DFLASH_OK;
  DflashStatus status = dflash_node_open(node, "scales", DFLASH_NODE_GROUP, &scales, error);
  if (status == DFLASH_OK && dflash_node_has(&scales, "exact")) {
    status = dflash_node_open(&scales, "exact", DFLASH_NODE_GROUP, &exact, error);
    if (status == DFLASH_OK) status = read_scale_set(golden, &exact, "alone", MEMBER_ALONE, c, error);
    if (status == DFLASH_OK) status = read_scale_set(golden, &exact, "chain", MEMBER_CHAIN, c, error);
  }
  dflash_node_close(&exact);
  dflash_node_close(&scales);
  return status;
}

static DflashStatus read_output(const DflashGolden *golden, const DflashNode *node, DflashCase *c, DflashError *error) {
  int64_t rows = c->sizes.n_draft, top = golden->geometry.selector_top;
  const DflashWanted row = {DFLASH_ELEMENT_I32, 1, {rows}}, ids = {DFLASH_ELEMENT_I32, 2, {rows, top}};
  const DflashWanted scores = {DFLASH_ELEMENT_F64, 2, {rows, top}};
  DflashTokensValue *tokens = &c->tokens;
  DflashNode output;
  DflashStatus status = dflash_node_open(node, "output", DFLASH_NODE_GROUP, &output, error);
  if (status == DFLASH_OK) status = copy_owned(golden, &output, "chosen", &row, (void **)&tokens->chosen, error);
  if (status == DFLASH_OK) status = copy_owned(golden, &output, "plain", &row, (void **)&tokens->plain, error);
  if (status == DFLASH_OK)
    status = copy_owned(golden, &output, "candidates", &ids, (void **)&tokens->candidates, error);
  if (status == DFLASH_OK) status = copy_owned(golden, &output, "scores", &scores, (void **)&tokens->scores, error);
  dflash_node_close(&output);
  return status;
}

DflashStatus dflash_read_case_values(const DflashGolden *golden, const DflashNode *node, DflashCase *c,
                                     DflashError *error) {
  const Reading reading = {golden, c, .optional = false};
  DflashStatus status = read_held(&reading, node, c, error);
  if (status == DFLASH_OK) status = read_golden_stages(&reading, node, c, error);
  if (status == DFLASH_OK) status = read_i8(golden, node, c, error);
  if (status == DFLASH_OK) status = read_scales(golden, node, c, error);
  if (status == DFLASH_OK) status = read_output(golden, node, c, error);
  return status == DFLASH_OK ? dflash_case_check(c, &golden->geometry, error) : status;
}
