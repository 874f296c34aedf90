/* The reference backend: what it says of itself, and the models that it takes and refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "refuses.h"
#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

/* ---- itself ---- */

static void test_it_describes_its_device(void **state) {
  (void)state;
  uint32_t count = 0;
  DflashDevice device = {.struct_size = sizeof device};
  assert_int_equal(backend->devices(NULL, 0, &count, &error), DFLASH_OK);
  assert_int_equal(count, 1);
  assert_int_equal(backend->devices(&device, 1, &count, &error), DFLASH_OK);
  assert_int_equal(device.is_cpu, 1);
  assert_string_equal(device.id, "cpu");
  assert_true(device.memory_bytes > 0 && device.name[0] != '\0' && device.driver[0] != '\0');
}

/* A caller of an older version knows fewer members: nothing past its struct_size is touched. */
static void test_answers_end_where_the_caller_s_struct_ends(void **state) {
  (void)state;
  uint32_t count;
  DflashDevice device;
  memset(&device, 0x5a, sizeof device);
  device.struct_size = offsetof(DflashDevice, driver);
  assert_int_equal(backend->devices(&device, 1, &count, &error), DFLASH_OK);
  for (size_t i = 0; i < sizeof device.driver; i++) assert_int_equal(device.driver[i], 0x5a);
  device.struct_size = 3;
  REFUSES(backend->devices(&device, 1, &count, &error), "struct_size");
}

static void test_support_is_asked_without_weights(void **state) {
  (void)state;
  const DflashGeometry geometry = tiny_geometry();
  const DflashModelDesc good = {.struct_size = sizeof good, .geometry = &geometry, .device = "cpu"};
  assert_int_equal(backend->supports(&good, &error), DFLASH_OK);
  DflashModelDesc desc = good;
  for (desc.profile = 0; desc.profile < DFLASH_PROFILE_COUNT; desc.profile++)
    assert_int_equal(backend->supports(&desc, &error), DFLASH_OK);
  REFUSES(backend->supports(&desc, &error), "profile");
  desc.profile = -1;
  REFUSES(backend->supports(&desc, &error), "profile");
  desc = good;
  desc.device = "gpu0";
  REFUSES_AS(DFLASH_UNAVAILABLE, backend->supports(&desc, &error), "gpu0");
  desc = good;
  desc.geometry = NULL;
  REFUSES(backend->supports(&desc, &error), "geometry");
  desc = good;
  desc.struct_size -= 1;
  REFUSES(backend->supports(&desc, &error), "struct_size");
  DflashGeometry wide = geometry;
  wide.vocab = INT64_C(1) << 31;
  desc = good;
  desc.geometry = &wide;
  REFUSES_AS(DFLASH_UNSUPPORTED, backend->supports(&desc, &error), "vocab");
}

/* The only matrix that is q4tp may be the head. */
static void test_i8_wants_a_q4tp_matrix(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry_minimal(), 1);
  DflashModelDesc desc = {
      .struct_size = sizeof desc, .profile = DFLASH_PROFILE_I8, .geometry = &tiny.geometry, .weights = &tiny.weights};
  DflashModel *model;
  REFUSES_AS(DFLASH_UNSUPPORTED, backend->supports(&desc, &error), "q4tp");
  REFUSES_AS(DFLASH_UNSUPPORTED, backend->model_open(&desc, &model, &error), "q4tp");
  assert_null(model);
  DflashWeights weights = tiny.weights;
  weights.head.storage = DFLASH_STORAGE_Q4TP;
  desc.weights = &weights;
  assert_int_equal(backend->supports(&desc, &error), DFLASH_OK);
  weights.head.data = NULL; /* no head */
  REFUSES_AS(DFLASH_UNSUPPORTED, backend->supports(&desc, &error), "q4tp");
  weights.layers = NULL;
  REFUSES_AS(DFLASH_UNSUPPORTED, backend->supports(&desc, &error), "q4tp");
  tiny_close(&tiny);
}

