#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "dflash/backend.h"
#include "load/reader.h"
#include "load/writer.h"

enum { MEMBER_DATA, MEMBER_ALONE, MEMBER_CHAIN };

typedef struct Writing {
  const DflashGeometry *geometry;
  const DflashCase *c;
  int member;    /* MEMBER_* */
  bool optional; /* what the case lacks is left out */
} Writing;

static const float *pick(const DflashValue *value, int member) {
  return member == MEMBER_ALONE ? value->alone : member == MEMBER_CHAIN ? value->chain : value->data;
}

static DflashStatus write_value(const Writing *writing, const DflashNode *parent, const char *name, int32_t stage,
                                const DflashValue *value, DflashError *error) {
  DflashArray array = {.type = DFLASH_FILE_F32, .data = pick(value, writing->member)};
  array.rank = dflash_stage_shape(writing->geometry, &writing->c->sizes, stage, array.shape);
  if (!array.data && writing->optional) return DFLASH_OK;
  if (!array.data && array.shape[0] > 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s/%s: the case has no value for it", parent->path, name);
  return dflash_write_array(parent, name, &array, error);
}

static bool any_layer(const Writing *writing, const DflashValue *values) {
  for (int64_t layer = 0; layer < writing->geometry->layers; layer++)
    if (pick(&values[layer], writing->member)) return true;
  return false;
}

static DflashStatus write_layers(const Writing *writing, const DflashNode *parent, const char *group, int32_t stage,
                                 const DflashValue *values, DflashError *error) {
  DflashNode node;
  if (writing->optional && !any_layer(writing, values)) return DFLASH_OK;
  DflashStatus status = dflash_write_group(parent, group, &node, error);
  for (int64_t layer = 0; layer < writing->geometry->layers && status == DFLASH_OK; layer++) {
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)layer);
    status = write_value(writing, &node, name, stage, &values[layer], error);
  }
  dflash_node_close(&node);
  return status;
}

/* Without a push there are no context stages at all; after one of no rows they stand there empty. */
static DflashStatus write_stages(const Writing *writing, const DflashNode *node, const DflashValue *values,
                                 DflashError *error) {
  DflashStatus status = DFLASH_OK;
  bool pushed = dflash_case_has_push(writing->c);
  for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT && status == DFLASH_OK; stage++) {
    const DflashStageRow *row = dflash_stage_row(stage);
    const DflashValue *first = &values[stage * writing->geometry->layers];
    if (row->rows == DFLASH_ROWS_CONTEXT && !pushed) continue;
    status = row->scope == DFLASH_SCOPE_LAYER ? write_layers(writing, node, row->name, stage, first, error)
                                              : write_value(writing, node, row->name, stage, first, error);
  }
  return status;
}

static DflashStatus write_attributes(const DflashNode *node, const DflashCase *c, DflashError *error) {
  DflashStatus status = dflash_write_i64(node, "anchor_pos", c->anchor_pos, error);
  if (status == DFLASH_OK) status = dflash_write_i64(node, "anchor_token", c->anchor_token, error);
  if (status == DFLASH_OK) status = dflash_write_i64(node, "rows", c->sizes.rows, error);
  if (status == DFLASH_OK) status = dflash_write_i64(node, "n_draft", c->sizes.n_draft, error);
  if (status == DFLASH_OK) status = dflash_write_i64(node, "head_width", c->sizes.head_width, error);
  if (status == DFLASH_OK && c->exact) status = dflash_write_i64(node, "exact", 1, error);
  return status;
}

static DflashStatus write_inputs(const Writing *writing, const DflashNode *node, DflashError *error) {
  const DflashCase *c = writing->c;
  const DflashArray ops = {DFLASH_FILE_OPS, 1, {c->op_count}, c->ops};
  const DflashArray taps = {DFLASH_FILE_F32, 2, {c->tap_rows, dflash_geometry_tap_width(writing->geometry)}, c->taps};
  const DflashArray h = {DFLASH_FILE_F32, 2, {c->sizes.rows, writing->geometry->hidden}, c->h};
  DflashNode context, input = {.id = H5I_INVALID_HID};
  if (!c->h || (!c->taps && c->tap_rows > 0))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: the case has no h or no taps", node->path);
  DflashStatus status = dflash_write_group(node, "context", &context, error);
  if (status == DFLASH_OK) status = dflash_write_array(&context, "ops", &ops, error);
  if (status == DFLASH_OK) status = dflash_write_array(&context, "taps", &taps, error);
  if (status == DFLASH_OK) status = dflash_write_group(node, "input", &input, error);
  if (status == DFLASH_OK) status = dflash_write_array(&input, "h", &h, error);
  dflash_node_close(&input);
  dflash_node_close(&context);
  return status;
}

static DflashStatus write_state(const Writing *writing, const DflashNode *node, DflashError *error) {
  const DflashCase *c = writing->c;
  DflashNode state;
  DflashStatus status = dflash_write_group(node, "context_state", &state, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&state, "first", c->context_first, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&state, "len", c->sizes.context_len, error);
  if (status == DFLASH_OK) status = write_layers(writing, &state, "k", DFLASH_STAGE_HELD_K, c->held_k, error);
  if (status == DFLASH_OK) status = write_layers(writing, &state, "v", DFLASH_STAGE_HELD_V, c->held_v, error);
  dflash_node_close(&state);
  return status;
}

static DflashStatus write_stage_group(const Writing *writing, const DflashNode *node, const char *name,
                                      const DflashValue *values, DflashError *error) {
  DflashNode group;
  DflashStatus status = dflash_write_group(node, name, &group, error);
  if (status == DFLASH_OK) status = write_stages(writing, &group, values, error);
  dflash_node_close(&group);
  return status;
}

