#include "golden/generate_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "base/file.h"
#include "golden/cases.h"
#include "golden/draw.h"
#include "golden/generate_i8.h"
#include "golden/generate_router.h"
#include "model/storage.h"

/* ---- the place ---- */

/* statvfs of the folder that `path` lies in. */
static DflashStatus look_at_folder(const char *path, struct statvfs *about, DflashError *error) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  if (!folder) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its folder's name", path);
  DflashStatus status = DFLASH_OK;
  if (statvfs(folder, about) != 0)
    status = dflash_error_set(error, DFLASH_IO, "%s: its folder %s: %s", path, folder, strerror(errno));
  free(folder);
  return status;
}

DflashStatus dflash_space_place(const char *path, DflashError *error) {
  struct statvfs about;
  DflashOutput output;
  if (!*path) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "the golden's file name is empty");
  DflashStatus status = look_at_folder(path, &about, error);
  if (status == DFLASH_OK) status = dflash_output_open(&output, path, error);
  if (status == DFLASH_OK) dflash_output_abort(&output);
  return status;
}

DflashStatus dflash_space_check(const char *path, uint64_t bytes, DflashError *error) {
  struct statvfs about = {0};
  uint64_t room;
  DflashStatus status = look_at_folder(path, &about, error);
  if (status != DFLASH_OK || about.f_blocks == 0) return status;
  if (__builtin_mul_overflow((uint64_t)about.f_bavail, (uint64_t)about.f_frsize, &room) || bytes <= room)
    return DFLASH_OK;
  return dflash_error_set(error, DFLASH_IO, "%s: not enough space: about %.1f MB are needed, %.1f MB are free", path,
                          (double)bytes * 1e-6, (double)room * 1e-6);
}

/* ---- the size ---- */

enum { OBJECT_BYTES = 1536 }; /* what HDF5 spends on a dataset and, with one layer, on a group around it */

static void add(uint64_t *sum, uint64_t bytes) {
  if (__builtin_add_overflow(*sum, bytes, sum)) *sum = UINT64_MAX;
}

static void add_array(uint64_t *sum, int64_t rows, int64_t width, int64_t element_bytes) {
  uint64_t bytes;
  bool fits = !__builtin_mul_overflow((uint64_t)rows, (uint64_t)width, &bytes) &&
              !__builtin_mul_overflow(bytes, (uint64_t)element_bytes, &bytes);
  add(sum, fits ? bytes : UINT64_MAX);
  add(sum, OBJECT_BYTES);
}

/* Of a tensor that is there, or of the one that will be drawn. */
static DflashStatus add_tensor(uint64_t *sum, const DflashMaterial *m, const DflashWeightEntry *entry,
                               const DflashTensor *found, DflashError *error) {
  uint64_t bytes = found ? found->bytes : 0;
  DflashTensor drawn = {.rank = entry->rank, .storage = dflash_draw_storage(entry, m->recipe.storage)};
  memcpy(drawn.shape, entry->shape, sizeof drawn.shape);
  if (!found) {
    DflashStatus status =
        dflash_storage_bytes(drawn.storage, dflash_tensor_rows(&drawn), dflash_tensor_cols(&drawn), &bytes, error);
    if (status != DFLASH_OK) dflash_error_prefix(error, "%s", entry->name);
    if (status != DFLASH_OK) return status;
  }
  add(sum, bytes);
  add(sum, OBJECT_BYTES);
  return DFLASH_OK;
}

static DflashStatus add_weights(uint64_t *sum, const DflashMaterial *m, DflashError *error) {
  DflashWeightSet view = {.weights = m->weights};
  DflashWeightEntry entry;
  view.layers = (DflashLayerWeights *)(uintptr_t)m->weights.layers;
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++) {
    dflash_weight_entry(&m->geometry, i, &entry);
    const DflashTensor *found = m->recipe.weights_path ? dflash_weight_at(&m->geometry, &view, i) : NULL;
    DflashStatus status = add_tensor(sum, m, &entry, found, error);
    if (status != DFLASH_OK) return status;
  }
  dflash_weight_head_entry(&m->geometry, &entry);
  return add_tensor(sum, m, &entry, m->has_head ? &m->head.tensor : NULL, error);
}

/* A value and its two scales. */
static void add_value(uint64_t *sum, int64_t rows, int64_t width) {
  for (int i = 0; i < 3; i++) add_array(sum, rows, width, sizeof(float));
}

static void add_stages(uint64_t *sum, const DflashGeometry *g, const DflashRunSizes *sizes) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    if (stage != DFLASH_STAGE_SELECT)
      add_value(sum, dflash_stage_rows(g, sizes, stage), dflash_stage_width(g, sizes, stage));
  for (int64_t i = 0; i < 2 * g->layers; i++) add_value(sum, sizes->context_len, g->kv_heads * g->head_dim);
}

/* Values only, of every stage: nearly all differ. */
static void add_i8_stages(uint64_t *sum, const DflashGeometry *g, const DflashRunSizes *sizes) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    if (stage != DFLASH_STAGE_SELECT)
      add_array(sum, dflash_stage_rows(g, sizes, stage), dflash_stage_width(g, sizes, stage), sizeof(float));
}

static DflashStatus add_case(uint64_t *sum, const DflashMaterial *m, const DflashCasePlan *plan, DflashError *error) {
  const DflashGeometry *g = &m->geometry;
  DflashRunSizes sizes;
  int64_t first;
  DflashStatus status = dflash_material_sizes(plan, &sizes, &first, error);
  if (status != DFLASH_OK) return status;
  add_array(sum, plan->tap_rows, dflash_geometry_tap_width(g), sizeof(float));
  add_array(sum, plan->rows, g->hidden, sizeof(float));
  add_stages(sum, g, &sizes);
  if (dflash_profiles_i8(m->recipe.profiles)) add_i8_stages(sum, g, &sizes);
  add_array(sum, plan->n_draft, 2, sizeof(int32_t));
  add_array(sum, plan->n_draft, g->selector_top, sizeof(int32_t) + sizeof(double) + 2 * sizeof(float));
  return DFLASH_OK;
}

DflashStatus dflash_space_needed(const DflashMaterial *m, uint64_t *bytes, DflashError *error) {
  *bytes = 64 * OBJECT_BYTES; /* the root, the geometry, the recipe, groups */
  if (m->has_sidecar && m->sidecar.router.present) {
    add_array(bytes, m->sidecar.router.block.rank + m->sidecar.router.chain.rank + 2, m->geometry.hidden, 2);
    add_array(bytes, DFLASH_ROUTER_ROWS, m->geometry.hidden + 2, sizeof(float));
  }
  DflashStatus status = add_weights(bytes, m, error);
  for (int64_t i = 0; status == DFLASH_OK && i < m->plan_count; i++) status = add_case(bytes, m, &m->plans[i], error);
  return status;
}
