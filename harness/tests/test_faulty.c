/* The faulty backend: right without a defect, wrong in one way with one, and a catalogue that can be trusted. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dflash/catalogue.h"
#include "golden/cases.h"
#include "golden/shapes.h"
#include "model/stage_table.h"
#include "tiny_model.h"

#define FAULTY DFLASH_BACKEND_FOLDER "/dflash-backend-faulty.so"
#define BLAS DFLASH_BACKEND_FOLDER "/dflash-backend-blas.so"
#define REFERENCE DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so"

static DflashError error;

static const DflashCatalogue *catalogue(void) {
  void *library = dlopen(FAULTY, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  DflashCatalogueEntry entry;
  void *symbol = dlsym(library, DFLASH_CATALOGUE_SYMBOL);
  assert_non_null(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  return entry();
}

/* ---- the catalogue ---- */

static bool is_in(const char *const *list, const char *text) {
  for (; *list != NULL; list++)
    if (strcmp(*list, text) == 0) return true;
  return false;
}

static bool is_place(const char *stage) {
  static const char *const checks[] = {"context",
                                       "context_state.k",
                                       "context_state.v",
                                       "repeat",
                                       "sequences",
                                       "uncaptured",
                                       "load",
                                       "rewind",
                                       "rounds",
                                       "cut",
                                       "together",
                                       "block",
                                       "block.logits",
                                       "block.selector_hidden",
                                       "clock",
                                       "spans",
                                       "timed block",
                                       NULL};
  return dflash_stage_find(stage) != DFLASH_STAGE_NONE || is_in(checks, stage);
}

/* SHAPE/CASE: the shape is there, the case a kind or a plan of the shape's own. */
static bool is_golden(const char *name, size_t length) {
  char shape[64], quoted[80];
  const char *slash = memchr(name, '/', length);
  if (slash == NULL || slash - name >= (ptrdiff_t)sizeof shape) return false;
  snprintf(shape, sizeof shape, "%.*s", (int)(slash - name), name);
  snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)(name + length - slash - 1), slash + 1);
  const char *recipe = dflash_shape_recipe(shape);
  if (recipe == NULL) return false;
  char kind[64];
  snprintf(kind, sizeof kind, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
  return dflash_case_kind_find(kind) >= 0 || strstr(recipe, quoted) != NULL;
}

static void assert_goldens(const DflashDefect *defect) {
  const char *at = defect->goldens;
  assert_true(at != NULL && *at != '\0');
  while (*at != '\0') {
    const size_t length = strcspn(at, " ");
    if (!is_golden(at, length)) fail_msg("%s: no golden %.*s", defect->id, (int)length, at);
    at += length + strspn(at + length, " ");
  }
}

static void assert_text(const DflashDefect *defect, const char *name, const char *text) {
  if (text == NULL || *text == '\0' || strchr(text, '\n') != NULL) fail_msg("%s: %s is no line", defect->id, name);
}