static DflashStatus write_output(const Writing *writing, const DflashNode *node, DflashError *error) {
  const DflashTokensValue *tokens = &writing->c->tokens;
  int64_t rows = writing->c->sizes.n_draft, top = writing->geometry->selector_top;
  const DflashArray chosen = {DFLASH_FILE_I32, 1, {rows}, tokens->chosen};
  const DflashArray plain = {DFLASH_FILE_I32, 1, {rows}, tokens->plain};
  const DflashArray candidates = {DFLASH_FILE_I32, 2, {rows, top}, tokens->candidates};
  const DflashArray scores = {DFLASH_FILE_F64, 2, {rows, top}, tokens->scores};
  DflashNode output;
  if (!tokens->chosen || !tokens->plain || !tokens->candidates || !tokens->scores)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s/output: the case has no value for it", node->path);
  DflashStatus status = dflash_write_group(node, "output", &output, error);
  if (status == DFLASH_OK) status = dflash_write_array(&output, "chosen", &chosen, error);
  if (status == DFLASH_OK) status = dflash_write_array(&output, "plain", &plain, error);
  if (status == DFLASH_OK) status = dflash_write_array(&output, "candidates", &candidates, error);
  if (status == DFLASH_OK) status = dflash_write_array(&output, "scores", &scores, error);
  dflash_node_close(&output);
  return status;
}

static bool any_scale(const Writing *writing, const float *scores) {
  const DflashCase *c = writing->c;
  if (scores || any_layer(writing, c->held_k) || any_layer(writing, c->held_v)) return true;
  for (int64_t i = 0; i < DFLASH_STAGE_COUNT * c->layers; i++)
    if (pick(&c->stages[i], writing->member)) return true;
  return false;
}

static DflashStatus write_scale_set(const Writing *writing, const DflashNode *exact, const char *name,
                                    const float *scores, DflashError *error) {
  const DflashCase *c = writing->c;
  const DflashArray array = {DFLASH_FILE_F32, 2, {c->sizes.n_draft, writing->geometry->selector_top}, scores};
  DflashNode node;
  DflashStatus status = dflash_write_group(exact, name, &node, error);
  if (status == DFLASH_OK) status = write_stages(writing, &node, c->stages, error);
  if (status == DFLASH_OK)
    status = write_layers(writing, &node, "context_state.k", DFLASH_STAGE_HELD_K, c->held_k, error);
  if (status == DFLASH_OK)
    status = write_layers(writing, &node, "context_state.v", DFLASH_STAGE_HELD_V, c->held_v, error);
  if (status == DFLASH_OK && scores) status = dflash_write_array(&node, "scores", &array, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_scales(const DflashGeometry *geometry, const DflashCase *c, const DflashNode *node,
                                 DflashError *error) {
  const Writing alone = {geometry, c, MEMBER_ALONE, true}, chain = {geometry, c, MEMBER_CHAIN, true};
  bool has_alone = any_scale(&alone, c->tokens.alone), has_chain = any_scale(&chain, c->tokens.chain);
  DflashNode scales, exact = {.id = H5I_INVALID_HID};
  if (!has_alone && !has_chain) return DFLASH_OK;
  DflashStatus status = dflash_write_group(node, "scales", &scales, error);
  if (status == DFLASH_OK) status = dflash_write_group(&scales, "exact", &exact, error);
  if (status == DFLASH_OK && has_alone) status = write_scale_set(&alone, &exact, "alone", c->tokens.alone, error);
  if (status == DFLASH_OK && has_chain) status = write_scale_set(&chain, &exact, "chain", c->tokens.chain, error);
  dflash_node_close(&exact);
  dflash_node_close(&scales);
  return status;
}

static DflashStatus write_case(const DflashGeometry *geometry, const DflashCase *c, const DflashNode *node,
                               DflashError *error) {
  const Writing values = {geometry, c, MEMBER_DATA, false}, i8 = {geometry, c, MEMBER_DATA, true};
  DflashStatus status = write_attributes(node, c, error);
  if (status == DFLASH_OK) status = write_inputs(&values, node, error);
  if (status == DFLASH_OK) status = write_state(&values, node, error);
  if (status == DFLASH_OK) status = write_stage_group(&values, node, "stages", c->stages, error);
  if (status == DFLASH_OK && c->stages_i8) status = write_stage_group(&i8, node, "stages.i8", c->stages_i8, error);
  if (status == DFLASH_OK) status = write_output(&values, node, error);
  return status == DFLASH_OK ? write_scales(geometry, c, node, error) : status;
}

DflashStatus dflash_golden_write_case(DflashGoldenWriter *writer, const DflashCase *c, DflashError *error) {
  DflashNode cases, node = {.id = H5I_INVALID_HID};
  const char *fault = dflash_case_name_fault(c->name);
  if (fault) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "case name \"%.64s\" is %s", c->name, fault);
  if (c->profile != DFLASH_PROFILE_EXACT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "case %s holds profile %" PRId32 "; a golden's stages and scales are exact ones", c->name,
                            c->profile);
  DflashStatus status = dflash_case_check(c, &writer->geometry, error);
  if (status != DFLASH_OK) return status;
  dflash_h5_quiet();
  status = dflash_node_open(&writer->root, "cases", DFLASH_NODE_GROUP, &cases, error);
  if (status == DFLASH_OK) status = dflash_write_group(&cases, c->name, &node, error);
  if (status == DFLASH_OK) status = write_case(&writer->geometry, c, &node, error);
  dflash_node_close(&node);
  dflash_node_close(&cases);
  return dflash_writer_finish(writer, status, error);
}
