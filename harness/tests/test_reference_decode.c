/* The reference backend: every stored weight stands at its value. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

/* Unit vectors pick columns out of a matrix: one stage call reads it whole, in the very value that arithmetic sees. */
static void check_matrix(DflashSequence *sequence, int stage, int64_t layer, const DflashTensor *matrix, int64_t step) {
  const int64_t rows = matrix->shape[0], cols = matrix->shape[1];
  float *x = calloc((size_t)(step * cols), sizeof *x), *out = calloc((size_t)(step * rows), sizeof *out);
  for (int64_t begin = 0; begin < cols; begin += step) {
    memset(x, 0, (size_t)(step * cols) * sizeof *x);
    for (int64_t r = 0; r < step; r++) x[r * cols + (begin + r) % cols] = 1;
    const DflashStageCall call = {
        .struct_size = sizeof call, .stage = stage, .layer = layer, .rows = step, .inputs = {x}, .output = out};
    if (backend->stage(sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
    for (int64_t r = 0; r < step; r++)
      for (int64_t o = 0; o < rows; o++)
        assert_true(out[r * rows + o] == (float)tiny_at(matrix, o, (begin + r) % cols));
  }
  free(x);
  free(out);
}

static void test_every_storage_decodes_to_its_value(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  DflashModel *model = tiny_model_open(backend, &tiny, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  unsigned seen = 0;
  check_matrix(sequence, DFLASH_STAGE_CONTEXT_FC, 0, &tiny.weights.fc, 50);
  for (int64_t l = 0; l < tiny.geometry.layers; l++) {
    const DflashLayerWeights *w = &tiny.layers[l];
    const struct {
      int stage;
      const DflashTensor *matrix;
    } all[] = {{DFLASH_STAGE_ATTN_Q_PROJ, &w->q_proj},        {DFLASH_STAGE_ATTN_K_PROJ, &w->k_proj},
               {DFLASH_STAGE_ATTN_V_PROJ, &w->v_proj},        {DFLASH_STAGE_ATTN_O_PROJ, &w->o_proj},
               {DFLASH_STAGE_MLP_GATE, &w->gate_proj},        {DFLASH_STAGE_MLP_UP, &w->up_proj},
               {DFLASH_STAGE_MLP_DOWN, &w->down_proj},        {DFLASH_STAGE_ATTN_KERNEL, &w->attention_conv_kernel},
               {DFLASH_STAGE_MLP_KERNEL, &w->mlp_conv_kernel}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      seen |= 1u << all[i].matrix->storage;
      check_matrix(sequence, all[i].stage, l, all[i].matrix, tiny.geometry.block);
    }
  }
  assert_int_equal(seen, 1u << DFLASH_STORAGE_F32 | 1u << DFLASH_STORAGE_F16 | 1u << DFLASH_STORAGE_BF16 |
                             1u << DFLASH_STORAGE_Q8_2F | 1u << DFLASH_STORAGE_Q4TP);
  backend->sequence_close(sequence);
  backend->model_close(model);
  tiny_close(&tiny);
}

static void put16(const DflashTensor *tensor, int64_t at, uint32_t bits) {
  const uint16_t half = (uint16_t)bits;
  memcpy((unsigned char *)tensor->data + at, &half, sizeof half);
}

static float f16_float(uint32_t bits) {
  const DflashTensor one = {
      .storage = DFLASH_STORAGE_F16, .rank = 2, .shape = {1, 1}, .data = &(uint16_t){(uint16_t)bits}};
  return (float)tiny_at(&one, 0, 0);
}

/* Every f16 that is no infinity and no NaN, subnormals and both zeros among them: those of one row of 64 at a time. */
static void test_every_f16_is_exact(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  const DflashTensor *matrix = &tiny.layers[1].q_proj;
  assert_int_equal(matrix->storage, DFLASH_STORAGE_F16);
  const int64_t count = matrix->shape[0] * matrix->shape[1];
  for (uint32_t begin = 0; begin < 0x10000; begin += (uint32_t)count) {
    for (int64_t i = 0; i < count; i++) {
      const uint32_t bits = (begin + (uint32_t)i) & 0xffff;
      put16(matrix, 2 * i, (bits & 0x7c00) == 0x7c00 ? 0 : bits);
    }
    DflashModel *model = tiny_model_open(backend, &tiny, NULL);
    DflashSequence *sequence = tiny_sequence(backend, model, 0);
    check_matrix(sequence, DFLASH_STAGE_ATTN_Q_PROJ, 1, matrix, tiny.geometry.block);
    backend->sequence_close(sequence);
    backend->model_close(model);
  }
  tiny_close(&tiny);
}

/* Ladders from the f16 numbers where a single-precision exp2 misses the correct rounding. */
static void test_ladders_are_rounded_from_f64(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  const DflashTensor *fc = &tiny.weights.fc;
  const int64_t ladders = fc->shape[0] * fc->shape[1] / 2;
  int64_t row = 0;
  for (uint32_t bits = 0; bits < 0x10000 && row < fc->shape[0]; bits++) {
    const float x = f16_float(bits);
    if ((bits & 0x7c00) == 0x7c00 || fabsf(x) > 3 || exp2f(x) == (float)exp2((double)x)) continue;
    put16(fc, ladders + 4 * row, 0);
    put16(fc, ladders + 4 * row + 2, bits);
    row++;
  }
  DflashModel *model = tiny_model_open(backend, &tiny, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  check_matrix(sequence, DFLASH_STAGE_CONTEXT_FC, 0, fc, 50);
  backend->sequence_close(sequence);
  backend->model_close(model);
  tiny_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_storage_decodes_to_its_value),
      cmocka_unit_test(test_every_f16_is_exact),
      cmocka_unit_test(test_ladders_are_rounded_from_f64),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
