#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/golden.h"
#include "load/hash_item.h"
#include "model/geometry.h"
#include "model/storage.h"

/* An operation as the file's packed compound holds it. */
#define OP_BYTES 28

/* "/cases/NAME/scales/exact/alone" and the like fit: names of cases are limited. */
enum { PATH_MAX_BYTES = DFLASH_CASE_NAME_MAX + 64 };

void dflash_hash_geometry(DflashHashList *list, const DflashGeometry *geometry, const float *inv_freq) {
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    const char *place = (const char *)geometry + field->offset;
    if (field->kind == DFLASH_FIELD_I64)
      dflash_hash_i64(list, "/geometry", field->name, *(const int64_t *)(const void *)place);
    else if (field->kind == DFLASH_FIELD_F64)
      dflash_hash_f64(list, "/geometry", field->name, *(const double *)(const void *)place);
    else {
      const DflashList *values = (const void *)place;
      dflash_hash_integers(list, "/geometry", field->name, values->at, values->count);
    }
  }
  int64_t count = geometry->head_dim / 2;
  dflash_hash_array(list, "/geometry", "inv_freq", "f32", 1, &count, inv_freq, (uint64_t)count * sizeof(float));
}

void dflash_hash_tensor(DflashHashList *list, const char *path, const DflashTensor *tensor) {
  int64_t bytes = (int64_t)tensor->bytes;
  const char *storage = dflash_storage_name(tensor->storage);
  bool packed = tensor->storage == DFLASH_STORAGE_Q8_2F || tensor->storage == DFLASH_STORAGE_Q4TP;
  const char *type = packed ? "u8" : tensor->storage == DFLASH_STORAGE_F32 ? "f32" : "u16";
  dflash_hash_array(list, "", path + 1, type, packed ? 1 : tensor->rank, packed ? &bytes : tensor->shape, tensor->data,
                    tensor->bytes);
  dflash_hash_text(list, path, "storage", storage ? storage : "");
  dflash_hash_integers(list, path, "shape", tensor->shape, tensor->rank);
}

static void add_subspace(DflashHashList *list, const char *path, const DflashSubspace *subspace, int64_t hidden) {
  const int64_t shape[2] = {subspace->rank, hidden};
  dflash_hash_array(list, path, "mean", "u16", 1, &hidden, subspace->mean, (uint64_t)hidden * 2);
  dflash_hash_array(list, path, "basis", "u16", 2, shape, subspace->basis, (uint64_t)(subspace->rank * hidden) * 2);
}

void dflash_hash_router(DflashHashList *list, const DflashRouter *router, int64_t count, const float *rows) {
  const int64_t shape[2] = {count, router->hidden};
  add_subspace(list, "/router/block", &router->block, router->hidden);
  add_subspace(list, "/router/chain", &router->chain, router->hidden);
  if (rows) dflash_hash_array(list, "/router", "rows", "f32", 2, shape, rows, (uint64_t)(count * router->hidden) * 4);
}

void dflash_hash_margins(DflashHashList *list, int64_t count, const double *margins) {
  if (margins) dflash_hash_array(list, "/router", "margin", "f64", 1, &count, margins, (uint64_t)count * 8);
}

static void add_ops(DflashHashList *list, const char *path, const DflashCase *c) {
  DflashHashItem *item = dflash_hash_array(list, path, "ops", "ops", 1, &c->op_count, "", 0);
  if (!item || c->op_count == 0) return;
  unsigned char *packed = malloc((size_t)c->op_count * OP_BYTES);
  if (!packed) {
    list->failed = true;
    return;
  }
  for (int64_t i = 0; i < c->op_count; i++) {
    unsigned char *at = packed + i * OP_BYTES;
    memcpy(at, &c->ops[i].op, 4);
    memcpy(at + 4, &c->ops[i].pos, 8);
    memcpy(at + 12, &c->ops[i].first_row, 8);
    memcpy(at + 20, &c->ops[i].n_rows, 8);
  }
  item->data = item->owned = packed;
  item->bytes = (uint64_t)c->op_count * OP_BYTES;
}

static void add_floats(DflashHashList *list, const char *path, const char *name, int64_t rows, int64_t width,
                       const float *data) {
  const int64_t shape[2] = {rows, width};
  dflash_hash_array(list, path, name, "f32", 2, shape, data, (uint64_t)(rows * width) * 4);
}

