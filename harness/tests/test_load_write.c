#include "golden_copy.h"

#include "base/memory.h"
#include <unistd.h>

static void expect_bytes(const void *a, const void *b, size_t bytes) {
  assert_int_equal(a == NULL, b == NULL);
  if (a != NULL && b != NULL) assert_memory_equal(a, b, bytes);
}

static void expect_values(const DflashValue *a, const DflashValue *b, int64_t count) {
  assert_non_null(a);
  assert_non_null(b);
  for (int64_t i = 0; a != NULL && b != NULL && i < count; i++) {
    size_t bytes = (size_t)(a[i].rows * a[i].width) * sizeof(float);
    assert_int_equal(a[i].rows, b[i].rows);
    assert_int_equal(a[i].width, b[i].width);
    expect_bytes(a[i].data, b[i].data, bytes);
    expect_bytes(a[i].alone, b[i].alone, bytes);
    expect_bytes(a[i].chain, b[i].chain, bytes);
  }
}

static void expect_same_case(const DflashCase *a, const DflashCase *b, const DflashGeometry *g) {
  size_t drafts = (size_t)a->sizes.n_draft, candidates = drafts * (size_t)g->selector_top;
  assert_string_equal(a->name, b->name);
  assert_memory_equal(&a->sizes, &b->sizes, sizeof a->sizes);
  assert_int_equal(a->anchor_pos, b->anchor_pos);
  assert_int_equal(a->anchor_token, b->anchor_token);
  assert_int_equal(a->exact, b->exact);
  assert_int_equal(a->context_first, b->context_first);
  assert_int_equal(a->op_count, b->op_count);
  for (int64_t i = 0; i < a->op_count; i++) {
    assert_int_equal(a->ops[i].op, b->ops[i].op);
    assert_int_equal(a->ops[i].pos, b->ops[i].pos);
    assert_int_equal(a->ops[i].first_row, b->ops[i].first_row);
    assert_int_equal(a->ops[i].n_rows, b->ops[i].n_rows);
  }
  assert_int_equal(a->tap_rows, b->tap_rows);
  assert_memory_equal(a->taps, b->taps, (size_t)(a->tap_rows * dflash_geometry_tap_width(g)) * sizeof(float));
  assert_memory_equal(a->h, b->h, (size_t)(a->sizes.rows * g->hidden) * sizeof(float));
  expect_values(a->held_k, b->held_k, g->layers);
  expect_values(a->held_v, b->held_v, g->layers);
  expect_values(a->stages, b->stages, DFLASH_STAGE_COUNT * g->layers);
  assert_int_equal(a->stages_i8 == NULL, b->stages_i8 == NULL);
  if (a->stages_i8) expect_values(a->stages_i8, b->stages_i8, DFLASH_STAGE_COUNT * g->layers);
  expect_bytes(a->tokens.chosen, b->tokens.chosen, drafts * sizeof(int32_t));
  expect_bytes(a->tokens.plain, b->tokens.plain, drafts * sizeof(int32_t));
  expect_bytes(a->tokens.candidates, b->tokens.candidates, candidates * sizeof(int32_t));
  expect_bytes(a->tokens.scores, b->tokens.scores, candidates * sizeof(double));
  expect_bytes(a->tokens.alone, b->tokens.alone, candidates * sizeof(float));
  expect_bytes(a->tokens.chain, b->tokens.chain, candidates * sizeof(float));
}

static void expect_same_weights(const DflashGolden *a, const DflashGolden *b) {
  const DflashGeometry *g = dflash_golden_geometry(a);
  const DflashWeights *left = dflash_golden_weights(a), *right = dflash_golden_weights(b);
  DflashWeightSet x = {.weights = *left, .layers = (DflashLayerWeights *)left->layers};
  DflashWeightSet y = {.weights = *right, .layers = (DflashLayerWeights *)right->layers};
  for (int64_t i = 0; i <= dflash_weight_count(g); i++) {
    bool head = i == dflash_weight_count(g);
    const DflashTensor *s = head ? &left->head : dflash_weight_at(g, &x, i);
    const DflashTensor *t = head ? &right->head : dflash_weight_at(g, &y, i);
    assert_int_equal(s->storage, t->storage);
    assert_int_equal(s->bytes, t->bytes);
    assert_memory_equal(s->shape, t->shape, sizeof s->shape);
    assert_memory_equal(s->data, t->data, s->bytes);
  }
  assert_memory_equal(left->inv_freq, right->inv_freq, (size_t)g->head_dim / 2 * sizeof(float));
}

