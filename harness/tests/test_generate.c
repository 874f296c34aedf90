#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/file.h"
#include "golden/generate_space.h"
#include "golden_file.h"
#include "model/sidecar.h"

/* The same on every machine; a change means another generator version. */
static const char TINY_INPUTS[] = "a1c562e17e3b29f40c27327ad7702ff8f2093cd53fc9f02b28215a9ad082ed68";
static const char TINY_SCALES[] = "5c72bb25e58e072e75f9ca3effd71b9542bfa687d36a7d0c0c31d99937d69213";
static const char SMALL_INPUTS[] = "e43da7f042a63b710a84dc8e400b0588df8a1c61e019bf91a2da04308221e687";

static void expect_same_files(const char *a, const char *b) {
  DflashMapping one, two;
  assert_int_equal(dflash_map_file(a, &one, NULL), DFLASH_OK);
  assert_int_equal(dflash_map_file(b, &two, NULL), DFLASH_OK);
  assert_true(one.size == two.size);
  assert_memory_equal(one.data, two.data, one.size);
  dflash_unmap_file(&one);
  dflash_unmap_file(&two);
}

/* All kinds of cases but the exact ones. */
static void tiny_is_pinned_and_right(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "");
  DflashMakeResult result = golden_make(&recipe, SCRATCH("tiny.h5"), 2);
  assert_string_equal(result.inputs_hash, TINY_INPUTS);
  assert_string_equal(result.scales_hash, TINY_SCALES);
  assert_int_equal(result.cases, dflash_case_kind_count() - 2);
  struct stat about;
  assert_int_equal(stat(SCRATCH("tiny.h5"), &about), 0);
  assert_true(result.bytes == (uint64_t)about.st_size);
  golden_is_right(SCRATCH("tiny.h5"));
}

static void small_is_pinned_and_right(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("small", "");
  DflashMakeResult result = golden_make(&recipe, SCRATCH("small.h5"), 1);
  assert_string_equal(result.inputs_hash, SMALL_INPUTS);
  golden_is_right(SCRATCH("small.h5"));
  unlink(SCRATCH("small.h5"));
}

static void threads_change_nothing(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main,rewind,ties");
  DflashMakeResult one = golden_make(&recipe, SCRATCH("one.h5"), 1),
                   three = golden_make(&recipe, SCRATCH("three.h5"), 3);
  assert_string_equal(one.inputs_hash, three.inputs_hash);
  assert_string_equal(one.values_hash, three.values_hash);
  assert_string_equal(one.scales_hash, three.scales_hash);
  expect_same_files(SCRATCH("one.h5"), SCRATCH("three.h5"));
  unlink(SCRATCH("three.h5"));
}

static void a_seed_and_a_storage_change_the_inputs(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main");
  DflashMakeResult first = golden_make(&recipe, SCRATCH("seed.h5"), 1);
  recipe.seed++;
  DflashMakeResult second = golden_make(&recipe, SCRATCH("seed.h5"), 1);
  assert_string_not_equal(first.inputs_hash, second.inputs_hash);
  assert_string_not_equal(first.values_hash, second.values_hash);
  snprintf(recipe.storage, sizeof recipe.storage, "f16");
  DflashMakeResult third = golden_make(&recipe, SCRATCH("seed.h5"), 1);
  assert_string_not_equal(third.inputs_hash, second.inputs_hash);
  unlink(SCRATCH("seed.h5"));
}

/* Makes a golden again from the recipe it carries. */
static void expect_repeatable(const char *path) {
  DflashGolden *golden = golden_open(path);
  DflashRecipe recipe;
  cJSON *owner;
  DflashError error = {0};
  const char *text = dflash_golden_attribute(golden, "recipe");
  if (dflash_recipe_from_json(text, &recipe, &owner, &error) != DFLASH_OK) fail_msg("%s", error.message);
  golden_make(&recipe, SCRATCH("again.h5"), 1);
  expect_same_files(path, SCRATCH("again.h5"));
  unlink(SCRATCH("again.h5"));
  cJSON_Delete(owner);
  dflash_golden_close(golden);
}

