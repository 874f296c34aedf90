/* The input is the JSON of a geometry. What passes must come back equal, and no size derived from it may overflow. */
#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/geometry.h"
#include "model/stage_table.h"
#include "model/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

static void check_round_trip(const DflashGeometry *geometry) {
  cJSON *object = dflash_geometry_to_json(geometry);
  DflashGeometry again;
  require(object != NULL);
  require(dflash_geometry_from_json(object, &again, NULL) == DFLASH_OK);
  require(dflash_geometry_equal(geometry, &again));
  cJSON_Delete(object);
}

static void check_weights(const DflashGeometry *geometry) {
  for (int64_t i = 0; i < dflash_weight_count(geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(geometry, i, &entry);
    int64_t bytes = 4;
    for (int32_t d = 0; d < entry.rank; d++) require(!__builtin_mul_overflow(bytes, entry.shape[d], &bytes));
  }
}

static void check_stages(const DflashGeometry *geometry) {
  DflashRunSizes sizes = {.rows = geometry->block, .n_draft = geometry->block - 1, .head_width = geometry->vocab};
  sizes.push_rows = 3;
  sizes.context_len = INT64_MAX;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(geometry, i, &stage, &layer); i++) {
    int64_t shape[3];
    char label[64];
    dflash_stage_label(stage, layer, label);
    dflash_stage_shape(geometry, &sizes, stage, shape);
    require(dflash_stage_activation_bytes(geometry, &sizes, stage, layer) >= 0);
    require(dflash_stage_weight_elements(geometry, &sizes, stage) >= 0);
    if (sizes.rows <= 64) require(dflash_stage_operations(geometry, &sizes, stage, layer) >= 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cJSON *object = cJSON_ParseWithLength((const char *)data, size);
  DflashGeometry geometry;
  DflashError error = {0};
  DflashStatus status = dflash_geometry_from_json(object, &geometry, &error);
  if (status == DFLASH_OK) {
    check_round_trip(&geometry);
    check_weights(&geometry);
    check_stages(&geometry);
  } else {
    require(error.status == status && error.message[0] != '\0');
  }
  cJSON_Delete(object);
  return 0;
}
