#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/reader.h"
#include "model/storage.h"

static int element_of(int32_t storage) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return DFLASH_ELEMENT_F32;
  case DFLASH_STORAGE_F16:
  case DFLASH_STORAGE_BF16:
    return DFLASH_ELEMENT_U16;
  default:
    return DFLASH_ELEMENT_U8;
  }
}

static DflashStatus read_storage(const DflashNode *node, DflashTensor *tensor, DflashError *error) {
  char *name;
  DflashStatus status = dflash_attribute_text(node, "storage", &name, error);
  if (status != DFLASH_OK) return status;
  tensor->storage = dflash_storage_find(name);
  if (tensor->storage < 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA,
                              "%s: attribute storage is \"%.32s\", expected f32, f16, bf16, q8_2f or q4tp", node->path,
                              name);
  free(name);
  return status;
}

static DflashStatus read_shape(const DflashNode *node, DflashTensor *tensor, DflashError *error) {
  DflashList list;
  DflashStatus status = dflash_attribute_list(node, "shape", &list, error);
  if (status != DFLASH_OK) return status;
  if (list.count < 1 || list.count > 3)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: attribute shape has %lld sizes, expected 1 to 3",
                            node->path, (long long)list.count);
  tensor->rank = (int32_t)list.count;
  memcpy(tensor->shape, list.at, (size_t)list.count * sizeof *tensor->shape);
  return DFLASH_OK;
}

/* Storage and shape against the entry; its message then names the path. */
static DflashStatus check_tensor(const DflashNode *node, const DflashWeightEntry *entry, DflashTensor *tensor,
                                 DflashError *error) {
  DflashWeightEntry named = *entry;
  DflashTensor expected = {.rank = entry->rank};
  memcpy(expected.shape, entry->shape, sizeof expected.shape);
  snprintf(named.name, sizeof named.name, "%.95s", node->path);
  DflashStatus status = dflash_storage_bytes(tensor->storage, dflash_tensor_rows(&expected),
                                             dflash_tensor_cols(&expected), &tensor->bytes, error);
  if (status != DFLASH_OK) return dflash_error_prefix(error, "%s", node->path), status;
  return dflash_weight_check(&named, tensor, error);
}

static DflashStatus load_tensor(DflashGolden *golden, const DflashNode *node, const DflashWeightEntry *entry,
                                DflashTensor *tensor, void **owned, DflashError *error) {
  DflashStatus status = read_storage(node, tensor, error);
  if (status == DFLASH_OK) status = read_shape(node, tensor, error);
  if (status == DFLASH_OK) status = check_tensor(node, entry, tensor, error);
  if (status != DFLASH_OK) return status;
  DflashWanted wanted = {element_of(tensor->storage), tensor->rank, {0}};
  memcpy(wanted.shape, tensor->shape, sizeof wanted.shape);
  if (wanted.element == DFLASH_ELEMENT_U8) wanted = (DflashWanted){DFLASH_ELEMENT_U8, 1, {(int64_t)tensor->bytes}};
  DflashData data;
  status = dflash_dataset_load(node, &wanted, &golden->mapping, &data, error);
  if (status != DFLASH_OK) return status;
  tensor->data = data.data;
  *owned = data.owned ? data.data : NULL;
  return DFLASH_OK;
}

static DflashStatus read_tensor(DflashGolden *golden, const DflashNode *parent, const char *name,
                                const DflashWeightEntry *entry, int check_values, DflashTensor *tensor, void **owned,
                                DflashError *error) {
  DflashNode node;
  *tensor = (DflashTensor){0};
  DflashStatus status = dflash_node_open(parent, name, DFLASH_NODE_DATASET, &node, error);
  if (status == DFLASH_OK) status = load_tensor(golden, &node, entry, tensor, owned, error);
  if (status == DFLASH_OK && check_values) status = dflash_tensor_check(tensor, node.path, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_head(DflashGolden *golden, int check_values, void **owned, DflashError *error) {
  DflashNode node;
  DflashWeightEntry entry;
  dflash_weight_head_entry(&golden->geometry, &entry);
  DflashStatus status = dflash_node_open(&golden->root, "target", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK)
    status = read_tensor(golden, &node, "head", &entry, check_values, &golden->set.weights.head, owned, error);
  dflash_node_close(&node);
  return status;
}

/* A layer past the last means that the geometry is another drafter's. */
static DflashStatus refuse_more_layers(const DflashGeometry *geometry, const DflashNode *node, DflashError *error) {
  DflashGeometry longer = *geometry;
  DflashWeightEntry entry;
  longer.layers++;
  dflash_weight_entry(&longer, dflash_weight_count(&longer) - 1, &entry);
  if (!dflash_node_has(node, entry.name)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s/%s: extra, expected the %lld layers of /geometry", node->path,
                          entry.name, (long long)geometry->layers);
}

DflashStatus dflash_read_weights(DflashGolden *golden, int check_values, DflashError *error) {
  DflashNode node;
  int64_t count = dflash_weight_count(&golden->geometry);
  golden->owned = calloc((size_t)count + 1, sizeof *golden->owned);
  if (!golden->owned)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for %lld tensors", (long long)count);
  DflashStatus status = dflash_node_open(&golden->root, "weights", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = refuse_more_layers(&golden->geometry, &node, error);
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&golden->geometry, i, &entry);
    DflashTensor *tensor = dflash_weight_at(&golden->geometry, &golden->set, i);
    status = read_tensor(golden, &node, entry.name, &entry, check_values, tensor, &golden->owned[i], error);
  }
  dflash_node_close(&node);
  return status == DFLASH_OK ? read_head(golden, check_values, &golden->owned[count], error) : status;
}