static void assert_defect(const DflashDefect *defect) {
  static const char *const kinds[] = {"layout",    "index",  "order", "numerics", "storage", "bookkeeping",
                                      "selection", "memory", "time",  "race",     "lawful",  NULL};
  assert_int_equal(defect->struct_size, sizeof *defect);
  assert_text(defect, "id", defect->id);
  if (defect->id[strspn(defect->id, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
    fail_msg("%s: letters, digits and '-'", defect->id);
  assert_text(defect, "about", defect->about);
  assert_text(defect, "origin", defect->origin);
  if (defect->kind == NULL || !is_in(kinds, defect->kind)) fail_msg("%s: kind %s", defect->id, defect->kind);
  if (!defect->lawful) assert_text(defect, "exposed_by", defect->exposed_by);
  if (!defect->lawful && (defect->stage == NULL || !is_place(defect->stage)))
    fail_msg("%s: no stage or check %s", defect->id, defect->stage);
  if (defect->lawful && defect->stage != NULL) fail_msg("%s: lawful, and to be found at %s", defect->id, defect->stage);
  assert_in_range(defect->profile, 0, DFLASH_PROFILE_COUNT - 1);
  assert_goldens(defect);
}

static void test_every_entry_is_well_formed(void **state) {
  (void)state;
  const DflashCatalogue *all = catalogue();
  assert_true(all->count > 100);
  for (uint32_t i = 0; i < all->count; i++) {
    assert_defect(all->defects[i]);
    for (uint32_t j = 0; j < i; j++)
      if (strcmp(all->defects[i]->id, all->defects[j]->id) == 0) fail_msg("two entries %s", all->defects[i]->id);
  }
}

/* ---- models ---- */

static DflashModel *open_with(const TinyModel *tiny, int32_t profile, const char *defect, const char *expose) {
  const DflashBackend *backend = tiny_backend(FAULTY);
  const DflashOption options[] = {{"defect", defect}, {"expose", expose}};
  const DflashModelDesc desc = {.struct_size = sizeof desc,
                                .profile = profile,
                                .geometry = &tiny->geometry,
                                .weights = &tiny->weights,
                                .options = options,
                                .option_count = 2};
  DflashModel *model = NULL;
  if (backend->model_open(&desc, &model, &error) != DFLASH_OK) fail_msg("%s: %s", defect, error.message);
  return model;
}

static void test_every_entry_can_be_opened(void **state) {
  (void)state;
  const DflashCatalogue *all = catalogue();
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 3);
  for (uint32_t i = 0; i < all->count; i++)
    tiny_backend(FAULTY)->model_close(open_with(&tiny, all->defects[i]->profile, all->defects[i]->id, "all"));
  tiny_close(&tiny);
}

static void push(const DflashBackend *backend, const DflashGeometry *g, DflashSequence *sequence, int64_t pos,
                 int64_t rows, const char *name) {
  float *taps = tiny_draw(name, rows * dflash_geometry_tap_width(g));
  assert_int_equal(backend->push(sequence, pos, taps, rows, &error), DFLASH_OK);
  free(taps);
}

/* Pushes, a rewind, growth past 16 rows, and two blocks; then everything that can be read. */
static void feed(const DflashBackend *backend, const DflashGeometry *g, DflashSequence *sequence) {
  push(backend, g, sequence, 3, 9, "a");
  assert_int_equal(backend->truncate(sequence, 10, &error), DFLASH_OK);
  push(backend, g, sequence, 8, 13, "b");
}

static float *read_all(const DflashBackend *backend, const DflashGeometry *g, DflashSequence *sequence,
                       int64_t *count) {
  const DflashRunSizes sizes = {.rows = g->block, .n_draft = g->block - 1, .head_width = g->vocab, .push_rows = 13};
  float *all = NULL;
  int32_t stage;
  int64_t layer, used = 0;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    const int64_t one = dflash_stage_rows(g, &sizes, stage) * dflash_stage_width(g, &sizes, stage);
    all = realloc(all, (size_t)(used + one) * sizeof *all);
    assert_non_null(all);
    assert_int_equal(backend->read_stage(sequence, stage, layer, all + used, (uint64_t)one, &error), DFLASH_OK);
    used += one;
  }
  const int64_t rows = 18, width = g->kv_heads * g->head_dim;
  all = realloc(all, (size_t)(used + 2 * rows * width * g->layers) * sizeof *all);
  assert_non_null(all);
  for (layer = 0; layer < g->layers; layer++, used += 2 * rows * width)
    assert_int_equal(backend->read_context(sequence, layer, 3, rows, all + used, all + used + rows * width, &error),
                     DFLASH_OK);
  *count = used;
  return all;
}

typedef struct Run {
  TinyAnswer answer;
  float *values;
  int64_t count;
} Run;

static Run run(const DflashBackend *backend, DflashModel *model) {
  const DflashGeometry geometry = tiny_geometry();
  DflashSequence *sequence = tiny_sequence(backend, model, DFLASH_SEQUENCE_CAPTURE);
  Run result = {.count = 0};
  feed(backend, &geometry, sequence);
  TinyAnswer first = tiny_block(backend, &geometry, sequence, 21, "h", 0);
  result.answer = tiny_block(backend, &geometry, sequence, 21, "g", 0);
  result.values = read_all(backend, &geometry, sequence, &result.count);
  tiny_answer_close(&first);
  backend->sequence_close(sequence);
  backend->model_close(model);
  return result;
}

static void close_run(Run *result) {
  tiny_answer_close(&result->answer);
  free(result->values);
}

static void assert_base(const char *path, const char *name) {
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  Run base = run(tiny_backend(path), tiny_model_open(tiny_backend(path), &tiny, NULL));
  Run own = run(tiny_backend(FAULTY), tiny_model_open_as(tiny_backend(FAULTY), &tiny, 0, "base", name));
  tiny_close(&tiny);
  tiny_answer_equal(&base.answer, &own.answer);
  assert_int_equal(base.count, own.count);
  assert_memory_equal(base.values, own.values, (size_t)base.count * sizeof *base.values);
  close_run(&base);
  close_run(&own);
}

static void test_without_a_defect_it_is_the_base_bit_for_bit(void **state) {
  (void)state;
  assert_base(REFERENCE, "reference");
  if (access(BLAS, R_OK) == 0) assert_base(BLAS, "blas");
}

static void test_a_defect_is_planted(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  Run right = run(tiny_backend(FAULTY), open_with(&tiny, 0, "", "all"));
  Run wrong = run(tiny_backend(FAULTY), open_with(&tiny, 0, "nan-unseen", "all"));
  tiny_close(&tiny);
  const int64_t last = right.answer.head_width - 1;
  assert_true(isnan(wrong.answer.logits[last]));
  assert_false(isnan(right.answer.logits[last]));
  assert_memory_equal(right.answer.chosen, wrong.answer.chosen,
                      (size_t)right.answer.n_draft * sizeof *right.answer.chosen);
  close_run(&right);
  close_run(&wrong);
}

/* ---- options ---- */

static DflashStatus supports(const char *key, const char *value) {
  const DflashGeometry geometry = tiny_geometry();
  const DflashOption option = {key, value};
  const DflashModelDesc desc = {
      .struct_size = sizeof desc, .geometry = &geometry, .options = &option, .option_count = 1};
  error.message[0] = '\0';
  return tiny_backend(FAULTY)->supports(&desc, &error);
}

static void test_options_are_checked(void **state) {
  (void)state;
  assert_int_equal(supports("defect", "race-norms"), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "race-norms"));
  assert_non_null(strstr(error.message, "race-norm,"));
  assert_int_equal(supports("defect", "x"), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "selftest --list"));
  assert_int_equal(supports("base", "faulty"), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "reference, blas"));
  assert_int_equal(supports("expose", "some"), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(supports("slow", "head.logits:1.5"), DFLASH_OK);
  const char *const bad[] = {"head.logits", "head.logits:", "head.logits:0.5", "head.logits:2x", "nowhere:2", ":2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(supports("slow", bad[i]), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "STAGE:FACTOR"));
  assert_int_equal(supports("threads", "2"), DFLASH_OK);
  assert_int_equal(supports("threads", "many"), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "reference: threads"));
}