static void a_golden_is_made_again_from_its_recipe(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "two-rows,shortlist");
  recipe.context = 3, recipe.seed = UINT64_MAX - 5, recipe.n_draft = 4;
  golden_make(&recipe, SCRATCH("recipe.h5"), 1);
  expect_repeatable(SCRATCH("recipe.h5"));
  unlink(SCRATCH("recipe.h5"));
}

static void make_shipped(const char *name) {
  char path[512], *text;
  uint64_t size;
  DflashRecipe recipe;
  cJSON *owner;
  DflashError error = {0};
  snprintf(path, sizeof path, "%s/../recipes/%s", DFLASH_GOLDEN_FOLDER, name);
  assert_int_equal(dflash_read_file(path, 1 << 16, &text, &size, &error), DFLASH_OK);
  assert_int_equal(dflash_recipe_from_json(text, &recipe, &owner, &error), DFLASH_OK);
  DflashMakeResult result = golden_make(&recipe, SCRATCH("shipped.h5"), 1);
  if (result.bytes > 3000000) fail_msg("%s makes %llu bytes", name, (unsigned long long)result.bytes);
  golden_is_right(SCRATCH("shipped.h5"));
  expect_repeatable(SCRATCH("shipped.h5"));
  cJSON_Delete(owner);
  free(text);
}

static void shipped_recipes_make_small_right_goldens(void **state) {
  (void)state;
  DIR *folder = opendir(DFLASH_GOLDEN_FOLDER "/../recipes");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (strstr(entry->d_name, ".json")) make_shipped(entry->d_name);
  closedir(folder);
  unlink(SCRATCH("shipped.h5"));
}

/* ---- statistics ---- */

static double dot(const float *a, const float *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* Entropy of one row's and head's attention over context and block, as a share of the largest; no window. */
static double attention_entropy(const DflashCase *c, const DflashGeometry *g, int64_t layer, int64_t row,
                                int64_t head) {
  int64_t held = c->sizes.context_len, n = held + c->sizes.rows, dim = g->head_dim,
          kv = head / (g->heads / g->kv_heads);
  const float *q = dflash_case_value(c, DFLASH_STAGE_ATTN_Q, layer)->data + (row * g->heads + head) * dim;
  const float *own = dflash_case_value(c, DFLASH_STAGE_ATTN_K, layer)->data;
  double sum = 0, weighted = 0;
  for (int64_t i = 0; i < n; i++) {
    const float *k =
        i < held ? c->held_k[layer].data + (i * g->kv_heads + kv) * dim : own + ((i - held) * g->kv_heads + kv) * dim;
    double score = dot(q, k, dim) / sqrt((double)dim), weight = exp(score);
    sum += weight, weighted += weight * score;
  }
  return (log(sum) - weighted / sum) / log((double)n);
}

static void check_statistics(const char *preset, uint64_t seed, int *differ, int *rows) {
  DflashRecipe recipe = golden_recipe(preset, "main");
  DflashCase c;
  DflashError error = {0};
  recipe.seed = seed;
  assert_int_equal(dflash_geometry_set(&recipe.geometry, "windows", "", &error), DFLASH_OK);
  recipe.geometry.window = 0;
  if (dflash_case_draw(&recipe, "main", &c, &error) != DFLASH_OK) fail_msg("%s", error.message);
  double entropy = 0;
  for (int64_t head = 0; head < recipe.geometry.heads; head++)
    entropy += attention_entropy(&c, &recipe.geometry, 0, head % c.sizes.rows, head) / (double)recipe.geometry.heads;
  assert_true(entropy > 0.3 && entropy < 0.9);
  for (int64_t i = 0; i < c.sizes.n_draft; i++, ++*rows) *differ += c.tokens.chosen[i] != c.tokens.plain[i];
  const DflashValue *first = dflash_case_value(&c, DFLASH_STAGE_ATTN_OUT, 0);
  const DflashValue *last = dflash_case_value(&c, DFLASH_STAGE_MLP_OUT, recipe.geometry.layers - 1);
  int64_t n = first->rows * first->width;
  double growth = sqrt(dot(last->data, last->data, n) / dot(c.h, c.h, n));
  assert_true(growth > 1.5 && growth < 20.0);
  dflash_case_close(&c);
}

static void drawn_values_are_those_of_a_working_model(void **state) {
  (void)state;
  int differ = 0, rows = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) check_statistics("tiny", seed, &differ, &rows);
  check_statistics("small", 1, &differ, &rows);
  if (10 * differ < 2 * rows || 10 * differ > 9 * rows) fail_msg("the walk decides %d of %d rows", differ, rows);
}

