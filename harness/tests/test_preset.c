#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/geometry.h"
#include "model/storage.h"
#include "model/weights.h"

static const DflashGeometry *find(const char *name) {
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, name) == 0) return &dflash_preset(i)->geometry;
  fail_msg("no preset %s", name);
  return NULL;
}

static void presets_are_valid_and_distinct(void **state) {
  (void)state;
  assert_true(dflash_preset_count() == 4);
  assert_null(dflash_preset(dflash_preset_count()));
  for (size_t i = 0; i < dflash_preset_count(); i++) {
    DflashError error = {0};
    if (dflash_geometry_check(&dflash_preset(i)->geometry, &error) != DFLASH_OK) fail_msg("%s", error.message);
    assert_true(strlen(dflash_preset(i)->about) > 0);
    assert_ptr_equal(find(dflash_preset(i)->name), &dflash_preset(i)->geometry);
  }
}

static void every_tensor_takes_its_published_storage(void **state) {
  (void)state;
  for (size_t i = 0; i < dflash_preset_count(); i++) {
    const DflashGeometry *geometry = &dflash_preset(i)->geometry;
    for (int64_t w = 0; w < dflash_weight_count(geometry); w++) {
      DflashWeightEntry entry;
      uint64_t bytes;
      dflash_weight_entry(geometry, w, &entry);
      int64_t cols = entry.shape[entry.rank - 1];
      if (entry.kind == DFLASH_KIND_MATRIX) assert_true(cols % 32 == 0);
      assert_int_equal(dflash_storage_bytes(entry.sidecar_storage, entry.shape[0], cols, &bytes, NULL), DFLASH_OK);
    }
  }
}

static void the_published_drafter_is_the_published_one(void **state) {
  (void)state;
  const DflashGeometry *g = find("qwen3.8-27b");
  assert_true(g->hidden == 5120 && g->intermediate == 17408 && g->layers == 5 && g->heads == 32 && g->kv_heads == 8);
  assert_true(g->head_dim == 128 && g->vocab == 248320 && g->block == 8 && g->mask_token == 248070);
  assert_true(g->conv_group == 16 && g->conv_kernel == 2 && g->selector_rank == 256 && g->selector_top == 16);
  assert_true(g->taps.count == 5 && g->taps.at[0] == 5 && g->taps.at[4] == 61 && g->target_layers == 64);
  assert_true(g->window == 2048 && g->windows.count == 0 && g->no_rope.count == 0);
  assert_true(g->rope_theta == 1e7 && g->eps == 1e-6);
  assert_true(dflash_geometry_tap_width(g) == 25600 && dflash_geometry_kernel_width(g) == 1280);
  assert_true(dflash_geometry_rep(find("narrow-0.3b")) == 7);
}

static void small_ones_cover_what_large_ones_do_not(void **state) {
  (void)state;
  const DflashGeometry *small = find("small"), *tiny = find("tiny");
  assert_true(dflash_geometry_window(small, 0) == 96 && dflash_geometry_window(small, 1) == 0);
  assert_true(dflash_geometry_window(small, 2) == 64);
  assert_false(dflash_geometry_rotary(small, 1));
  assert_true(dflash_geometry_rotary(small, 0) && dflash_geometry_rotary(small, 2));
  assert_true(tiny->taps.at[0] > tiny->taps.at[1]);
  for (int64_t d = 2; d * d <= tiny->vocab; d++) assert_true(tiny->vocab % d != 0);
}

/* Wherever a norm takes place, an eps that is missing or misplaced moves its result far beyond f32. */
static void only_the_eps_of_tiny_is_large(void **state) {
  (void)state;
  assert_true(find("tiny")->eps == 1e-2);
  assert_true(find("small")->eps == 1e-6 && find("narrow-0.3b")->eps == 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(presets_are_valid_and_distinct),
      cmocka_unit_test(every_tensor_takes_its_published_storage),
      cmocka_unit_test(the_published_drafter_is_the_published_one),
      cmocka_unit_test(small_ones_cover_what_large_ones_do_not),
      cmocka_unit_test(only_the_eps_of_tiny_is_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