static void test_end_values_are_all_that_is_exposed(void **state) {
  (void)state;
  const DflashBackend *backend = tiny_backend(FAULTY);
  const DflashGeometry g = tiny_geometry();
  TinyModel tiny;
  tiny_open(&tiny, g, 1);
  DflashModel *model = open_with(&tiny, 0, "", "end");
  tiny_close(&tiny);
  DflashSequence *sequence = tiny_sequence(backend, model, DFLASH_SEQUENCE_CAPTURE);
  TinyAnswer answer = tiny_block(backend, &g, sequence, 5, "h", 0);
  int32_t stage;
  int64_t layer;
  float value;
  for (int64_t i = 0; dflash_stage_walk(&g, i, &stage, &layer); i++) {
    const bool end = stage >= DFLASH_STAGE_HEAD_LOGITS;
    DflashStageInfo info = {.struct_size = sizeof info};
    assert_int_equal(backend->stage_info(model, stage, layer, 2, &info, &error), DFLASH_OK);
    assert_int_equal(info.materialised, end);
    assert_int_equal(info.alone, end);
    assert_int_equal(info.covered_by, end ? stage : DFLASH_STAGE_HEAD_LOGITS);
    const DflashStageCall call = {.struct_size = sizeof call, .stage = stage, .layer = layer};
    if (end) continue;
    assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_UNSUPPORTED);
    assert_int_equal(backend->read_stage(sequence, stage, layer, &value, 1, &error), DFLASH_UNSUPPORTED);
  }
  tiny_answer_close(&answer);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

/* ---- rows ---- */

static void test_rows_are_let_go_as_the_contract_allows(void **state) {
  (void)state;
  const DflashBackend *backend = tiny_backend(FAULTY);
  const DflashGeometry g = tiny_geometry_minimal();
  TinyModel tiny;
  int64_t first, len, kept;
  DflashGeometry windowed = g;
  windowed.window = 4;
  windowed.windows.count = 0;
  tiny_open(&tiny, windowed, 1);
  DflashModel *model = open_with(&tiny, 0, "lawful-rows-let-go", "all");
  tiny_close(&tiny);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  push(backend, &windowed, sequence, 0, 300, "a");
  assert_int_equal(backend->span(sequence, 0, &first, &len, &kept, &error), DFLASH_OK);
  assert_int_equal(first, 0);
  assert_int_equal(len, 300);
  assert_int_equal(kept, 300 - (4 - 1 + 256));
  assert_int_equal(backend->truncate(sequence, 300 - 256 - 1, &error), DFLASH_CONTEXT_LOST);
  assert_int_equal(backend->truncate(sequence, 300 - 256, &error), DFLASH_OK);
  assert_int_equal(backend->span(sequence, 0, &first, &len, &kept, &error), DFLASH_OK);
  assert_int_equal(len, 300 - 256);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

static void test_a_push_that_fails_changes_nothing(void **state) {
  (void)state;
  const DflashBackend *backend = tiny_backend(FAULTY);
  const DflashGeometry g = tiny_geometry();
  TinyModel tiny;
  int64_t first, len, kept;
  tiny_open(&tiny, g, 1);
  DflashModel *model = open_with(&tiny, 0, "", "all");
  tiny_close(&tiny);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  push(backend, &g, sequence, 7, 5, "a");
  assert_int_equal(backend->push(sequence, 9, NULL, 2, &error), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(backend->push(sequence, -1, NULL, 0, &error), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(backend->span(sequence, 0, &first, &len, &kept, &error), DFLASH_OK);
  assert_int_equal(first, 7);
  assert_int_equal(len, 5);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_entry_is_well_formed),
      cmocka_unit_test(test_every_entry_can_be_opened),
      cmocka_unit_test(test_without_a_defect_it_is_the_base_bit_for_bit),
      cmocka_unit_test(test_a_defect_is_planted),
      cmocka_unit_test(test_options_are_checked),
      cmocka_unit_test(test_end_values_are_all_that_is_exposed),
      cmocka_unit_test(test_rows_are_let_go_as_the_contract_allows),
      cmocka_unit_test(test_a_push_that_fails_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
