#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/geometry.h"
#include "model/stage_table.h"
#include "model/storage.h"
#include "model/weights.h"

static const DflashGeometry *published(void) { return &dflash_preset(0)->geometry; }

static void entries_have_names_and_shapes(void **state) {
  (void)state;
  static const struct {
    int64_t index;
    const char *name;
    int kind;
    int32_t rank;
    int64_t shape[3];
    int32_t storage;
  } expected[] = {
      {0, "fc.weight", DFLASH_KIND_MATRIX, 2, {5120, 25600, 0}, DFLASH_STORAGE_Q8_2F},
      {1, "hidden_norm.weight", DFLASH_KIND_VECTOR, 1, {5120, 0, 0}, DFLASH_STORAGE_F32},
      {2, "norm.weight", DFLASH_KIND_VECTOR, 1, {5120, 0, 0}, DFLASH_STORAGE_F32},
      {3, "candidate_selector.hidden_projection.weight", DFLASH_KIND_MATRIX, 2, {256, 5120, 0}, DFLASH_STORAGE_Q8_2F},
      {4, "candidate_selector.predecessor_codebook", DFLASH_KIND_CODEBOOK, 2, {248320, 256, 0}, DFLASH_STORAGE_F16},
      {5, "candidate_selector.successor_codebook", DFLASH_KIND_CODEBOOK, 2, {248320, 256, 0}, DFLASH_STORAGE_F16},
      {6, "layers.0.input_layernorm.weight", DFLASH_KIND_VECTOR, 1, {5120, 0, 0}, DFLASH_STORAGE_F32},
      {6 + 15 + 2, "layers.1.self_attn.q_proj.weight", DFLASH_KIND_MATRIX, 2, {4096, 5120, 0}, DFLASH_STORAGE_Q4TP},
      {6 + 15 + 3, "layers.1.self_attn.k_proj.weight", DFLASH_KIND_MATRIX, 2, {1024, 5120, 0}, DFLASH_STORAGE_Q4TP},
      {6 + 15 + 5, "layers.1.self_attn.o_proj.weight", DFLASH_KIND_MATRIX, 2, {5120, 4096, 0}, DFLASH_STORAGE_Q4TP},
      {6 + 15 + 7, "layers.1.self_attn.k_norm.weight", DFLASH_KIND_VECTOR, 1, {128, 0, 0}, DFLASH_STORAGE_F32},
      {6 + 15 + 10, "layers.1.mlp.down_proj.weight", DFLASH_KIND_MATRIX, 2, {5120, 17408, 0}, DFLASH_STORAGE_Q4TP},
      {6 + 60 + 11, "layers.4.attention_conv.base_kernel", DFLASH_KIND_BASE, 3, {2, 2, 5120}, DFLASH_STORAGE_F32},
      {6 + 60 + 14,
       "layers.4.mlp_conv.kernel_projection.weight",
       DFLASH_KIND_MATRIX,
       2,
       {1280, 5120, 0},
       DFLASH_STORAGE_Q8_2F},
  };
  assert_int_equal(dflash_weight_count(published()), 6 + 15 * 5);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(published(), expected[i].index, &entry);
    assert_string_equal(entry.name, expected[i].name);
    assert_int_equal(entry.kind, expected[i].kind);
    assert_int_equal(entry.rank, expected[i].rank);
    assert_int_equal(entry.sidecar_storage, expected[i].storage);
    for (int d = 0; d < 3; d++) assert_true(entry.shape[d] == expected[i].shape[d]);
  }
}

static void the_head_has_an_entry_of_its_own(void **state) {
  (void)state;
  DflashWeightEntry entry;
  dflash_weight_head_entry(published(), &entry);
  assert_string_equal(entry.name, "lm_head.weight");
  assert_true(entry.kind == DFLASH_KIND_MATRIX && entry.rank == 2 && entry.sidecar_storage == DFLASH_STORAGE_Q8_2F);
  assert_true(entry.shape[0] == 248320 && entry.shape[1] == 5120);
}