/* ---- small rows ---- */

/* Rows above eps, about it and far below it. */
static void expect_around_eps(const DflashGeometry *g, const float *data, int64_t rows) {
  int above = 0, about = 0, below = 0;
  for (int64_t row = 0; row < rows; row++) {
    const float *x = data + row * g->hidden;
    const double share = dot(x, x, g->hidden) / (double)g->hidden / g->eps;
    assert_true(share > 1e-4 && share < 1e3);
    above += share > 1, about += share > 0.1 && share < 10, below += share < 0.05;
  }
  assert_true(above >= 1 && about >= 2 && below >= 1);
}

static void small_rows_lie_about_eps(void **state) {
  (void)state;
  static const double sizes[] = {0, 1e-12, 3e-6, 0.05};
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    DflashRecipe recipe = golden_recipe(i % 2 ? "small" : "tiny", "small-rows");
    DflashCase c;
    DflashError error = {0};
    if (sizes[i / 2] > 0) recipe.geometry.eps = sizes[i / 2];
    if (dflash_case_draw(&recipe, "small-rows", &c, &error) != DFLASH_OK) fail_msg("%s", error.message);
    expect_around_eps(&recipe.geometry, c.h, c.sizes.rows);
    const DflashValue *fc = dflash_case_value(&c, DFLASH_STAGE_CONTEXT_FC, 0);
    expect_around_eps(&recipe.geometry, fc->data, fc->rows);
    dflash_case_close(&c);
  }
}

/* ---- ties ---- */

static void ties_are_ties(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "ties");
  DflashCase c;
  DflashError error = {0};
  if (dflash_case_draw(&recipe, "ties", &c, &error) != DFLASH_OK) fail_msg("%s", error.message);
  int64_t width = c.sizes.head_width, top = recipe.geometry.selector_top;
  for (int64_t row = 0; row < c.sizes.n_draft; row++) {
    const float *logits = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0)->data + row * width;
    const int32_t *candidates = c.tokens.candidates + row * top;
    assert_true(logits[candidates[0]] == logits[candidates[1]] && candidates[0] < candidates[1]);
    int64_t outside = 0; /* tokens as good as the last candidate that are not candidates */
    for (int64_t i = candidates[top - 1] + 1; i < width; i++) outside += logits[i] == logits[candidates[top - 1]];
    assert_true(outside > 0);
    assert_true(c.tokens.plain[row] == candidates[0]);
  }
  dflash_case_close(&c);
}

/* ---- refusals ---- */

static void expect_failure(const DflashRecipe *recipe, DflashStatus status, const char *part) {
  DflashMakeResult result;
  DflashError error = {0};
  unlink(SCRATCH("failed.h5"));
  assert_int_equal(dflash_golden_make(recipe, SCRATCH("failed.h5"), 1, NULL, &result, &error), status);
  if (!strstr(error.message, part)) fail_msg("'%s' does not say '%s'", error.message, part);
  assert_int_equal(access(SCRATCH("failed.h5"), F_OK), -1);
}

static void what_cannot_be_made_leaves_no_file(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main");
  recipe.geometry.eps = 1e300; /* every norm gives zeros */
  expect_failure(&recipe, DFLASH_INVALID_DATA, "context.norm");
  recipe = golden_recipe("tiny", "main");
  recipe.geometry.hidden = 72; /* no multiple of 32 */
  expect_failure(&recipe, DFLASH_INVALID_DATA, "q_proj");
  recipe = golden_recipe("tiny", "main");
  recipe.geometry.kv_heads = 3;
  expect_failure(&recipe, DFLASH_INVALID_DATA, "kv_heads");
  recipe = golden_recipe("tiny", "main");
  snprintf(recipe.storage, sizeof recipe.storage, "q4tp");
  expect_failure(&recipe, DFLASH_INVALID_ARGUMENT, "q4tp");
  recipe = golden_recipe("tiny", "main");
  recipe.weights_path = SCRATCH("no such file");
  expect_failure(&recipe, DFLASH_IO, "no such file");
}