static void add_i8(DflashCase *c) {
  c->stages_i8 = dflash_alloc((size_t)(DFLASH_STAGE_COUNT * c->layers), sizeof *c->stages_i8);
  assert_non_null(c->stages_i8);
  for (int64_t i = 0; i < DFLASH_STAGE_COUNT * c->layers; i++) {
    c->stages_i8[i].rows = c->stages[i].rows;
    c->stages_i8[i].width = c->stages[i].width;
  }
  DflashValue *value = &c->stages_i8[DFLASH_STAGE_MLP_GATE * c->layers + 1];
  value->data = made_scale(value->rows * value->width, -2);
  value->data_owned = true;
}

static void expect_round_trip(DflashGolden *golden, const DflashCase *c, const char *path) {
  DflashGoldenHashes hashes;
  DflashError error = {0};
  if (write_copy(golden, c, path, &hashes, &error) != DFLASH_OK) fail_msg("%s", error.message);
  DflashGolden *again = open_golden(path);
  DflashCase d;
  load_case(again, &d);
  expect_same_weights(golden, again);
  expect_same_case(c, &d, dflash_golden_geometry(golden));
  assert_string_equal(dflash_golden_attribute(again, "note"), dflash_golden_attribute(golden, "note"));
  assert_string_equal(dflash_golden_attribute(again, "inputs_hash"), hashes.inputs);
  assert_string_equal(dflash_golden_attribute(again, "values_hash"), hashes.values);
  assert_string_equal(dflash_golden_attribute(again, "scales_hash"), hashes.scales);
  int inputs_match, values_match, scales_match;
  assert_int_equal(dflash_golden_check_hashes(again, &inputs_match, &values_match, NULL), DFLASH_OK);
  assert_int_equal(inputs_match, 1);
  assert_int_equal(values_match, 1);
  assert_int_equal(dflash_golden_check_scales_hash(again, &scales_match, NULL), DFLASH_OK);
  assert_int_equal(scales_match, 1);
  dflash_case_close(&d);
  dflash_golden_close(again);
}

static void what_is_written_is_read(void **state) {
  (void)state;
  char path[512];
  for (int f = 0; f < 6; f++) {
    DflashGolden *golden = open_golden(all_fixtures[f]);
    DflashCase c;
    load_case(golden, &c);
    expect_round_trip(golden, &c, scratch_path("round.h5", path));
    dflash_case_close(&c);
    dflash_golden_close(golden);
    unlink(path);
  }
}

static void scales_and_i8_values_come_back(void **state) {
  (void)state;
  char path[512];
  DflashGolden *golden = open_golden(FIXTURE("sidecar-rewind"));
  DflashCase c;
  load_case(golden, &c);
  add_scales(&c, dflash_golden_geometry(golden));
  add_i8(&c);
  c.exact = true;
  expect_round_trip(golden, &c, scratch_path("scales.h5", path));
  dflash_case_close(&c);
  dflash_golden_close(golden);
  unlink(path);
}

static void equal_calls_give_equal_bytes(void **state) {
  (void)state;
  char first[512], second[512], *a, *b;
  DflashGoldenHashes hashes;
  uint64_t a_size, b_size;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  DflashCase c;
  load_case(golden, &c);
  scratch_path("first.h5", first);
  scratch_path("second.h5", second);
  assert_int_equal(write_copy(golden, &c, first, &hashes, NULL), DFLASH_OK);
  sleep(1); /* a time stamp would differ now */
  assert_int_equal(write_copy(golden, &c, second, &hashes, NULL), DFLASH_OK);
  assert_int_equal(dflash_read_file(first, (uint64_t)1 << 30, &a, &a_size, NULL), DFLASH_OK);
  assert_int_equal(dflash_read_file(second, (uint64_t)1 << 30, &b, &b_size, NULL), DFLASH_OK);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a, b, a_size);
  free(a);
  free(b);
  dflash_case_close(&c);
  dflash_golden_close(golden);
  unlink(first);
  unlink(second);
}

