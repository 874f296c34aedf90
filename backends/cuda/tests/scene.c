#include "scene.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

EmulatedDriver *driver;

void must(DflashStatus status, const DflashError *error) {
  if (status != DFLASH_OK) fail_msg("status %d: %s", (int)status, error->message);
}

/* The library is found as the backend finds it: by the path that the test was started with. */
static void find_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  driver = dlsym(library, "emulated_driver");
  assert_non_null(driver);
}

void scene_open(Scene *scene, const char *file) {
  DflashError error = {0};
  char path[512];
  find_driver();
  snprintf(path, sizeof path, DFLASH_GOLDEN_FOLDER "/%s", file);
  *scene = (Scene){0};
  must(dflash_golden_open(path, 0, &scene->golden, &error), &error);
  scene->g = dflash_golden_geometry(scene->golden);
  must(dflash_golden_case(scene->golden, 0, &scene->c, &error), &error);
}

void scene_close(Scene *scene) {
  dflash_case_close(&scene->c);
  dflash_golden_close(scene->golden);
}

DflashModelDesc scene_desc(const Scene *scene) {
  return (DflashModelDesc){.struct_size = sizeof(DflashModelDesc),
                           .profile = DFLASH_PROFILE_EXACT,
                           .geometry = scene->g,
                           .weights = dflash_golden_weights(scene->golden)};
}

DflashModel *scene_model(const Scene *scene, const char *device) {
  DflashError error = {0};
  DflashModel *model;
  DflashModelDesc desc = scene_desc(scene);
  desc.device = device;
  must(cuda_backend.model_open(&desc, &model, &error), &error);
  return model;
}

DflashSequence *scene_sequence(DflashModel *model, uint32_t flags, int64_t reserve_rows) {
  DflashError error = {0};
  DflashSequence *s;
  const DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags, .reserve_rows = reserve_rows};
  must(cuda_backend.sequence_open(model, &desc, &s, &error), &error);
  return s;
}

float *scene_taps(const Scene *scene, int64_t position, int64_t rows) {
  const int64_t width = dflash_geometry_tap_width(scene->g);
  float *taps = dflash_alloc((size_t)(rows * width), sizeof *taps);
  assert_non_null(taps);
  for (int64_t r = 0; r < rows; r++) {
    const DflashRandom random = {7, (uint64_t)(position + r)};
    for (int64_t i = 0; i < width; i++)
      taps[r * width + i] = (float)(dflash_random_u32(random, (uint64_t)i) >> 8) * 0x1p-23f - 1;
  }
  return taps;
}

DflashStatus scene_push(const Scene *scene, DflashSequence *s, int64_t position, int64_t rows, DflashError *error) {
  float *taps = scene_taps(scene, position, rows);
  const DflashStatus status = cuda_backend.push(s, position, taps, rows, error);
  free(taps);
  return status;
}

DflashStatus scene_block(const Scene *scene, DflashSequence *s, int64_t anchor, uint32_t flags, Answer *answer,
                         DflashError *error) {
  const int64_t n_draft = scene->c.sizes.n_draft, width = scene->c.sizes.head_width;
  assert_true(n_draft <= 64);
  *answer = (Answer){.logits = dflash_alloc((size_t)(n_draft * width), sizeof(float))};
  assert_non_null(answer->logits);
  DflashTokens tokens = {.struct_size = sizeof tokens, .chosen = answer->chosen, .plain = answer->plain};
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .flags = flags,
                                .anchor_pos = anchor,
                                .anchor_token = scene->c.anchor_token,
                                .rows = scene->c.sizes.rows,
                                .n_draft = n_draft,
                                .head_width = width,
                                .h = scene->c.h,
                                .tokens = &tokens,
                                .logits = answer->logits};
  return cuda_backend.block(s, &call, error);
}

void answers_equal(const Scene *scene, const Answer *a, const Answer *b) {
  const size_t n = (size_t)scene->c.sizes.n_draft;
  assert_memory_equal(a->logits, b->logits, n * (size_t)scene->c.sizes.head_width * sizeof(float));
  assert_memory_equal(a->chosen, b->chosen, n * sizeof *a->chosen);
  assert_memory_equal(a->plain, b->plain, n * sizeof *a->plain);
}

float *scene_rows(const Scene *scene, DflashSequence *s, int64_t layer, int64_t pos, int64_t rows) {
  DflashError error = {0};
  const int64_t count = rows * scene->g->kv_heads * scene->g->head_dim;
  float *both = dflash_alloc((size_t)(2 * count), sizeof *both);
  assert_non_null(both);
  must(cuda_backend.read_context(s, layer, pos, rows, both, both + count, &error), &error);
  return both;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

void contexts_equal(const Scene *scene, DflashSequence *a, DflashSequence *b) {
  DflashError error = {0};
  for (int64_t layer = 0; layer < scene->g->layers; layer++) {
    int64_t first[2], len[2], kept[2];
    must(cuda_backend.span(a, layer, &first[0], &len[0], &kept[0], &error), &error);
    must(cuda_backend.span(b, layer, &first[1], &len[1], &kept[1], &error), &error);
    assert_int_equal(first[0], first[1]);
    assert_int_equal(len[0], len[1]);
    const int64_t from = larger(kept[0], kept[1]), rows = first[0] + len[0] - from;
    float *of_a = scene_rows(scene, a, layer, from, rows), *of_b = scene_rows(scene, b, layer, from, rows);
    assert_memory_equal(of_a, of_b, (size_t)(2 * rows * scene->g->kv_heads * scene->g->head_dim) * sizeof(float));
    free(of_a);
    free(of_b);
  }
}

void nothing_open(void) {
  const int64_t open[] = {driver->allocations, driver->pinned, driver->contexts, driver->pushed, driver->modules,
                          driver->streams,     driver->events, driver->graphs,   driver->execs};
  for (size_t i = 0; i < sizeof open / sizeof *open; i++)
    if (open[i] != 0) fail_msg("%lld of kind %zu are open", (long long)open[i], i);
}