static void test_options_are_named_and_checked(void **state) {
  (void)state;
  const DflashGeometry geometry = tiny_geometry();
  const struct {
    DflashOption option;
    const char *part;
  } wrong[] = {{{"thread", "2"}, "threads, order, fma, terms"},
               {{"threads", "0"}, "1 to 256"},
               {{"threads", "257"}, "1 to 256"},
               {{"threads", "two"}, "1 to 256"},
               {{"threads", "2x"}, "1 to 256"},
               {{"threads", "-1"}, "1 to 256"},
               {{"threads", NULL}, "value"},
               {{NULL, "2"}, "key"},
               {{"order", "sideways"}, "forward, backward, pairwise, lanes16, blocks128 or split3"},
               {{"order", ""}, "forward"},
               {{"fma", "2"}, "0 or 1"},
               {{"terms", "together"}, "plain or apart"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const DflashModelDesc desc = {
        .struct_size = sizeof desc, .geometry = &geometry, .options = &wrong[i].option, .option_count = 1};
    REFUSES(backend->supports(&desc, &error), wrong[i].part);
  }
  const DflashModelDesc none = {.struct_size = sizeof none, .geometry = &geometry, .option_count = 1};
  REFUSES(backend->supports(&none, &error), "options");
}

static void test_stages_are_described(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashModelInfo info = {.struct_size = sizeof info};
  assert_int_equal(backend->model_info(model, &info, &error), DFLASH_OK);
  assert_int_equal(info.repeatable, 1);
  assert_true(info.resident_bytes > 0);
  bool seen[DFLASH_STAGE_COUNT * 3] = {false};
  for (int stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    DflashStageInfo one = {.struct_size = sizeof one};
    assert_int_equal(backend->stage_info(model, stage, 0, 5, &one, &error), DFLASH_OK);
    assert_true(one.materialised == 1 && one.alone == 1 && one.covered_by == stage && one.path[0] != '\0');
    assert_true(one.dispatch >= 0 && one.dispatch < DFLASH_STAGE_COUNT * 3 && !seen[one.dispatch]);
    seen[one.dispatch] = true;
    if (stage == DFLASH_STAGE_CONTEXT_FC) /* q4tp: 64 rows of 6 groups */
      assert_int_equal(one.weight_bytes, 64 * (6 * 16 + 4 + 4));
    if (stage == DFLASH_STAGE_ATTN_MIX) assert_int_equal(one.weight_bytes, 0);
    if (stage == DFLASH_STAGE_SELECT) assert_int_equal(one.weight_bytes, 4 * (1 + 5) * 13 * 2);
  }
  DflashStageInfo one = {.struct_size = sizeof one};
  REFUSES(backend->stage_info(model, DFLASH_STAGE_COUNT, 0, 5, &one, &error), "stage");
  REFUSES(backend->stage_info(model, DFLASH_STAGE_TAPS, 0, 5, &one, &error), "stage");
  REFUSES(backend->stage_info(model, DFLASH_STAGE_ATTN_Q, 3, 5, &one, &error), "layer");
  REFUSES(backend->stage_info(model, DFLASH_STAGE_SELECT, 1, 5, &one, &error), "layer");
  REFUSES(backend->stage_info(model, DFLASH_STAGE_SELECT, 0, 0, &one, &error), "rows");
  backend->model_close(model);
}

static void check_path(int32_t profile, const char *key, const char *value, const char *part) {
  DflashModel *model = tiny_model_as(backend, tiny_geometry(), profile, key, value);
  DflashModelInfo info = {.struct_size = sizeof info};
  assert_int_equal(backend->model_info(model, &info, &error), DFLASH_OK);
  if (strstr(info.path, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", info.path, part);
  backend->model_close(model);
}

static void test_the_path_says_how_sums_are_taken(void **state) {
  (void)state;
  const char *orders[] = {"forward", "backward", "pairwise", "lanes16", "blocks128", "split3"};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    check_path(DFLASH_PROFILE_EXACT, "order", orders[i], orders[i]);
  check_path(DFLASH_PROFILE_EXACT, NULL, NULL, "1 thread; sums forward, terms plain");
  check_path(DFLASH_PROFILE_EXACT, "fma", "1", "forward with fma");
  check_path(DFLASH_PROFILE_EXACT, "terms", "apart", "terms apart");
  check_path(DFLASH_PROFILE_I8, NULL, NULL, "int8");
  check_path(DFLASH_PROFILE_F16, NULL, NULL, "f16");
  check_path(DFLASH_PROFILE_BF16, NULL, NULL, "bf16");
}

/* The stored bytes are what a block reads in every profile; only a q4tp product has another kernel in i8. */
static void test_stages_are_described_in_every_profile(void **state) {
  (void)state;
  for (int32_t profile = 0; profile < DFLASH_PROFILE_COUNT; profile++) {
    DflashModel *model = tiny_model_as(backend, tiny_geometry(), profile, NULL, NULL);
    DflashStageInfo fc = {.struct_size = sizeof fc}, norm = {.struct_size = sizeof norm};
    DflashStageInfo k = {.struct_size = sizeof k};
    assert_int_equal(backend->stage_info(model, DFLASH_STAGE_CONTEXT_FC, 0, 5, &fc, &error), DFLASH_OK);
    assert_int_equal(backend->stage_info(model, DFLASH_STAGE_FINAL_NORM, 0, 5, &norm, &error), DFLASH_OK);
    assert_int_equal(backend->stage_info(model, DFLASH_STAGE_ATTN_K_PROJ, 0, 5, &k, &error), DFLASH_OK);
    assert_int_equal(fc.weight_bytes, 64 * (6 * 16 + 4 + 4));
    assert_int_equal(norm.weight_bytes, 64 * 4);
    assert_int_equal(strstr(fc.path, "int8") != NULL, profile == DFLASH_PROFILE_I8);
    assert_null(strstr(k.path, "int8")); /* f16 */
    backend->model_close(model);
  }
}

static void test_the_roofline_is_measured(void **state) {
  (void)state;
  DflashModel *model = tiny_model(backend, tiny_geometry(), NULL);
  double read = 0, matrix = 0;
  assert_int_equal(backend->measure_read(model, &read, &error), DFLASH_OK);
  assert_int_equal(backend->measure_matrix(model, &matrix, &error), DFLASH_OK);
  assert_true(read > 1e7 && read < 1e13);
  assert_true(matrix > 1e6 && matrix < 1e13);
  assert_int_equal(backend->evict_caches(model, &error), DFLASH_OK);
  REFUSES(backend->measure_read(model, NULL, &error), "NULL");
  backend->model_close(model);
}

/* ---- models ---- */

typedef void (*Spoil)(TinyModel *tiny);
static void spoil_fc_bytes(TinyModel *t) { t->weights.fc.bytes -= 1; }
static void spoil_fc_rows(TinyModel *t) { t->weights.fc.shape[0] -= 1; }
static void spoil_norm_storage(TinyModel *t) { t->weights.norm.storage = DFLASH_STORAGE_F16; }
static void spoil_head_rank(TinyModel *t) { t->weights.head.rank = 1; }
static void spoil_storage(TinyModel *t) { t->layers[1].o_proj.storage = 3; }
static void spoil_base(TinyModel *t) { t->layers[2].mlp_conv_base.shape[1] += 1; }
static void spoil_codebook(TinyModel *t) {
  t->weights.predecessor.storage = DFLASH_STORAGE_Q8_2F;
  t->weights.predecessor.bytes = 97 * 13 + 2 * (97 + 13);
}
static void spoil_q4tp(TinyModel *t) { t->layers[0].o_proj.storage = DFLASH_STORAGE_Q4TP; }

static void test_weights_that_do_not_fit_are_named(void **state) {
  (void)state;
  const struct {
    Spoil spoil;
    const char *name;
  } cases[] = {{spoil_fc_bytes, "fc"},          {spoil_fc_rows, "fc"},     {spoil_norm_storage, "norm"},
               {spoil_head_rank, "head"},       {spoil_storage, "o_proj"}, {spoil_base, "mlp_conv_base"},
               {spoil_codebook, "predecessor"}, {spoil_q4tp, "o_proj"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TinyModel tiny, whole;
    tiny_open(&tiny, tiny_geometry(), 1);
    whole = tiny;
    cases[i].spoil(&tiny);
    const DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = &tiny.geometry, .weights = &tiny.weights};
    DflashModel *model = (DflashModel *)&tiny;
    REFUSES(backend->model_open(&desc, &model, &error), cases[i].name);
    assert_null(model);
    tiny_close(&whole);
  }
}

static void test_absent_weights_are_refused(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = &tiny.geometry};
  DflashModel *model;
  REFUSES(backend->model_open(&desc, &model, &error), "weights");
  REFUSES(backend->model_open(&desc, NULL, &error), "model");
  DflashWeights weights = tiny.weights;
  desc.weights = &weights;
  weights.inv_freq = NULL;
  REFUSES(backend->model_open(&desc, &model, &error), "inv_freq");
  weights = tiny.weights;
  weights.layers = NULL;
  REFUSES(backend->model_open(&desc, &model, &error), "layers");
  weights = tiny.weights;
  weights.successor.data = NULL;
  REFUSES(backend->model_open(&desc, &model, &error), "successor");
  tiny_close(&tiny);
}

static void test_without_a_head_there_are_stages_and_no_block(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  TinyModel headless = tiny;
  headless.weights.head = (DflashTensor){0};
  DflashModel *model = tiny_model_open(backend, &headless, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float x[5 * 64] = {1}, out[5 * 97];
  int32_t chosen[4], plain[4];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, NULL};
  const DflashBlockCall block = {
      .struct_size = sizeof block, .rows = 5, .n_draft = 4, .head_width = 97, .h = x, .tokens = &tokens};
  REFUSES(backend->block(sequence, &block, &error), "head");
  DflashStageCall stage = {.struct_size = sizeof stage,
                           .stage = DFLASH_STAGE_HEAD_LOGITS,
                           .rows = 5,
                           .n_draft = 4,
                           .head_width = 97,
                           .inputs = {x},
                           .output = out};
  REFUSES(backend->stage(sequence, &stage, &error), "head");
  stage.stage = DFLASH_STAGE_SELECTOR_HIDDEN;
  assert_int_equal(backend->stage(sequence, &stage, &error), DFLASH_OK);
  backend->sequence_close(sequence);
  backend->model_close(model);
  tiny_close(&tiny);
}

static void test_close_accepts_nothing(void **state) {
  (void)state;
  backend->sequence_close(NULL);
  backend->model_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_describes_its_device),
      cmocka_unit_test(test_answers_end_where_the_caller_s_struct_ends),
      cmocka_unit_test(test_support_is_asked_without_weights),
      cmocka_unit_test(test_i8_wants_a_q4tp_matrix),
      cmocka_unit_test(test_options_are_named_and_checked),
      cmocka_unit_test(test_the_path_says_how_sums_are_taken),
      cmocka_unit_test(test_stages_are_described_in_every_profile),
      cmocka_unit_test(test_stages_are_described),
      cmocka_unit_test(test_the_roofline_is_measured),
      cmocka_unit_test(test_weights_that_do_not_fit_are_named),
      cmocka_unit_test(test_absent_weights_are_refused),
      cmocka_unit_test(test_without_a_head_there_are_stages_and_no_block),
      cmocka_unit_test(test_close_accepts_nothing),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