static herr_t check_alignment(hid_t group, const char *name, const H5O_info_t *info, void *context) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
  haddr_t offset = H5Dget_offset(dataset);
  if (offset != HADDR_UNDEF) {
    assert_int_equal(offset % 64, 0);
    ++*(int *)context;
  }
  H5Dclose(dataset);
  return 0;
}

static void datasets_are_aligned(void **state) {
  (void)state;
  char path[512];
  DflashGoldenHashes hashes;
  int seen = 0;
  DflashGolden *golden = open_golden(FIXTURE("odd-groups"));
  DflashCase c;
  load_case(golden, &c);
  assert_int_equal(write_copy(golden, &c, scratch_path("aligned.h5", path), &hashes, NULL), DFLASH_OK);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, check_alignment, &seen) >= 0);
  assert_true(seen > 80);
  H5Fclose(file);
  dflash_case_close(&c);
  dflash_golden_close(golden);
  unlink(path);
}

static void expect_no_file(const char *path) {
  char temporary[600];
  snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_not_equal(access(temporary, F_OK), 0);
}

static void a_case_without_values_is_refused(void **state) {
  (void)state;
  char path[512];
  DflashGoldenHashes hashes;
  DflashError error = {0};
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  DflashCase c;
  load_case(golden, &c);
  DflashValue *value = dflash_case_value(&c, DFLASH_STAGE_MLP_ACT, 1);
  float *kept = value->data;
  value->data = NULL;
  assert_int_equal(write_copy(golden, &c, scratch_path("lacking.h5", path), &hashes, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "/cases/main/stages/mlp.act/1"));
  expect_no_file(path);
  value->data = kept;
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

static void a_missing_weight_shows_at_commit(void **state) {
  (void)state;
  char path[512];
  DflashGoldenHashes hashes;
  DflashError error = {0};
  DflashGoldenWriter *writer;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  assert_int_equal(dflash_golden_create(scratch_path("partial.h5", path), dflash_golden_geometry(golden),
                                        dflash_golden_weights(golden)->inv_freq, &writer, NULL),
                   DFLASH_OK);
  assert_int_equal(dflash_golden_write_weight(writer, "fc.weight", &dflash_golden_weights(golden)->fc, NULL),
                   DFLASH_OK);
  assert_int_equal(dflash_golden_commit(writer, &hashes, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "/weights/hidden_norm.weight: missing"));
  assert_null(strstr(error.message, ".tmp-"));
  expect_no_file(path);
  dflash_golden_close(golden);
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  char path[512];
  DflashError error = {0};
  DflashGoldenWriter *writer;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  const DflashWeights *weights = dflash_golden_weights(golden);
  assert_int_equal(dflash_golden_create(scratch_path("calls.h5", path), dflash_golden_geometry(golden),
                                        weights->inv_freq, &writer, NULL),
                   DFLASH_OK);
  assert_int_equal(dflash_golden_write_attribute(writer, "inputs_hash", "x", NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_golden_write_weight(writer, "layers.3.mlp.up_proj.weight", &weights->fc, NULL),
                   DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_golden_write_weight(writer, "norm.weight", &weights->fc, &error), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_golden_write_weight(writer, "fc.weight", &weights->fc, NULL), DFLASH_OK);
  assert_int_equal(dflash_golden_write_weight(writer, "fc.weight", &weights->fc, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "/weights/fc.weight: written twice"));
  dflash_golden_abort(writer);
  expect_no_file(path);
  dflash_golden_abort(NULL);
  dflash_golden_close(golden);
}

static void case_names_must_fit_a_path(void **state) {
  (void)state;
  static const char *const names[] = {"", ".", "..", "a/b", "line\nbreak"};
  char path[512], *kept;
  DflashGoldenHashes hashes;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  DflashCase c;
  load_case(golden, &c);
  kept = c.name;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    c.name = (char *)names[i];
    assert_int_equal(write_copy(golden, &c, scratch_path("names.h5", path), &hashes, NULL), DFLASH_INVALID_ARGUMENT);
  }
  c.name = kept;
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read),          cmocka_unit_test(scales_and_i8_values_come_back),
      cmocka_unit_test(equal_calls_give_equal_bytes),     cmocka_unit_test(datasets_are_aligned),
      cmocka_unit_test(a_case_without_values_is_refused), cmocka_unit_test(a_missing_weight_shows_at_commit),
      cmocka_unit_test(wrong_calls_are_refused),          cmocka_unit_test(case_names_must_fit_a_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
