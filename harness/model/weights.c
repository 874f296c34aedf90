#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/geometry.h"
#include "model/storage.h"
#include "model/weights_table.h"

int64_t dflash_weight_count(const DflashGeometry *geometry) {
  return DFLASH_MODEL_WEIGHT_COUNT + DFLASH_LAYER_WEIGHT_COUNT * geometry->layers;
}

static void fill_entry(const DflashGeometry *geometry, const DflashWeightRow *row, int64_t layer,
                       DflashWeightEntry *entry) {
  *entry = (DflashWeightEntry){.kind = row->kind, .sidecar_storage = row->storage};
  if (layer >= 0)
    snprintf(entry->name, sizeof entry->name, "layers.%lld.%s", (long long)layer, row->name);
  else
    snprintf(entry->name, sizeof entry->name, "%s", row->name);
  while (entry->rank < 3 && row->sizes[entry->rank] != DFLASH_SIZE_NONE) {
    dflash_size_value(geometry, row->sizes[entry->rank], &entry->shape[entry->rank]);
    entry->rank++;
  }
}

void dflash_weight_entry(const DflashGeometry *geometry, int64_t index, DflashWeightEntry *entry) {
  int64_t layer;
  const DflashWeightRow *row = dflash_weight_row(index, &layer);
  fill_entry(geometry, row, layer, entry);
}

void dflash_weight_head_entry(const DflashGeometry *geometry, DflashWeightEntry *entry) {
  fill_entry(geometry, dflash_weight_head_row(), -1, entry);
}

/* Keeps a head_dim out of a damaged file from taking gigabytes for frequencies. */
static const int64_t largest_head_dim = (int64_t)1 << 24;

DflashStatus dflash_weight_set_open(const DflashGeometry *geometry, DflashWeightSet *set, DflashError *error) {
  *set = (DflashWeightSet){0};
  if (geometry->head_dim > largest_head_dim)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "head_dim is %lld; at most %lld is supported",
                            (long long)geometry->head_dim, (long long)largest_head_dim);
  set->layers = dflash_alloc((size_t)geometry->layers, sizeof *set->layers);
  set->inv_freq = dflash_alloc((size_t)(geometry->head_dim / 2), sizeof *set->inv_freq);
  if (!set->layers || !set->inv_freq) {
    dflash_weight_set_close(set);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the tensor list of %lld layers",
                            (long long)geometry->layers);
  }
  dflash_geometry_inv_freq(geometry, set->inv_freq);
  set->weights.inv_freq = set->inv_freq;
  set->weights.layers = set->layers;
  return DFLASH_OK;
}

void dflash_weight_set_close(DflashWeightSet *set) {
  free(set->layers);
  free(set->inv_freq);
  *set = (DflashWeightSet){0};
}

DflashTensor *dflash_weight_at(const DflashGeometry *geometry, DflashWeightSet *set, int64_t index) {
  if (index < 0 || index >= dflash_weight_count(geometry)) return NULL;
  int64_t layer;
  const DflashWeightRow *row = dflash_weight_row(index, &layer);
  char *base = layer < 0 ? (char *)&set->weights : (char *)&set->layers[layer];
  return (DflashTensor *)(void *)(base + row->offset);
}
