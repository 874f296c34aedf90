/* The values of a context: what a row becomes, by pieces or at once, loaded, captured. */
#include <math.h>
#include <stdlib.h>

#include "contexts.h"
#include "model/storage.h"
#include "settle.h"

static double rms_factor(const double *x, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; i++) sum += x[i] * x[i];
  return 1 / sqrt(sum / (double)width + contexts.drawn.geometry.eps);
}

static void multiply(const DflashTensor *matrix, const double *x, double *y) {
  double row[TAPS];
  for (int64_t o = 0; o < matrix->shape[0]; o++) {
    dflash_tensor_row(matrix, o, 0, matrix->shape[1], row);
    y[o] = 0;
    for (int64_t i = 0; i < matrix->shape[1]; i++) y[o] += row[i] * x[i];
  }
}

static void norm(double *x, const DflashTensor *gain) {
  const float *weights = gain->data;
  const int64_t width = gain->shape[0];
  const double factor = rms_factor(x, width);
  for (int64_t i = 0; i < width; i++) x[i] *= factor * (double)weights[i];
}

/* K and V of a row, in f64. */
static void project(int64_t layer, int64_t position, uint64_t seed, double k[KV], double v[KV]) {
  float taps[TAPS];
  double x[TAPS], t[32];
  drawn_taps(&contexts.drawn, position, 1, seed, taps);
  for (int i = 0; i < TAPS; i++) x[i] = (double)taps[i];
  multiply(&contexts.drawn.weights.fc, x, t);
  norm(t, &contexts.drawn.weights.hidden_norm);
  multiply(&contexts.drawn.layers[layer].k_proj, t, k);
  multiply(&contexts.drawn.layers[layer].v_proj, t, v);
  norm(k, &contexts.drawn.layers[layer].k_norm);
  for (int i = 0; dflash_geometry_rotary(&contexts.drawn.geometry, layer) && i < KV / 2; i++) {
    const double angle = (double)((float)position * contexts.drawn.inv_freq[i]), low = k[i], high = k[i + KV / 2];
    k[i] = low * cos(angle) - high * sin(angle);
    k[i + KV / 2] = high * cos(angle) + low * sin(angle);
  }
}

/* Rows at positions small and large, settled one at a time and three at once. */
static void check_values(double tolerance) {
  static const int64_t positions[] = {0, 5, 70000, (1 << 24) + 3};
  DflashSequence *s = open_sequence(0);
  for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
    push_ok(s, positions[i], 3, 1);
    for (int64_t layer = 0; layer < LAYERS; layer++)
      for (int64_t p = positions[i]; p < positions[i] + 3; p++) {
        double k[KV], v[KV];
        project(layer, p, 1, k, v);
        float *got = read_rows(s, layer, p, 1);
        for (int j = 0; j < KV; j++) {
          assert_true(fabs((double)got[j] - k[j]) < tolerance);
          assert_true(fabs((double)got[KV + j] - v[j]) < tolerance);
        }
        free(got);
      }
  }
  vulkan_sequence_close(s);
}

static void test_values(void **state) {
  (void)state;
  check_values(1e-5);
}

/* What a profile makes of context.norm serves several matrices, and not those of taps: far from its own rounding. */
static void test_profiles(void **state) {
  (void)state;
  DflashModel *exact = contexts.model;
  contexts.model = drawn_open(&contexts.drawn, DFLASH_PROFILE_F16, NULL, 0);
  check_values(0.01);
  vulkan_model_close(contexts.model);
  contexts.model = drawn_open(&contexts.drawn, DFLASH_PROFILE_I8, NULL, 0);
  check_values(0.1);
  vulkan_model_close(contexts.model);
  contexts.model = exact;
}

/* ---- whole and pieces ---- */