static void untrusted_stages_are_made_when_asked_for(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main");
  recipe.geometry.eps = 1e300;
  recipe.allow_untrusted = 1;
  golden_make(&recipe, SCRATCH("untrusted.h5"), 1);
  golden_is_right(SCRATCH("untrusted.h5"));
  unlink(SCRATCH("untrusted.h5"));
}

/* ---- import ---- */

static void a_sidecar_is_imported(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("", "main,short-window,hole");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  recipe.context = 30;
  golden_make(&recipe, SCRATCH("sidecar.h5"), 1);
  golden_is_right(SCRATCH("sidecar.h5"));
  expect_repeatable(SCRATCH("sidecar.h5"));
  DflashGolden *made = golden_open(SCRATCH("sidecar.h5")),
               *known = golden_open(DFLASH_GOLDEN_FOLDER "/sidecar-rewind.h5");
  assert_true(dflash_geometry_equal(dflash_golden_geometry(made), dflash_golden_geometry(known)));
  const DflashTensor *a = &dflash_golden_weights(made)->layers[1].gate_proj;
  const DflashTensor *b = &dflash_golden_weights(known)->layers[1].gate_proj;
  assert_true(a->storage == DFLASH_STORAGE_Q4TP && a->bytes == b->bytes);
  assert_memory_equal(a->data, b->data, a->bytes);
  DflashSidecar sidecar;
  assert_int_equal(dflash_sidecar_open(recipe.weights_path, &sidecar, NULL), DFLASH_OK);
  assert_string_equal(dflash_golden_attribute(made, "trunk_hash64"), sidecar.trunk_hash64);
  dflash_sidecar_close(&sidecar);
  dflash_golden_close(made);
  dflash_golden_close(known);
  unlink(SCRATCH("sidecar.h5"));
}

/* ---- the target of a sidecar ---- */

static void expect_target(const char *target, const char *part) {
  DflashRecipe recipe = golden_recipe("", "main");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  recipe.context = 4;
  recipe.target_hash = target;
  if (part) {
    expect_failure(&recipe, strstr(part, "is not") ? DFLASH_INVALID_ARGUMENT : DFLASH_INVALID_DATA, part);
    return;
  }
  golden_make(&recipe, SCRATCH("target.h5"), 1);
  expect_repeatable(SCRATCH("target.h5"));
  unlink(SCRATCH("target.h5"));
}