void dflash_hash_case_inputs(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c) {
  char path[PATH_MAX_BYTES], context[PATH_MAX_BYTES], input[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "/cases/%.*s", DFLASH_CASE_NAME_MAX, c->name);
  snprintf(context, sizeof context, "/cases/%.*s/context", DFLASH_CASE_NAME_MAX, c->name);
  snprintf(input, sizeof input, "/cases/%.*s/input", DFLASH_CASE_NAME_MAX, c->name);
  dflash_hash_i64(list, path, "anchor_pos", c->anchor_pos);
  dflash_hash_i64(list, path, "anchor_token", c->anchor_token);
  dflash_hash_i64(list, path, "rows", c->sizes.rows);
  dflash_hash_i64(list, path, "n_draft", c->sizes.n_draft);
  dflash_hash_i64(list, path, "head_width", c->sizes.head_width);
  dflash_hash_i64(list, path, "exact", c->exact);
  add_ops(list, context, c);
  add_floats(list, context, "taps", c->tap_rows, dflash_geometry_tap_width(geometry), c->taps);
  add_floats(list, input, "h", c->sizes.rows, geometry->hidden, c->h);
}

/* One of the three arrays of a value. */
typedef enum Member { MEMBER_DATA, MEMBER_ALONE, MEMBER_CHAIN } Member;

static void add_value(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c, const char *path,
                      const char *name, int32_t stage, const DflashValue *value, Member member) {
  int64_t shape[3];
  const float *data = member == MEMBER_ALONE ? value->alone : member == MEMBER_CHAIN ? value->chain : value->data;
  if (!data) return;
  int rank = dflash_stage_shape(geometry, &c->sizes, stage, shape);
  dflash_hash_array(list, path, name, "f32", rank, shape, data, (uint64_t)(value->rows * value->width) * 4);
}

/* Every layer's K and V: path/PREFIXk/0 and so on. */
static void add_held(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c, const char *path,
                     const char *prefix, Member member) {
  char name[48];
  for (int64_t layer = 0; layer < c->layers; layer++) {
    snprintf(name, sizeof name, "%sk/%lld", prefix, (long long)layer);
    add_value(list, geometry, c, path, name, DFLASH_STAGE_HELD_K, &c->held_k[layer], member);
    snprintf(name, sizeof name, "%sv/%lld", prefix, (long long)layer);
    add_value(list, geometry, c, path, name, DFLASH_STAGE_HELD_V, &c->held_v[layer], member);
  }
}

static void add_context_state(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c) {
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "/cases/%.*s/context_state", DFLASH_CASE_NAME_MAX, c->name);
  dflash_hash_i64(list, path, "first", c->context_first);
  dflash_hash_i64(list, path, "len", c->sizes.context_len);
  add_held(list, geometry, c, path, "", MEMBER_DATA);
}

static void add_stages(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c, const char *group,
                       const DflashValue *values, Member member) {
  char path[PATH_MAX_BYTES], label[64];
  int32_t stage;
  int64_t layer;
  snprintf(path, sizeof path, "/cases/%.*s/%s", DFLASH_CASE_NAME_MAX, c->name, group);
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++)
    add_value(list, geometry, c, path, dflash_stage_label(stage, layer, label), stage,
              &values[stage * c->layers + layer], member);
}

void dflash_hash_case_values(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c) {
  char path[PATH_MAX_BYTES];
  const DflashTokensValue *tokens = &c->tokens;
  const int64_t rows = c->sizes.n_draft, shape[2] = {rows, geometry->selector_top};
  uint64_t candidates = (uint64_t)(rows * geometry->selector_top);
  snprintf(path, sizeof path, "/cases/%.*s/output", DFLASH_CASE_NAME_MAX, c->name);
  add_context_state(list, geometry, c);
  add_stages(list, geometry, c, "stages", c->stages, MEMBER_DATA);
  if (c->stages_i8) add_stages(list, geometry, c, "stages.i8", c->stages_i8, MEMBER_DATA);
  dflash_hash_array(list, path, "chosen", "i32", 1, &rows, tokens->chosen, (uint64_t)rows * 4);
  dflash_hash_array(list, path, "plain", "i32", 1, &rows, tokens->plain, (uint64_t)rows * 4);
  dflash_hash_array(list, path, "candidates", "i32", 2, shape, tokens->candidates, candidates * 4);
  dflash_hash_array(list, path, "scores", "f64", 2, shape, tokens->scores, candidates * 8);
}

static void add_scale_set(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c, const char *group,
                          const float *scores, Member member) {
  char path[PATH_MAX_BYTES];
  const int64_t shape[2] = {c->sizes.n_draft, geometry->selector_top};
  snprintf(path, sizeof path, "/cases/%.*s/%s", DFLASH_CASE_NAME_MAX, c->name, group);
  add_stages(list, geometry, c, group, c->stages, member);
  add_held(list, geometry, c, path, "context_state.", member);
  if (scores) dflash_hash_array(list, path, "scores", "f32", 2, shape, scores, (uint64_t)(shape[0] * shape[1]) * 4);
}

void dflash_hash_case_scales(DflashHashList *list, const DflashGeometry *geometry, const DflashCase *c) {
  add_scale_set(list, geometry, c, "scales/exact/alone", c->tokens.alone, MEMBER_ALONE);
  add_scale_set(list, geometry, c, "scales/exact/chain", c->tokens.chain, MEMBER_CHAIN);
}