static void test_pieces(void **state) {
  (void)state;
  DflashSequence *whole = open_sequence(0), *pieces = open_sequence(0), *captured = open_sequence(1);
  static const int64_t sizes[] = {1, 7, 248, 1, 255, 256, 257, 90};
  int64_t pos = 3;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    push_ok(pieces, pos, sizes[i], 1);
    push_ok(captured, pos, sizes[i], 1);
    pos += sizes[i];
  }
  push_ok(whole, 3, pos - 3, 1);
  assert_span(whole, 3, pos - 3);
  assert_span(pieces, 3, pos - 3);
  assert_same(whole, pieces);
  assert_same(whole, captured);
  assert_int_equal(kept_from(captured, 1), 3);
  assert_true(kept_from(whole, 1) > 3);
  vulkan_sequence_close(whole);
  vulkan_sequence_close(pieces);
  vulkan_sequence_close(captured);
}

/* A device whose bindings show a few rows of taps: pieces are shorter, the bits the same. */
static void test_short_bindings(void **state) {
  (void)state;
  DflashError error = {0};
  DflashSequence *whole = open_sequence(0), *shown = open_sequence(0);
  VulkanTraits *traits = &contexts.model->device.traits;
  const VulkanTraits kept = *traits;
  push_ok(whole, 0, 100, 1);
  test_ok(vulkan_settle(whole, &error), &error);
  push_ok(shown, 0, 1, 1);                   /* the buffers of a piece are as large as ever */
  traits->max_binding = 100 * KV * 4 + 3000; /* 27 rows of taps */
  shown->settle_rows = vulkan_settle_rows(contexts.model);
  assert_in_range(shown->settle_rows, 2, 99);
  push_ok(shown, 0, 100, 1);
  assert_same(whole, shown);
  *traits = kept;
  vulkan_sequence_close(whole);
  vulkan_sequence_close(shown);
}

/* ---- stages of a push ---- */

static void test_captured(void **state) {
  (void)state;
  enum { ROWS = 300 };
  DflashError error = {0};
  DflashSequence *s = open_sequence(DFLASH_SEQUENCE_CAPTURE);
  static float stage[ROWS * KV], k[ROWS * KV], v[ROWS * KV], wide[ROWS * 32];
  push_ok(s, 0, 20, 1);
  push_ok(s, 15, ROWS, 2);
  for (int64_t layer = 0; layer < LAYERS; layer++) {
    test_ok(vulkan_read_context(s, layer, 15, ROWS, k, v, &error), &error);
    test_ok(vulkan_read_stage(s, DFLASH_STAGE_CONTEXT_K, layer, stage, ROWS * KV, &error), &error);
    assert_memory_equal(stage, k, sizeof k);
    test_ok(vulkan_read_stage(s, DFLASH_STAGE_CONTEXT_V_PROJ, layer, stage, ROWS * KV, &error), &error);
    assert_memory_equal(stage, v, sizeof v);
    test_ok(vulkan_read_stage(s, DFLASH_STAGE_CONTEXT_K_PROJ, layer, stage, ROWS * KV, &error), &error);
    for (int64_t row = 0; row < ROWS; row++) { /* k is the norm of it, rotated: lengths agree but for the gains */
      double projected[KV], held = 0, expected = 0;
      for (int i = 0; i < KV; i++) projected[i] = (double)stage[row * KV + i];
      norm(projected, &contexts.drawn.layers[layer].k_norm);
      for (int i = 0; i < KV; i++) {
        held += (double)k[row * KV + i] * (double)k[row * KV + i];
        expected += projected[i] * projected[i];
      }
      assert_true(fabs(held - expected) < 1e-4 * expected);
    }
  }
  test_ok(vulkan_read_stage(s, DFLASH_STAGE_CONTEXT_FC, 0, wide, ROWS * 32, &error), &error);
  double row[32];
  for (int i = 0; i < 32; i++) row[i] = (double)wide[(ROWS - 1) * 32 + i];
  norm(row, &contexts.drawn.weights.hidden_norm);
  test_ok(vulkan_read_stage(s, DFLASH_STAGE_CONTEXT_NORM, 0, wide, ROWS * 32, &error), &error);
  for (int i = 0; i < 32; i++) assert_true(fabs((double)wide[(ROWS - 1) * 32 + i] - row[i]) < 1e-4);
  vulkan_sequence_close(s);
}

int main(void) {
  contexts_open();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_profiles),
                                     cmocka_unit_test(test_pieces), cmocka_unit_test(test_short_bindings),
                                     cmocka_unit_test(test_captured)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  contexts_close();
  return failed;
}