static void a_target_is_compared(void **state) {
  (void)state;
  DflashSidecar sidecar;
  char hash[65], other[160];
  assert_int_equal(dflash_sidecar_open(DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf", &sidecar, NULL), DFLASH_OK);
  snprintf(hash, sizeof hash, "%s", sidecar.trunk_hash64);
  dflash_sidecar_close(&sidecar);
  assert_true(*hash != '\0');
  expect_target(hash, NULL);
  snprintf(other, sizeof other, "0x00%s", hash);
  for (char *at = other + 2; *at; at++) *at = (char)(*at >= 'a' ? *at - 'a' + 'A' : *at);
  expect_target(other, NULL);
  snprintf(other, sizeof other, "belongs to the target with trunk_hash64 %s, expected 12ab", hash);
  expect_target("12ab", other);
  expect_target("0", "expected 0");
  expect_target("", "'' is not 1 to 64 hex digits");
  expect_target("0x", "'0x' is not");
  expect_target("12g", "'12g' is not");
  expect_target("00000000000000000000000000000000000000000000000000000000000000001", "' is not 1 to 64");
}

static void a_target_needs_a_sidecar_that_names_one(void **state) {
  (void)state;
  DflashSidecar sidecar;
  const char *const file = SCRATCH("unbound.dflash.cmf");
  DflashRecipe recipe = golden_recipe("tiny", "main");
  recipe.target_hash = "ab";
  expect_failure(&recipe, DFLASH_INVALID_ARGUMENT, "these weights are drawn");
  recipe = golden_recipe("", "main");
  recipe.target_hash = "ab";
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint";
  expect_failure(&recipe, DFLASH_INVALID_ARGUMENT, "these weights are a checkpoint's");
  assert_int_equal(dflash_sidecar_open(DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf", &sidecar, NULL), DFLASH_OK);
  assert_int_equal(dflash_sidecar_write(file, &sidecar.geometry, &sidecar.set.weights, NULL, NULL, NULL), DFLASH_OK);
  dflash_sidecar_close(&sidecar);
  recipe.weights_path = file;
  expect_failure(&recipe, DFLASH_INVALID_DATA, "names no target");
  recipe.target_hash = NULL;
  golden_make(&recipe, SCRATCH("target.h5"), 1);
  DflashGolden *golden = golden_open(SCRATCH("target.h5"));
  assert_string_equal(dflash_golden_attribute(golden, "trunk_hash64"), "");
  dflash_golden_close(golden);
  unlink(SCRATCH("target.h5"));
  unlink(file);
}

/* ---- space ---- */

/* Never less than the file takes, and not much more. */
static void expect_estimate(const DflashRecipe *recipe) {
  DflashMaterial *material;
  uint64_t needed;
  DflashMakeResult result = golden_make(recipe, SCRATCH("space.h5"), 1);
  assert_int_equal(dflash_material_find(recipe, &material, NULL), DFLASH_OK);
  assert_int_equal(dflash_space_needed(material, &needed, NULL), DFLASH_OK);
  dflash_material_close(material);
  if (needed < result.bytes || needed > result.bytes + result.bytes / 3 + 100000)
    fail_msg("%llu bytes were foreseen, %llu are there", (unsigned long long)needed, (unsigned long long)result.bytes);
  unlink(SCRATCH("space.h5"));
}

static void the_size_is_foreseen(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "");
  expect_estimate(&recipe);
  recipe.cases = "main";
  expect_estimate(&recipe);
  snprintf(recipe.storage, sizeof recipe.storage, "bf16");
  expect_estimate(&recipe);
  assert_int_equal(dflash_geometry_set(&recipe.geometry, "layers", "1", NULL), DFLASH_OK);
  expect_estimate(&recipe);
  recipe = golden_recipe("small", "main,rewind,shortlist");
  expect_estimate(&recipe);
  recipe = golden_recipe("", "main,hole");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  expect_estimate(&recipe);
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint";
  expect_estimate(&recipe);
}

static void too_little_space_is_said_before_drawing(void **state) {
  (void)state;
  DflashError error = {0};
  assert_int_equal(dflash_space_check(SCRATCH("space.h5"), 1000, NULL), DFLASH_OK);
  assert_int_equal(dflash_space_check("space.h5", 1000, NULL), DFLASH_OK);
  assert_int_equal(dflash_space_check(SCRATCH("space.h5"), UINT64_MAX, &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "space.h5: not enough space: about 18446744073709.6 MB are needed, "));
  assert_non_null(strstr(error.message, " MB are free"));
  DflashRecipe recipe = golden_recipe("tiny", "main");
  recipe.geometry.vocab = INT64_C(1) << 40; /* drawing would not end */
  expect_failure(&recipe, DFLASH_IO, "not enough space");
}

/* Rows on both sides of the decision. */
static void a_router_comes_with_its_sidecar(void **state) {
  (void)state;
  DflashSidecar sidecar;
  DflashRecipe recipe = golden_recipe("", "main");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  recipe.context = 4;
  assert_int_equal(dflash_sidecar_open(recipe.weights_path, &sidecar, NULL), DFLASH_OK);
  int present = sidecar.router.present;
  dflash_sidecar_close(&sidecar);
  golden_make(&recipe, SCRATCH("router.h5"), 1);
  DflashGolden *golden = golden_open(SCRATCH("router.h5"));
  assert_int_equal(dflash_golden_router(golden) != NULL, present);
  int64_t count = 0, block = 0;
  float *rows = NULL;
  double *margins = NULL;
  assert_int_equal(dflash_golden_router_rows(golden, &count, &rows, &margins, NULL), DFLASH_OK);
  for (int64_t i = 0; i < count; i++) block += margins[i] > 0;
  assert_true(!present || (count > 2 && block > 0 && block < count));
  free(rows);
  free(margins);
  dflash_golden_close(golden);
  unlink(SCRATCH("router.h5"));
}

static void a_checkpoint_is_imported(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("", "main,ties");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint";
  recipe.context = 20;
  golden_make(&recipe, SCRATCH("checkpoint.h5"), 1);
  golden_is_right(SCRATCH("checkpoint.h5"));
  recipe.geometry = golden_recipe("tiny", "").geometry;
  expect_failure(&recipe, DFLASH_INVALID_ARGUMENT, "geometry");
  unlink(SCRATCH("checkpoint.h5"));
}

/* A safetensors file with a head of counting numbers, vocab 509 x hidden 64. */
static void write_head(const char *path, float *values, size_t count) {
  char header[128] = {0};
  int length =
      snprintf(header + 8, sizeof header - 8,
               "{\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[509,64],\"data_offsets\":[0,%zu]}}", count * 4);
  while (length % 8) header[8 + length++] = ' ';
  header[0] = (char)length;
  for (size_t i = 0; i < count; i++) values[i] = (float)((int)(i * 37 % 1001) - 500) / 2000.0f;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(header, 1, 8 + (size_t)length, file), 8 + length);
  assert_int_equal(fwrite(values, 4, count, file), count);
  fclose(file);
}

static void a_head_is_imported(void **state) {
  (void)state;
  enum { COUNT = 509 * 64 };
  float *values = malloc(COUNT * sizeof *values);
  assert_non_null(values);
  write_head(SCRATCH("head.safetensors"), values, COUNT);
  DflashRecipe recipe = golden_recipe("tiny", "main");
  recipe.head_path = SCRATCH("head.safetensors");
  golden_make(&recipe, SCRATCH("head.h5"), 1);
  golden_is_right(SCRATCH("head.h5"));
  expect_repeatable(SCRATCH("head.h5"));
  DflashGolden *golden = golden_open(SCRATCH("head.h5"));
  assert_memory_equal(dflash_golden_weights(golden)->head.data, values, COUNT * sizeof *values);
  assert_non_null(strstr(dflash_golden_attribute(golden, "note"), "lm_head.weight"));
  dflash_golden_close(golden);
  recipe.cases = "main,ties";
  expect_failure(&recipe, DFLASH_INVALID_ARGUMENT, "drawn head");
  recipe.cases = "main";
  recipe.head_path = DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint"; /* a drafter has no head */
  expect_failure(&recipe, DFLASH_INVALID_DATA, "lm_head");
  unlink(SCRATCH("head.h5"));
  free(values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiny_is_pinned_and_right),
      cmocka_unit_test(small_is_pinned_and_right),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(a_seed_and_a_storage_change_the_inputs),
      cmocka_unit_test(a_golden_is_made_again_from_its_recipe),
      cmocka_unit_test(shipped_recipes_make_small_right_goldens),
      cmocka_unit_test(drawn_values_are_those_of_a_working_model),
      cmocka_unit_test(small_rows_lie_about_eps),
      cmocka_unit_test(ties_are_ties),
      cmocka_unit_test(what_cannot_be_made_leaves_no_file),
      cmocka_unit_test(untrusted_stages_are_made_when_asked_for),
      cmocka_unit_test(a_sidecar_is_imported),
      cmocka_unit_test(a_target_is_compared),
      cmocka_unit_test(a_target_needs_a_sidecar_that_names_one),
      cmocka_unit_test(the_size_is_foreseen),
      cmocka_unit_test(too_little_space_is_said_before_drawing),
      cmocka_unit_test(a_router_comes_with_its_sidecar),
      cmocka_unit_test(a_checkpoint_is_imported),
      cmocka_unit_test(a_head_is_imported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