static void a_set_has_a_place_for_every_entry(void **state) {
  (void)state;
  DflashWeightSet set;
  const DflashGeometry *g = published();
  assert_int_equal(dflash_weight_set_open(g, &set, NULL), DFLASH_OK);
  assert_ptr_equal(set.weights.layers, set.layers);
  assert_ptr_equal(set.weights.inv_freq, set.inv_freq);
  assert_true(set.inv_freq[0] == 1.0f && set.inv_freq[63] > 0);
  assert_ptr_equal(dflash_weight_at(g, &set, 0), &set.weights.fc);
  assert_ptr_equal(dflash_weight_at(g, &set, 5), &set.weights.successor);
  assert_ptr_equal(dflash_weight_at(g, &set, 6), &set.layers[0].input_layernorm);
  assert_ptr_equal(dflash_weight_at(g, &set, 6 + 2 * 15 + 14), &set.layers[2].mlp_conv_kernel);
  for (int64_t i = 0; i < dflash_weight_count(g); i++) dflash_weight_at(g, &set, i)->bytes++;
  for (int64_t i = 0; i < dflash_weight_count(g); i++) assert_true(dflash_weight_at(g, &set, i)->bytes == 1);
  assert_null(dflash_weight_at(g, &set, -1));
  assert_null(dflash_weight_at(g, &set, dflash_weight_count(g)));
  dflash_weight_set_close(&set);
  assert_null(set.layers);
  dflash_weight_set_close(&set);
}

static void absurd_heads_take_no_memory(void **state) {
  (void)state;
  DflashGeometry g = *published();
  DflashWeightSet set;
  DflashError error = {0};
  g.head_dim = (int64_t)1 << 40;
  assert_int_equal(dflash_weight_set_open(&g, &set, &error), DFLASH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "head_dim is 1099511627776"));
  assert_null(set.layers);
}

static DflashTensor fitting(const DflashWeightEntry *entry, int32_t storage) {
  DflashTensor tensor = {.storage = storage, .rank = entry->rank};
  memcpy(tensor.shape, entry->shape, sizeof tensor.shape);
  assert_int_equal(
      dflash_storage_bytes(storage, dflash_tensor_rows(&tensor), dflash_tensor_cols(&tensor), &tensor.bytes, NULL),
      DFLASH_OK);
  return tensor;
}

static void storages_depend_on_the_kind(void **state) {
  (void)state;
  const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                              DFLASH_STORAGE_Q4TP};
  const int allowed[][5] = {[DFLASH_KIND_VECTOR] = {1, 0, 0, 0, 0},
                            [DFLASH_KIND_BASE] = {1, 0, 0, 0, 0},
                            [DFLASH_KIND_MATRIX] = {1, 1, 1, 1, 1},
                            [DFLASH_KIND_CODEBOOK] = {1, 1, 1, 0, 0}};
  for (int64_t i = 0; i < 6 + 15; i++)
    for (int s = 0; s < 5; s++) {
      DflashWeightEntry entry;
      DflashError error = {0};
      dflash_weight_entry(published(), i, &entry);
      DflashTensor tensor = fitting(&entry, storages[s]);
      DflashStatus status = dflash_weight_check(&entry, &tensor, &error);
      assert_int_equal(status, allowed[entry.kind][s] ? DFLASH_OK : DFLASH_INVALID_DATA);
      if (status) assert_non_null(strstr(error.message, entry.name));
      if (status) assert_non_null(strstr(error.message, dflash_storage_name(storages[s])));
    }
}

static void expect_refusal(const DflashWeightEntry *entry, const DflashTensor *tensor, const char *part) {
  DflashError error = {0};
  assert_int_equal(dflash_weight_check(entry, tensor, &error), DFLASH_INVALID_DATA);
  if (!strstr(error.message, part) || !strstr(error.message, entry->name)) fail_msg("%s", error.message);
}

