/* A golden file from a recipe. */
#include "golden/generate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"
#include "golden/cases.h"
#include "golden/generate_material.h"
#include "golden/generate_router.h"
#include "golden/generate_space.h"
#include "golden/recipe.h"

typedef struct Make {
  const DflashMaterial *material;
  DflashPool *pool;
  DflashGoldenWriter *writer;
  void (*progress)(const char *line);
  int64_t cases;
} Make;

__attribute__((format(printf, 2, 3))) static void say(const Make *make, const char *format, ...) {
  char line[160];
  va_list arguments;
  if (!make->progress) return;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  make->progress(line);
}

static DflashStatus write_recipe(const Make *make, DflashError *error) {
  char *text = dflash_recipe_to_json(&make->material->recipe);
  if (!text) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the recipe");
  DflashStatus status = dflash_golden_write_attribute(make->writer, "recipe", text, error);
  free(text);
  return status;
}

/* What cannot be seen from the values: where weights came from. */
static DflashStatus write_note(const Make *make, DflashError *error) {
  const DflashMaterial *m = make->material;
  DflashText note = {0};
  if (m->has_checkpoint) dflash_text_append(&note, "weights of checkpoint %s", m->recipe.weights_path);
  if (m->has_sidecar) dflash_text_append(&note, "weights of sidecar %s", m->recipe.weights_path);
  if (m->has_head)
    dflash_text_append(&note, "%shead %s of %s", note.size ? "; " : "", m->head.name, m->recipe.head_path);
  DflashStatus status = DFLASH_OK;
  if (note.failed)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the note");
  else if (note.size)
    status = dflash_golden_write_attribute(make->writer, "note", note.data, error);
  dflash_text_free(&note);
  return status;
}

static DflashStatus write_attributes(const Make *make, DflashError *error) {
  const DflashMaterial *m = make->material;
  char generator[64];
  dflash_generator_text(generator);
  DflashStatus status = dflash_golden_write_attribute(make->writer, "generator", generator, error);
  if (status == DFLASH_OK) status = write_recipe(make, error);
  if (status == DFLASH_OK) status = write_note(make, error);
  if (status == DFLASH_OK && m->has_sidecar && *m->sidecar.trunk_hash64)
    status = dflash_golden_write_attribute(make->writer, "trunk_hash64", m->sidecar.trunk_hash64, error);
  return status;
}

static DflashStatus write_weights(const Make *make, DflashError *error) {
  const DflashMaterial *m = make->material;
  DflashWeightSet view = {.weights = m->weights};
  view.layers = (DflashLayerWeights *)(uintptr_t)m->weights.layers;
  for (int64_t i = 0; i < dflash_weight_count(&m->geometry); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&m->geometry, i, &entry);
    say(make, "writing %s", entry.name);
    const DflashTensor *tensor = dflash_weight_at(&m->geometry, &view, i);
    DflashStatus status = dflash_golden_write_weight(make->writer, entry.name, tensor, error);
    if (status != DFLASH_OK) return status;
  }
  say(make, "writing the head");
  DflashStatus status = dflash_golden_write_weight(make->writer, "/target/head", &m->weights.head, error);
  if (status == DFLASH_OK && m->has_sidecar && m->sidecar.router.present)
    status = dflash_router_write(&m->sidecar.router, m->recipe.seed, make->writer, error);
  return status;
}

static DflashStatus write_case(const Make *make, const DflashCasePlan *plan, DflashError *error) {
  const char *name = plan->name;
  DflashCase c;
  say(make, "case %s: drawing", name);
  DflashStatus status = dflash_material_inputs(make->material, plan, make->pool, &c, error);
  if (status != DFLASH_OK) return status;
  say(make, "case %s: %" PRId64 " rows after %" PRId64 " of context", name, c.sizes.rows, c.sizes.context_len);
  status = dflash_material_values(make->material, plan, make->pool, &c, error);
  if (status == DFLASH_OK) status = dflash_golden_write_case(make->writer, &c, error);
  dflash_case_close(&c);
  return status;
}

static DflashStatus write_cases(Make *make, DflashError *error) {
  for (int64_t i = 0; i < make->material->plan_count; i++, make->cases++) {
    DflashStatus status = write_case(make, &make->material->plans[i], error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static DflashStatus write_golden(Make *make, const char *path, DflashMakeResult *result, DflashError *error) {
  const DflashMaterial *m = make->material;
  DflashStatus status = dflash_golden_create(path, &m->geometry, m->weights.inv_freq, &make->writer, error);
  if (status != DFLASH_OK) return status;
  status = write_attributes(make, error);
  if (status == DFLASH_OK) status = write_weights(make, error);
  if (status == DFLASH_OK) status = write_cases(make, error);
  if (status != DFLASH_OK) {
    dflash_golden_abort(make->writer);
    return status;
  }
  say(make, "hashing");
  DflashGoldenHashes hashes = {0};
  status = dflash_golden_commit(make->writer, &hashes, error);
  memcpy(result->inputs_hash, hashes.inputs, sizeof hashes.inputs);
  memcpy(result->values_hash, hashes.values, sizeof hashes.values);
  memcpy(result->scales_hash, hashes.scales, sizeof hashes.scales);
  return status;
}

/* Drawing begins when nothing is left that can be refused without it. */
static DflashStatus open_material(const Make *make, const DflashRecipe *recipe, const char *path,
                                  DflashMaterial **material, DflashError *error) {
  uint64_t bytes = 0;
  DflashStatus status = dflash_space_place(path, error);
  if (status == DFLASH_OK) status = dflash_material_find(recipe, material, error);
  if (status == DFLASH_OK) status = dflash_space_needed(*material, &bytes, error);
  if (status == DFLASH_OK) status = dflash_space_check(path, bytes, error);
  if (status != DFLASH_OK) return status;
  say(make, "drawing weights");
  return dflash_material_fill(*material, make->pool, error);
}

DflashStatus dflash_golden_make(const DflashRecipe *recipe, const char *path, int threads,
                                void (*progress)(const char *line), DflashMakeResult *result, DflashError *error) {
  DflashMaterial *material = NULL;
  Make make = {.pool = dflash_pool_open(threads), .progress = progress};
  *result = (DflashMakeResult){0};
  if (!make.pool) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cannot start %d threads", threads);
  DflashStatus status = open_material(&make, recipe, path, &material, error);
  make.material = material;
  if (status == DFLASH_OK) status = write_golden(&make, path, result, error);
  struct stat about;
  if (status == DFLASH_OK && stat(path, &about) == 0) result->bytes = (uint64_t)about.st_size;
  result->cases = make.cases;
  dflash_material_close(material);
  dflash_pool_close(make.pool);
  return status;
}
