#include "golden/recipe.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "golden/cases.h"
#include "golden/draw.h"
#include "golden/generate_i8.h"
#include "golden/plan.h"

void dflash_generator_text(char text[64]) {
  snprintf(text, 64, "dflash-harness, generator %d", DFLASH_GENERATOR_VERSION);
}

typedef struct Defaults {
  const char *preset, *cases;
  int64_t context;
} Defaults;

/* The last row serves weights from files and presets without a row. */
static const Defaults DEFAULTS[] = {
    {"qwen3.8-27b", "main", 2048},
    {"small", "main,rewind,hole,cut,shortlist,small-rows,far", 80},
    {"tiny", "*", 20},
    {"", "main", 256},
};

static const Defaults *defaults_of(const char *preset) {
  size_t i = 0;
  while (*DEFAULTS[i].preset && strcmp(DEFAULTS[i].preset, preset) != 0) i++;
  return &DEFAULTS[i];
}

static DflashStatus unknown_preset(const char *preset, DflashError *error) {
  DflashText list = {0};
  for (size_t i = 0; i < dflash_preset_count(); i++)
    dflash_text_append(&list, "%s%s", i ? ", " : "", dflash_preset(i)->name);
  DflashStatus status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "unknown preset '%s'; known are %s", preset,
                                         list.data ? list.data : "(memory is out)");
  dflash_text_free(&list);
  return status;
}

DflashStatus dflash_recipe_open(const char *preset, DflashRecipe *recipe, DflashError *error) {
  *recipe = (DflashRecipe){.seed = 1, .storage = "sidecar", .cases = ""};
  recipe->rows = recipe->n_draft = recipe->head_width = recipe->context = -1;
  if (!preset || !*preset) return DFLASH_OK;
  for (size_t i = 0; i < dflash_preset_count(); i++) {
    const DflashPreset *known = dflash_preset(i);
    if (strcmp(known->name, preset) != 0) continue;
    recipe->geometry = known->geometry;
    snprintf(recipe->preset, sizeof recipe->preset, "%s", known->name);
    return DFLASH_OK;
  }
  return unknown_preset(preset, error);
}

static DflashStatus check_range(const char *name, int64_t value, int64_t least, int64_t most, DflashError *error) {
  if (value >= least && value <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s is %lld, valid are %lld to %lld", name, (long long)value,
                          (long long)least, (long long)most);
}

static DflashStatus check_storage(const char *storage, DflashError *error) {
  const DflashWeightEntry any = {.kind = DFLASH_KIND_MATRIX};
  if (dflash_draw_storage(&any, storage) >= 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "unknown storage '%s'; known are sidecar, f32, f16, bf16, q8_2f", storage);
}

static DflashStatus check_sizes(const DflashRecipe *r, DflashError *error) {
  const DflashGeometry *g = &r->geometry;
  DflashStatus status = check_range("rows", r->rows, 2, g->block, error);
  if (status == DFLASH_OK) status = check_range("n_draft", r->n_draft, 1, r->rows - 1, error);
  if (status == DFLASH_OK) status = check_range("head_width", r->head_width, g->selector_top, g->vocab, error);
  if (status == DFLASH_OK) status = check_range("context", r->context, 0, INT64_C(1) << 20, error);
  return status;
}

static DflashStatus check_stress(const DflashRecipe *r, DflashError *error) {
  char names[80];
  dflash_stress_text(r->stress, names);
  const int head = DFLASH_STRESS_NEGATIVE | DFLASH_STRESS_CLUSTERED;
  if (r->stress && r->weights_path)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "stress '%s' needs drawn weights", names);
  if (r->stress & head && r->head_path)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "stress '%s' needs a drawn head", names);
  return DFLASH_OK;
}

static DflashStatus resolve_plans(DflashRecipe *resolved, char **cases, DflashError *error) {
  if (resolved->cases && *resolved->cases)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a recipe has cases or plans, not both");
  DflashStatus status = dflash_plans_resolve(resolved, error);
  if (status != DFLASH_OK) return status;
  *cases = strdup("");
  resolved->cases = *cases;
  return *cases ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the list of cases");
}

DflashStatus dflash_recipe_resolve(const DflashRecipe *recipe, DflashRecipe *resolved, char **cases,
                                   DflashError *error) {
  *cases = NULL;
  *resolved = *recipe;
  const Defaults *defaults = defaults_of(recipe->preset);
  DflashStatus status = dflash_geometry_check(&resolved->geometry, error);
  if (status == DFLASH_OK) status = check_storage(resolved->storage, error);
  if (status == DFLASH_OK) status = dflash_profiles_check(resolved->profiles, error);
  if (status == DFLASH_OK) status = check_stress(resolved, error);
  if (status != DFLASH_OK) return status;
  if (resolved->rows < 0) resolved->rows = resolved->geometry.block;
  if (resolved->n_draft < 0) resolved->n_draft = resolved->rows - 1;
  if (resolved->head_width < 0) resolved->head_width = resolved->geometry.vocab;
  if (resolved->context < 0) resolved->context = defaults->context;
  status = check_sizes(resolved, error);
  if (status != DFLASH_OK) return status;
  if (recipe->plan_count) return resolve_plans(resolved, cases, error);
  const char *patterns = recipe->cases && *recipe->cases ? recipe->cases : defaults->cases;
  status = dflash_case_select(resolved, patterns, cases, error);
  resolved->cases = *cases;
  return status;
}
