#include <string.h>

#include "base/error.h"
#include "load/writer.h"
#include "model/storage.h"

static bool find_entry(const DflashGeometry *geometry, const char *name, DflashWeightEntry *entry) {
  if (strcmp(name, "/target/head") == 0) {
    dflash_weight_head_entry(geometry, entry);
    return true;
  }
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++) {
    dflash_weight_entry(geometry, i, entry);
    if (strcmp(name, entry->name) == 0) return true;
  }
  return false;
}

static DflashArray tensor_array(const DflashTensor *tensor) {
  DflashArray array = {DFLASH_FILE_U8, 1, {(int64_t)tensor->bytes}, tensor->data};
  if (tensor->storage == DFLASH_STORAGE_Q8_2F || tensor->storage == DFLASH_STORAGE_Q4TP) return array;
  array.type = tensor->storage == DFLASH_STORAGE_F32 ? DFLASH_FILE_F32 : DFLASH_FILE_U16;
  array.rank = tensor->rank;
  memcpy(array.shape, tensor->shape, sizeof array.shape);
  return array;
}

static DflashStatus write_tensor(const DflashNode *parent, const char *name, const DflashTensor *tensor,
                                 DflashError *error) {
  DflashNode node;
  const DflashArray array = tensor_array(tensor);
  DflashStatus status = dflash_write_dataset(parent, name, &array, &node, error);
  if (status == DFLASH_OK) status = dflash_write_text(&node, "storage", dflash_storage_name(tensor->storage), error);
  if (status == DFLASH_OK) status = dflash_write_list(&node, "shape", tensor->shape, tensor->rank, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_golden_write_weight(DflashGoldenWriter *writer, const char *name, const DflashTensor *tensor,
                                        DflashError *error) {
  DflashWeightEntry entry;
  DflashNode group;
  bool is_head = strcmp(name, "/target/head") == 0;
  dflash_h5_quiet();
  if (!find_entry(&writer->geometry, name, &entry))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "weight %s: this geometry has none of that name", name);
  DflashStatus status = dflash_weight_check(&entry, tensor, error);
  if (status != DFLASH_OK) return status;
  if (!tensor->data) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "weight %s: no data", name);
  status = dflash_write_open_group(&writer->root, is_head ? "target" : "weights", &group, error);
  if (status == DFLASH_OK) status = write_tensor(&group, is_head ? "head" : name, tensor, error);
  dflash_node_close(&group);
  return dflash_writer_finish(writer, status, error);
}

static DflashStatus write_subspace(const DflashNode *router, const char *name, const DflashSubspace *subspace,
                                   int64_t hidden, DflashError *error) {
  DflashNode node;
  const DflashArray mean = {DFLASH_FILE_U16, 1, {hidden}, subspace->mean};
  const DflashArray basis = {DFLASH_FILE_U16, 2, {subspace->rank, hidden}, subspace->basis};
  DflashStatus status = dflash_write_group(router, name, &node, error);
  if (status == DFLASH_OK) status = dflash_write_i64(&node, "phi_layer", subspace->phi_layer, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "mean", &mean, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "basis", &basis, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus write_router(const DflashNode *root, const DflashRouter *router, const DflashArray *rows,
                                 const DflashArray *margins, DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_write_group(root, "router", &node, error);
  if (status == DFLASH_OK) status = write_subspace(&node, "block", &router->block, router->hidden, error);
  if (status == DFLASH_OK) status = write_subspace(&node, "chain", &router->chain, router->hidden, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "rows", rows, error);
  if (status == DFLASH_OK) status = dflash_write_array(&node, "margin", margins, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_golden_write_router(DflashGoldenWriter *writer, const DflashRouter *router, int64_t count,
                                        const float *rows, const double *margins, DflashError *error) {
  dflash_h5_quiet();
  if (!router->present || router->hidden != writer->geometry.hidden || count < 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "router: hidden is %lld and rows %lld, expected %lld and 0 "
                            "or more",
                            (long long)router->hidden, (long long)count, (long long)writer->geometry.hidden);
  const DflashArray row_array = {DFLASH_FILE_F32, 2, {count, router->hidden}, rows};
  const DflashArray margin_array = {DFLASH_FILE_F64, 1, {count}, margins};
  return dflash_writer_finish(writer, write_router(&writer->root, router, &row_array, &margin_array, error), error);
}