static void shapes_and_bytes_are_checked(void **state) {
  (void)state;
  DflashWeightEntry entry;
  dflash_weight_entry(published(), 0, &entry);
  DflashTensor good = fitting(&entry, DFLASH_STORAGE_Q4TP), bad = good;
  assert_int_equal(dflash_weight_check(&entry, &good, NULL), DFLASH_OK);
  bad.shape[0]--;
  expect_refusal(&entry, &bad, "[5119, 25600]");
  bad = good;
  bad.rank = 1;
  expect_refusal(&entry, &bad, "rank 1");
  bad.rank = INT32_MAX;
  expect_refusal(&entry, &bad, "rank 2147483647");
  bad.rank = -1;
  expect_refusal(&entry, &bad, "rank -1");
  bad = good;
  bad.bytes++;
  expect_refusal(&entry, &bad, "bytes");
  bad = good;
  bad.storage = 7;
  expect_refusal(&entry, &bad, "number 7");
  entry.shape[1] = bad.shape[1] = 25601;
  bad.storage = DFLASH_STORAGE_Q4TP;
  expect_refusal(&entry, &bad, "25601 columns");
}

static void stages_know_their_weight(void **state) {
  (void)state;
  DflashWeightSet set;
  assert_int_equal(dflash_weight_set_open(published(), &set, NULL), DFLASH_OK);
  const DflashWeights *w = &set.weights;
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_CONTEXT_FC, 0), &w->fc);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_CONTEXT_NORM, 0), &w->hidden_norm);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_CONTEXT_K, 3), &set.layers[3].k_norm);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_CONTEXT_V_PROJ, 3), &set.layers[3].v_proj);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_ATTN_OUT, 1), &set.layers[1].attention_conv_base);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_MLP_NORM, 4), &set.layers[4].post_attention_layernorm);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_MLP_KERNEL, 4), &set.layers[4].mlp_conv_kernel);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_HEAD_LOGITS, 0), &w->head);
  assert_ptr_equal(dflash_stage_weight(w, DFLASH_STAGE_SELECT, 0), &w->predecessor);
  assert_null(dflash_stage_weight(w, DFLASH_STAGE_ATTN_MIX, 0));
  assert_null(dflash_stage_weight(w, DFLASH_STAGE_MLP_ACT, 0));
  assert_null(dflash_stage_weight(w, DFLASH_STAGE_TAPS, 0));
  dflash_weight_set_close(&set);
}

/* A matrix stage's weight has one row per output column and one column per input column. */
static void matrix_stages_fit_their_weights(void **state) {
  (void)state;
  const DflashGeometry *g = published();
  DflashRunSizes sizes = {.rows = 8, .n_draft = 7, .head_width = g->vocab, .push_rows = 3};
  DflashWeightSet set;
  assert_int_equal(dflash_weight_set_open(g, &set, NULL), DFLASH_OK);
  for (int64_t i = 0; i < dflash_weight_count(g); i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(g, i, &entry);
    *dflash_weight_at(g, &set, i) = fitting(&entry, DFLASH_STORAGE_F32);
  }
  DflashWeightEntry head;
  dflash_weight_head_entry(g, &head);
  set.weights.head = fitting(&head, DFLASH_STORAGE_F32);
  int matrices = 0;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    if (!dflash_stage_is_matrix(stage)) continue;
    const DflashTensor *weight = dflash_stage_weight(&set.weights, stage, 0);
    assert_true(weight->shape[0] == dflash_stage_width(g, &sizes, stage));
    assert_true(weight->shape[1] == dflash_stage_width(g, &sizes, dflash_stage_row(stage)->inputs[0]));
    assert_true(weight->shape[0] * weight->shape[1] == dflash_stage_weight_elements(g, &sizes, stage));
    matrices++;
  }
  assert_int_equal(matrices, 3 + 2 + 4 + 3 + 2);
  assert_false(dflash_stage_is_matrix(DFLASH_STAGE_NONE));
  dflash_weight_set_close(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_have_names_and_shapes),     cmocka_unit_test(the_head_has_an_entry_of_its_own),
      cmocka_unit_test(a_set_has_a_place_for_every_entry), cmocka_unit_test(absurd_heads_take_no_memory),
      cmocka_unit_test(storages_depend_on_the_kind),       cmocka_unit_test(shapes_and_bytes_are_checked),
      cmocka_unit_test(stages_know_their_weight),          cmocka_unit_test(matrix_stages_fit_their_weights),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
