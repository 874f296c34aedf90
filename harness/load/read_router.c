#include <stdlib.h>

#include "base/error.h"
#include "load/reader.h"
#include "model/storage.h"

static DflashStatus read_bits(const DflashGolden *golden, const DflashNode *node, const char *name,
                              const DflashWanted *wanted, uint16_t **bits, int64_t *first, DflashError *error) {
  DflashData data;
  DflashStatus status = dflash_dataset_copy(node, name, wanted, &golden->mapping, &data, error);
  if (status != DFLASH_OK) return status;
  *bits = data.data;
  *first = data.shape[0];
  for (uint64_t i = 0; i < data.count; i++) {
    float value = dflash_f16_value((*bits)[i]);
    if (!(value - value == 0))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s/%s: element %llu is not finite", node->path, name,
                              (unsigned long long)i);
  }
  return DFLASH_OK;
}

static DflashStatus read_arrays(const DflashGolden *golden, const DflashNode *node, DflashSubspace *subspace,
                                DflashError *error) {
  const DflashWanted mean = {DFLASH_ELEMENT_U16, 1, {golden->geometry.hidden}};
  const DflashWanted basis = {DFLASH_ELEMENT_U16, 2, {DFLASH_ANY, golden->geometry.hidden}};
  int64_t width;
  DflashStatus status = read_bits(golden, node, "mean", &mean, &subspace->mean, &width, error);
  if (status == DFLASH_OK) status = read_bits(golden, node, "basis", &basis, &subspace->basis, &subspace->rank, error);
  if (status == DFLASH_OK && (subspace->rank < 1 || subspace->rank > width))
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s/basis: rank %lld, expected 1 to %lld", node->path,
                              (long long)subspace->rank, (long long)width);
  if (status == DFLASH_OK && dflash_attribute_has(node, "phi_layer"))
    status = dflash_attribute_i64(node, "phi_layer", &subspace->phi_layer, error);
  return status;
}

static DflashStatus read_subspace(const DflashGolden *golden, const DflashNode *router, const char *name,
                                  DflashSubspace *subspace, DflashError *error) {
  DflashNode node;
  DflashStatus status = dflash_node_open(router, name, DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = read_arrays(golden, &node, subspace, error);
  dflash_node_close(&node);
  return status;
}

DflashStatus dflash_read_router(DflashGolden *golden, DflashError *error) {
  DflashNode node;
  if (!dflash_node_has(&golden->root, "router")) return DFLASH_OK;
  golden->router.present = 1;
  golden->router.hidden = golden->geometry.hidden;
  DflashStatus status = dflash_node_open(&golden->root, "router", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK) status = read_subspace(golden, &node, "block", &golden->router.block, error);
  if (status == DFLASH_OK) status = read_subspace(golden, &node, "chain", &golden->router.chain, error);
  dflash_node_close(&node);
  return status;
}

static DflashStatus read_rows(const DflashGolden *golden, const DflashNode *node, int64_t *count, float **rows,
                              double **margins, DflashError *error) {
  const DflashWanted wanted_rows = {DFLASH_ELEMENT_F32, 2, {DFLASH_ANY, golden->geometry.hidden}};
  DflashData data;
  DflashStatus status = dflash_dataset_copy(node, "rows", &wanted_rows, &golden->mapping, &data, error);
  if (status != DFLASH_OK) return status;
  *rows = data.data;
  *count = data.shape[0];
  const DflashWanted wanted_margins = {DFLASH_ELEMENT_F64, 1, {*count}};
  status = dflash_dataset_copy(node, "margin", &wanted_margins, &golden->mapping, &data, error);
  *margins = data.data;
  return status;
}

DflashStatus dflash_golden_router_rows(const DflashGolden *golden, int64_t *count, float **rows, double **margins,
                                       DflashError *error) {
  DflashNode node;
  *count = 0;
  *rows = NULL;
  *margins = NULL;
  dflash_h5_quiet();
  if (!golden->router.present) return DFLASH_OK;
  DflashStatus status = dflash_node_open(&golden->root, "router", DFLASH_NODE_GROUP, &node, error);
  if (status == DFLASH_OK && (dflash_node_has(&node, "rows") || dflash_node_has(&node, "margin")))
    status = read_rows(golden, &node, count, rows, margins, error);
  dflash_node_close(&node);
  if (status == DFLASH_OK) return DFLASH_OK;
  free(*rows);
  free(*margins);
  *count = 0;
  *rows = NULL;
  *margins = NULL;
  dflash_error_prefix(error, "%s", golden->path);
  return status;
}
